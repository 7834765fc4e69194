//! The gradient shrinks to nothing, though there is still something to learn.
//!
//! ### Fires when
//! In rows with a signal the gradient's norm ends at a hundredth of its first level or less, while
//! the task is not solved. It may shrink as the signal does: by as much as the share of groups that
//! are not flat.
//!
//! ### Not said
//! Anything of runs whose groups are flat or whose rewards are all the same: there no gradient is
//! right, and a 0 is no wonder where 0.3 of them are or nobody knows how many; nor of training on
//! preferences, where it shrinks as pairs are told apart.
//!
//! ### Causes
//! - the policy is so sure of its tokens that their probabilities no longer change
//! - parameters left the graph: frozen, detached, an adapter that is not trained
//! - the loss is divided by a number that grows
//!
//! ### Next
//! - shakedown check --stage loss
//! - look at the entropy: where it is near 0, raise the temperature or lower the learning rate
//!
//! ### Source
//! The gradient of a token's log-probability is 1 minus its probability, times the advantage.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::runs::Run;
use crate::runs::ceiling;
use crate::runs::gradient::{signal_growth, with_signal};
use crate::runs::statistics::{Statistics, TREND_POINTS, mean, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["grad_norm", "reward.mean"],
    explains: &[],
    contracts: &[("policy-loss", &["gradient", "gradient-against-the-advantage"])],
    catches: &["gradient-decays"],
    check,
};

/// The share of its first level that is nothing.
const LIMIT: f64 = 0.01;
/// A norm below this is 0.
const NO_GRADIENT: f64 = 1e-12;
/// Where so many groups are flat, a 0 may be the gradient of a flat update: a row may hold the
/// means of several updates and the gradient of the last one only.
const FLAT: f64 = 0.3;

fn check(run: &Run) -> Judgement {
    // An accuracy alone may be one of a task.
    if ["pref.margin", "pref.chosen"].iter().any(|id| run.get(id).is_some()) {
        return Err(not_applicable("training on preferences ends with small gradients"));
    }
    let rewards = run.need("reward.mean", TREND_POINTS)?;
    let norm = Statistics::of(with_signal(run, TREND_POINTS)?)
        .ok_or_else(|| insufficient("grad_norm has no finite value"))?;
    let limit = LIMIT * norm.first * signal_growth(run).min(1.0);
    let last = norm.last + run.series["grad_norm"].resolution;
    let was_none = norm.first <= NO_GRADIENT;
    let may_be_flat = run.get("signal").is_none() || flat_at_end(run) >= FLAT;
    let by_chance = norm.last <= NO_GRADIENT && may_be_flat;
    if last > limit || was_none || by_chance || rewards.is_constant() || is_explained(run) {
        return Ok(vec![]);
    }
    let found = format!(
        "the gradient's norm falls from {} to {}, though the rewards still differ",
        short(norm.first),
        short(norm.last),
    );
    let judged = if run.get("signal").is_some() { "grad_norm.with_signal" } else { "grad_norm" };
    let since = norm.since(|mean| mean <= limit);
    let firing = Firing::warning(found).at_steps(run.steps_from(judged, since));
    firing.metric("grad_norm", "last", norm.last, Some(limit)).into()
}

/// Whether there is little to learn at the end, as most groups are flat, or nothing that learns.
fn is_explained(run: &Run) -> bool {
    let flat = flat_at_end(run) >= 0.5;
    let stopped = run.statistics("lr").is_some_and(|lr| lr.last == 0.0);
    ceiling::is_reached(run) || flat || stopped
}

/// The share of groups that are flat at the end; 0 where it is not logged.
fn flat_at_end(run: &Run) -> f64 {
    run.statistics("groups.flat").map_or(0.0, |flat| mean(flat.tail()))
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, noise, run, said, scatter};

    const RULE: &str = "gradient-vanishes";

    fn norm(rows: usize, to: f64, seed: u64) -> impl Fn(usize) -> f64 {
        move |i| {
            0.5 * (to / 0.5).powf((1.3 * i as f64 / rows as f64).min(1.0)) * scatter(seed, i, 0.2)
        }
    }

    fn shrinks(rows: usize, to: f64, seed: u64) -> Run {
        let reward = |i: usize| 0.3 + 0.05 * noise(seed, i);
        run(rows, &[("grad_norm", &norm(rows, to, seed)), ("reward.mean", &reward)])
    }

    #[test]
    fn a_gradient_that_dies_is_found() {
        always("warning", RULE, |seed| shrinks(100, 1e-4, seed));
    }

    #[test]
    fn a_gradient_that_settles_is_left_alone() {
        always("quiet", RULE, |seed| shrinks(100, 0.05, seed));
        always("quiet", RULE, |seed| shrinks(100, 0.5, seed));
    }

    #[test]
    fn there_may_be_nothing_left_to_learn() {
        always("quiet", RULE, |seed| {
            let reward = |i: usize| (0.2 + 0.01 * i as f64).min(1.0);
            let top = |_: usize| 1.0;
            let norm = norm(100, 1e-4, seed);
            run(100, &[("grad_norm", &norm), ("reward.mean", &reward), ("reward.max", &top)])
        });
        always("quiet", RULE, |seed| {
            let std = |i: usize| 0.4 * (-0.05 * i as f64).exp();
            let norm = |i: usize| std(i) * scatter(seed, i, 0.2);
            let reward = |i: usize| 0.5 + 0.05 * noise(seed, i);
            run(100, &[("grad_norm", &norm), ("reward.mean", &reward), ("reward.std", &std)])
        });
        let stopped = |i: usize| if i < 60 { 1e-6 } else { 0.0 };
        let reward = |i: usize| 0.3 + 0.05 * noise(1, i);
        let norm = norm(100, 1e-4, 1);
        let run = run(100, &[("grad_norm", &norm), ("reward.mean", &reward), ("lr", &stopped)]);
        assert_eq!(said(&run, RULE), "quiet");
    }

    #[test]
    fn the_gradient_of_one_flat_update_in_a_row_of_several_is_left_alone() {
        // Four of five groups are flat, one group an update, and rows hold the last gradient.
        let flat = |i: usize| 0.7 + 0.1 * (i % 2) as f64;
        let reward = |i: usize| 0.85 + 0.05 * noise(3, i);
        let late = |i: usize| if i < 10 || i.is_multiple_of(6) { 0.4 } else { 0.0 };
        let never = |i: usize| if i.is_multiple_of(6) { 0.4 } else { 0.0 };
        for norm in [&late as &dyn Fn(usize) -> f64, &never] {
            let columns = [("grad_norm", norm), ("reward.mean", &reward), ("groups.flat", &flat)];
            assert_eq!(said(&run(40, &columns), RULE), "quiet");
        }
        let rare = |i: usize| 0.1 + 0.01 * noise(5, i);
        let columns = [("grad_norm", &late as &dyn Fn(usize) -> f64), ("reward.mean", &reward)];
        let few = run(40, &[columns[0], columns[1], ("groups.flat", &rare)]);
        assert_eq!(said(&few, RULE), "warning");
    }

    #[test]
    fn preferences_and_few_rows_are_not_judged() {
        let pairs = run(60, &[("grad_norm", &norm(60, 1e-4, 1)), ("pref.margin", &|i| i as f64)]);
        assert_eq!(said(&pairs, RULE), "not applicable");
        assert_eq!(said(&shrinks(19, 1e-4, 1), RULE), "insufficient");
        let alone = run(60, &[("grad_norm", &norm(60, 1e-4, 1))]);
        assert_eq!(said(&alone, RULE), "insufficient");
    }
}
