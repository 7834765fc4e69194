//! Many completions are cut before they end.
//!
//! ### Fires when
//! In the last fifth of 5 rows or more at least 0.3 (warning) or 0.7 (error) of the completions are
//! cut; only noted where that has fallen to less than half. In 3 or 4 rows 0.7 of them are cut in
//! the last two, and half of all more than in the first (error). Where it is not logged: the last
//! mean length is 0.9 of the set limit, or one in five of 20 or more mean lengths is one whole
//! number of 32 at least, and none is above (warning).
//!
//! ### Not said
//! That the limit is wrong: completions may have grown for no good reason.
//!
//! ### Causes
//! - the limit is too small for the task
//! - length pays, so that completions grow until they are cut
//! - the end is not learned
//!
//! ### Next
//! - raise the limit for completions, or give a soft penalty before it
//! - leave cut completions out of the loss: their reward says nothing about their tokens
//! - shakedown check --stage decoding
//!
//! ### Source
//! DAPO (arXiv 2503.14476, section 3.4) on overlong completions.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::runs::statistics::{Statistics, TREND_POINTS, mean, proportion, short};
use crate::runs::{Run, lengths};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Decoding,
    needs: &["length.clipped"],
    explains: &[],
    contracts: &[
        ("length-penalty", &["knees", "never-rises"]),
        ("completion-mask", &["unfinished-rows"]),
    ],
    catches: &["limit-too-small"],
    check,
};

const FEWEST: usize = 5;
/// So few rows show a collapse.
const AT_ONCE: usize = 3;
const WARNING: f64 = 0.3;
const ERROR: f64 = 0.7;

fn check(run: &Run) -> Judgement {
    match run.get("length.clipped") {
        Some(_) => by_share(run),
        None => by_length(run),
    }
}

fn by_share(run: &Run) -> Judgement {
    let cut = run.figures("length.clipped", AT_ONCE)?;
    if cut.n() < FEWEST {
        return at_once(run, &cut.values);
    }
    let share = mean(cut.tail());
    if share < WARNING {
        return Ok(vec![]);
    }
    let [first, last] = [mean(&cut.values[..cut.window]), share].map(proportion);
    let (severity, limit) = match share >= ERROR {
        _ if cut.falls() && cut.last < 0.5 * cut.first => (Severity::Note, WARNING),
        true => (Severity::Error, ERROR),
        false => (Severity::Warning, WARNING),
    };
    let rows = cut.window;
    let found =
        format!("{last} of the completions of the last {rows} rows are cut, {first} of the first");
    let since = cut.since(|mean| mean >= 0.9 * WARNING);
    let mut fired = Firing::new(severity, found);
    if let Some(limit) = run.settings.number("length.completion") {
        fired = fired.because(Some("length.completion"), format!("a limit of {limit} tokens"));
    }
    fired
        .at_steps(run.steps_from("length.clipped", since))
        .metric("length.clipped", "mean of the last fifth", share, Some(limit))
        .into()
}

/// Cutting that began and was complete before there is a tail.
fn at_once(run: &Run, cut: &[f64]) -> Judgement {
    let (first, last) = (cut[0], cut[cut.len() - 1]);
    let is_cut = cut[cut.len() - 2..].iter().all(|share| *share >= ERROR);
    if !is_cut || last - first < 0.5 {
        run.need("length.clipped", FEWEST)?;
    }
    let [before, after] = [first, last].map(proportion);
    let rows = cut.len();
    let found = format!("{after} of the completions are cut after {rows} rows, {before} at first");
    Firing::error(found)
        .at_steps(run.steps_from("length.clipped", cut.len() - 2))
        .metric("length.clipped", "last", last, Some(ERROR))
        .into()
}

