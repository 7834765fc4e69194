//! Completions never end by themselves.
//!
//! ### Fires when
//! In the last fifth of 5 rows or more at least 0.98 of the completions are cut. Where that is not
//! logged: nine of ten mean lengths, of 10 or more, are within 0.5 % of the largest one, which is a
//! whole number of 32 at least, and no less than the limit where that is set.
//!
//! ### Not said
//! Whether the model could stop if it were let.
//!
//! ### Causes
//! - the end-of-sequence token is another than the sampler stops at
//! - it is banned, or masked out of the loss so that it is never learned
//! - the prompt is built with another template than the model was trained with
//! - lengths count the padding
//!
//! ### Next
//! - look at the last tokens of three completions: is there an end token that was passed over
//! - compare the end token of the generation settings with that of the tokenizer and its template
//! - shakedown check --stage decoding
//!
//! ### Source
//! ms-swift#4950.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::statistics::{Statistics, mean, proportion};
use crate::runs::{Run, lengths};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Decoding,
    needs: &["length.clipped"],
    explains: &[
        "truncation",
        "length-hack",
        "length-explodes",
        "length-collapses",
        "rollout-mismatch",
    ],
    contracts: &[
        ("completion-mask", &["any-eos-ends", "ends-at-the-first-eos"]),
        ("token-decoder", &["special-tokens"]),
    ],
    catches: &["eos-banned"],
    check,
};

/// Rows of shares, and of mean lengths, that it takes.
const FEWEST: [usize; 2] = [5, 10];
const LIMIT: f64 = 0.98;
/// The share of completions that are cut from which on it is the same trouble.
const BEGINS: f64 = 0.27;

fn check(run: &Run) -> Judgement {
    match run.get("length.clipped") {
        Some(_) => by_share(run),
        None => by_length(run),
    }
}

fn by_share(run: &Run) -> Judgement {
    let cut = run.figures("length.clipped", FEWEST[0])?;
    let share = mean(cut.tail());
    if share < LIMIT {
        return Ok(vec![]);
    }
    let found =
        format!("{} of the completions of the last {} rows are cut", proportion(share), cut.window);
    // It begins where completions begin to be cut: few are, then all.
    let since = cut.since(|mean| mean >= BEGINS);
    let fired = Firing::error(found).at_steps(run.steps_from("length.clipped", since)).metric(
        "length.clipped",
        "mean of the last fifth",
        share,
        Some(LIMIT),
    );
    match mean(&cut.values[..cut.window]) < 0.5 {
        true => {
            fired.because(None, "it did stop at first: length pays, or the policy has broken down")
        }
        false => fired,
    }
    .into()
}

fn by_length(run: &Run) -> Judgement {
    let series = run.need("length.mean", FEWEST[1])?;
    let Some(ceiling) = lengths::ceiling(run, series) else { return Ok(vec![]) };
    let Some(figures) = Statistics::of(series) else { return Ok(vec![]) };
    let near = figures.values.iter().filter(|length| **length >= 0.995 * ceiling).count();
    let share = near as f64 / figures.n() as f64;
    if share < 0.9 {
        return Ok(vec![]);
    }
    let rows = figures.n();
    let found =
        format!("{near} of {rows} mean lengths are {ceiling}, as if all completions were cut");
    Firing::error(found)
        .at_steps(run.steps_from("length.mean", 0))
        .metric("length.mean", "share at the largest", share, Some(0.9))
        .into()
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};
    use crate::settings::Origin;

    fn fires(rows: usize, metrics: &[Metric<'_>]) -> bool {
        let found = findings(&run(rows, metrics), "never-stops");
        assert!(found.iter().all(|(severity, _)| *severity == Severity::Error));
        !found.is_empty()
    }

    #[test]
    fn nearly_all_cut_fires() {
        assert!(fires(5, &[("length.clipped", &|_| 0.99)]));
        assert!(!fires(4, &[("length.clipped", &|_| 0.99)]));
        assert!(!fires(50, &[("length.clipped", &|_| 0.97)]));
    }

    #[test]
    fn it_begins_with_the_truncation_that_it_explains() {
        let breaks = |i: usize| (0.2 * (i as f64 - 20.0)).clamp(0.05, 1.0);
        let run = run(40, &[("length.clipped", &breaks)]);
        let start = |id: &str| findings(&run, id)[0].1[0];
        assert_eq!(start("never-stops"), start("truncation"));
        assert!((18..=24).contains(&start("truncation")));
    }

    #[test]
    fn a_model_that_learns_to_stop_does_not() {
        assert!(!fires(50, &[("length.clipped", &|i| (1.0 - 0.02 * i as f64).max(0.1))]));
    }

    #[test]
    fn mean_lengths_at_one_whole_number_fire() {
        let stuck: Metric<'_> = ("length.mean", &|i| if i % 12 == 3 { 900.5 } else { 1024.0 });
        assert!(fires(24, &[stuck]) && !fires(9, &[stuck]));
        let below: Metric<'_> = ("length.mean", &|i| 1000.3 + 0.5 * noise(1, i));
        assert!(!fires(24, &[below]));
        assert!(!fires(24, &[("length.mean", &|_| 16.0)]));
    }

    #[test]
    fn a_limit_that_is_far_above_excuses_them() {
        let mut stuck = run(24, &[("length.mean", &|_| 48.0)]);
        assert!(!findings(&stuck, "never-stops").is_empty());
        stuck.settings.set("length.completion", 512, Origin::Flag);
        assert!(findings(&stuck, "never-stops").is_empty());
    }
}
