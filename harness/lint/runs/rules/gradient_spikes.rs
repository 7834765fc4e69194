//! Single batches have a gradient that dwarfs all others.
//!
//! ### Fires when
//! In three rows (in long runs one in a hundred) the gradient's norm is more than 10 times the
//! median of the 21 rows around, and more than 3 times the 90th percentile of the run; or in one
//! row it is 100 times that median or more. Rows without a signal do not count.
//!
//! ### Not said
//! That a spike did harm: where gradients are clipped, it is one step in an odd direction.
//!
//! ### Causes
//! - groups whose rewards differ by next to nothing, divided by their deviation
//! - rare tokens, whose log-probability is far below all others
//! - half precision in the log-probabilities or in the loss
//!
//! ### Next
//! - shakedown check --stage advantage
//! - shakedown check --stage log-probability
//! - look at the completions and rewards of the step that is named
//!
//! ### Source
//! An advantage is bounded by the square root of the group's size; what is divided by a deviation
//! near 0 is not, unless the epsilon is larger.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::around::{Spike, habit, spikes, steps};
use crate::runs::gradient::with_signal;
use crate::runs::statistics::{quantile, short};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::count;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Advantage,
    needs: &["grad_norm"],
    explains: &[],
    contracts: &[("group-advantage", &["bounded", "constant-group"])],
    catches: &["gradient-outliers"],
    check,
};

/// How many times the rows around, where it is often, and where it is once.
const LIMITS: [f64; 2] = [10.0, 100.0];

fn check(run: &Run) -> Judgement {
    let norms = with_signal(run, 21)?;
    let high = 3.0 * quantile(&norms.values(), 0.9);
    let found = spikes(norms, LIMITS[0], high);
    // Where most neighbours have no gradient at all, a row that has one is no spike.
    let found: Vec<Spike> = found.into_iter().filter(|one| one.around > 0.0).collect();
    let times = |one: &&Spike| one.times();
    let Some(highest) = found.iter().max_by(|a, b| times(a).total_cmp(&times(b))) else {
        return Ok(vec![]);
    };
    if found.len() < habit(norms.points()) && highest.times() < LIMITS[1] {
        return Ok(vec![]);
    }
    let text = format!(
        "{} with a gradient above {} times that of the rows around, the highest {} among {}",
        count(found.len() as u64, "row"),
        LIMITS[0],
        short(highest.height),
        short(highest.around),
    );
    let limit = Some(LIMITS[0] * highest.around);
    let firing = Firing::warning(text).at_steps(steps(&found));
    firing.metric("grad_norm", "max", highest.height, limit).into()
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, run, said, scatter, steps};

    const RULE: &str = "gradient-spikes";

    /// Every so many rows the norm is so many times as large.
    fn spiky(rows: usize, every: usize, times: f64, seed: u64) -> Run {
        let norm = move |i: usize| if i % every == every / 2 { times } else { 1.0 };
        run(rows, &[("grad_norm", &|i| 0.4 * norm(i) * scatter(seed, i, 0.2))])
    }

    #[test]
    fn frequent_or_very_high_spikes_are_found() {
        always("warning", RULE, |seed| spiky(150, 40, 25.0, seed));
        always("warning", RULE, |seed| spiky(100, 100, 250.0, seed));
        let one = run(100, &[("grad_norm", &|i| if i == 70 { 500.0 } else { 1.0 })]);
        assert_eq!(steps(&one, RULE), Some([7 * 70 + 3; 2]));
    }

    #[test]
    fn a_few_natural_spikes_and_heavy_tails_are_left_alone() {
        always("quiet", RULE, |seed| spiky(120, 60, 25.0, seed));
        always("quiet", RULE, |seed| spiky(150, 30, 6.0, seed));
        always("quiet", RULE, |seed| spiky(4000, 600, 25.0, seed));
        always("quiet", RULE, |seed| run(400, &[("grad_norm", &|i| scatter(seed, i, 0.8))]));
        let falls = |i: usize| 50.0 * (-0.1 * i as f64).exp() + 0.2;
        always("quiet", RULE, |seed| {
            run(200, &[("grad_norm", &|i| falls(i) * scatter(seed, i, 0.2))])
        });
    }

    #[test]
    fn batches_without_a_signal_are_no_neighbours() {
        let has_signal = |i: usize| i.is_multiple_of(3);
        let flat = |i: usize| if has_signal(i) { 0.5 } else { 1.0 };
        let norm = |i: usize| if has_signal(i) { 0.7 } else { 1e-4 };
        let sparse = run(200, &[("groups.flat", &flat), ("grad_norm", &norm)]);
        assert_eq!(said(&sparse, RULE), "quiet");
        let rare = |i: usize| if i.is_multiple_of(15) { 0.7 } else { 0.0 };
        assert_eq!(said(&run(200, &[("grad_norm", &rare)]), RULE), "quiet");
    }

    #[test]
    fn fewer_than_21_rows_have_no_neighbours() {
        assert_eq!(said(&spiky(20, 5, 500.0, 1), RULE), "insufficient");
    }
}