fn by_length(run: &Run) -> Judgement {
    let series = run.need("length.mean", TREND_POINTS)?;
    let Some(figures) = Statistics::of(series) else { return Ok(vec![]) };
    let limit = run.settings.number("length.completion").filter(|limit| *limit > 0.0);
    if let Some(limit) = limit.filter(|limit| figures.last >= 0.9 * limit) {
        let [last, most] = [figures.last, limit].map(short);
        let found = format!("the mean length ends at {last} tokens where {most} are allowed");
        let since = figures.since(|mean| mean >= 0.85 * limit);
        return Firing::warning(found)
            .at_steps(run.steps_from("length.mean", since))
            .metric("length.mean", "last", figures.last, Some(0.9 * limit))
            .into();
    }
    let Some(ceiling) = lengths::ceiling(run, series) else { return Ok(vec![]) };
    let is_cut = |length: f64| length >= ceiling * (1.0 - 1e-6) - series.resolution;
    let at = figures.values.iter().filter(|length| is_cut(**length)).count();
    if (at as f64) < 0.2 * figures.n() as f64 {
        return Ok(vec![]);
    }
    let found = format!("{at} of {} mean lengths are {ceiling}, none is above", figures.n());
    let steps = run.steps_where("length.mean", |one| is_cut(one.mean));
    Firing::warning(found)
        .at_steps(steps.unwrap_or_default())
        .metric("length.mean", "share at the largest", at as f64 / figures.n() as f64, Some(0.2))
        .into()
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};
    use crate::settings::Origin;

    fn severity(rows: usize, metrics: &[Metric<'_>]) -> Option<Severity> {
        findings(&run(rows, metrics), "truncation").first().map(|(severity, _)| *severity)
    }

    #[test]
    fn the_share_at_the_end_says_how_bad_it_is() {
        let of = |share: f64| {
            let scatter = |i: usize| share + 0.02 * noise(3, i);
            severity(50, &[("length.clipped", &scatter)])
        };
        assert_eq!(of(0.2), None);
        assert_eq!(of(0.4), Some(Severity::Warning));
        assert_eq!(of(0.8), Some(Severity::Error));
        assert_eq!(severity(4, &[("length.clipped", &|_| 0.8)]), None);
    }

    #[test]
    fn a_collapse_within_three_rows_is_found() {
        let of = |shares: [f64; 3]| severity(3, &[("length.clipped", &|i| shares[i])]);
        assert_eq!(of([0.3, 0.97, 0.995]), Some(Severity::Error));
        assert_eq!([of([0.3, 0.5, 0.995]), of([0.9, 0.97, 0.995])], [None; 2]);
    }

    #[test]
    fn a_share_that_halves_is_noted() {
        let falls = |i: usize| (0.95 - 0.01 * i as f64).max(0.35);
        assert_eq!(severity(100, &[("length.clipped", &falls)]), Some(Severity::Note));
        let gone = |i: usize| (0.9 - 0.02 * i as f64).max(0.1);
        assert_eq!(severity(100, &[("length.clipped", &gone)]), None);
    }

    #[test]
    fn without_shares_the_limit_or_a_ceiling_tells() {
        let near: Metric<'_> = ("length.mean", &|i| 470.3 + noise(1, i));
        let mut limited = run(40, &[near]);
        assert!(findings(&limited, "truncation").is_empty());
        limited.settings.set("length.completion", 512, Origin::Flag);
        assert_eq!(findings(&limited, "truncation")[0].0, Severity::Warning);
        let ceiling: Metric<'_> =
            ("length.mean", &|i| if i % 4 == 3 { 512.0 } else { 480.3 + noise(1, i) });
        assert_eq!(severity(40, &[ceiling]), Some(Severity::Warning));
        assert_eq!(severity(19, &[ceiling]), None);
    }

    #[test]
    fn lengths_that_are_logged_as_whole_numbers_have_no_ceiling() {
        let whole: Metric<'_> = ("length.mean", &|i| (100.0 + (i % 3) as f64).round());
        assert_eq!(severity(60, &[whole]), None);
    }
}
