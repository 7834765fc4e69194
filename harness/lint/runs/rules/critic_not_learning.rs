//! The critic explains nothing of the returns.
//!
//! ### Fires when
//! The explained variance is 0.05 or less in the middle and at the end of at least 50 rows, or ends
//! below -1 in at least 10, which is an error. Quiet while it rises, and where returns hardly
//! differ: then there is nothing to explain. So it is where a critic once explained a tenth and the
//! reward rises. Where it rises but ends below -1 after 50 rows, it is a warning.
//!
//! ### Not said
//! That the policy does not learn: advantages without a useful baseline scatter more, not wrongly.
//!
//! ### Causes
//! - the critic is frozen, or not in an optimiser
//! - returns are of other rows, or shifted by a position
//! - the learning rate of the critic is too low, or so high that it diverges
//!
//! ### Next
//! - shakedown check --stage advantage
//! - shakedown check --stage loss
//! - train the critic alone for some steps before the policy
//!
//! ### Source
//! Explained variance is 1 minus the variance of the errors over that of the returns: a constant
//! has 0.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::ceiling;
use crate::runs::statistics::{Statistics, mean, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["value.explained"],
    explains: &[],
    contracts: &[
        ("value-loss", &["zero-at-the-target", "constant-error", "gradient-where-it-is-held"]),
        ("gae", &["returns-minus-values", "td-error"]),
        ("returns", &["recursion"]),
    ],
    catches: &["critic-frozen"],
    check,
};

/// Explained variance of a critic that learns nothing, and of one that is worse than a constant.
const LIMITS: [f64; 2] = [0.05, -1.0];

/// How many rows tell the first, and the second.
const ROWS: [usize; 2] = [50, 10];

fn check(run: &Run) -> Judgement {
    let explained = run.figures("value.explained", ROWS[1])?;
    let is_late = explained.n() >= ROWS[0];
    let learns = explained.trend() >= 4.0 && explained.tau >= 0.2;
    let is_worse = explained.last < LIMITS[1];
    if !is_late && !is_worse {
        run.need("value.explained", ROWS[0])?;
    }
    let is_useless = is_worse || explained.last.max(explained.mid) <= LIMITS[0];
    let is_slow = learns && !(is_worse && is_late);
    if !is_useless || is_slow || has_nothing_to_explain(run) || has_done_its_work(run, &explained) {
        return Ok(vec![]);
    }
    let limit = LIMITS[usize::from(is_worse)];
    let found = format!(
        "the critic explains {} of the variance of the returns, after {} rows",
        short(explained.last),
        explained.n(),
    );
    let steps = run.steps_where("value.explained", |row| row.mean <= limit).unwrap_or_default();
    let is_error = is_worse && !learns;
    let firing = if is_error { Firing::error(found) } else { Firing::warning(found) };
    firing.at_steps(steps).metric("value.explained", "last", explained.last, Some(limit)).into()
}

/// Whether it once explained something, and the reward rises: the better the policy, the less of
/// the returns is left that anything could explain.
fn has_done_its_work(run: &Run, explained: &Statistics) -> bool {
    let rises = run.statistics("reward.mean").is_some_and(|reward| reward.rises());
    rises && explained.peak().0 >= 2.0 * LIMITS[0]
}

/// Whether most rows at the end have rewards that do not differ, or the best there are.
fn has_nothing_to_explain(run: &Run) -> bool {
    // Advantages that are divided by their deviation always seem to differ.
    let is_flat = run.statistics("signal").is_some_and(|signal| mean(signal.tail()) < 0.5);
    is_flat || ceiling::is_reached(run)
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, noise, run, said};

    const RULE: &str = "critic-not-learning";

    /// It goes from one level to another in so many rows.
    fn explains(rows: usize, [from, to]: [f64; 2], seed: u64) -> Run {
        let level = |i: usize| from + (to - from) * i as f64 / rows as f64;
        run(rows, &[("value.explained", &|i| level(i) + 0.03 * noise(seed, i))])
    }

    #[test]
    fn critics_that_learn_nothing_are_found() {
        always("warning", RULE, |seed| explains(60, [-0.05, -0.05], seed));
        always("error", RULE, |seed| explains(12, [-2.0, -2.0], seed));
        always("error", RULE, |seed| explains(60, [0.2, -3.0], seed));
        always("warning", RULE, |seed| explains(200, [-300.0, -100.0], seed));
    }

    #[test]
    fn slow_critics_are_left_alone() {
        always("quiet", RULE, |seed| explains(60, [-0.6, 0.0], seed));
        always("quiet", RULE, |seed| explains(30, [-8.0, -3.0], seed));
        always("quiet", RULE, |seed| explains(60, [0.15, 0.15], seed));
    }

    #[test]
    fn a_critic_that_explains_something_now_and_then_is_left_alone() {
        let explained = |i: usize| if i < 45 { 0.1 } else { 0.02 };
        assert_eq!(said(&run(80, &[("value.explained", &explained)]), RULE), "quiet");
    }

    #[test]
    fn returns_that_do_not_differ_explain_it() {
        let flat = run(60, &[("value.explained", &|_| -0.5), ("reward.std", &|_| 0.0)]);
        assert_eq!(said(&flat, RULE), "quiet");
        let reward = |i: usize| (0.04 * i as f64).min(1.4);
        let learnt = run(160, &[("value.explained", &|_| -183.0), ("reward.mean", &reward)]);
        assert_eq!(said(&learnt, RULE), "quiet");
    }

    #[test]
    fn a_critic_that_explained_what_there_was_is_left_alone() {
        let explained = |i: usize| if i < 40 { 0.2 } else { -0.2 * i as f64 };
        let reward = |i: usize| 1.0 - (-0.04 * i as f64).exp() + 0.02 * noise(1, i);
        let metrics: [(&str, &dyn Fn(usize) -> f64); 2] =
            [("value.explained", &explained), ("reward.mean", &reward)];
        assert_eq!(said(&run(100, &metrics), RULE), "quiet");
        assert_eq!(said(&run(100, &metrics[..1]), RULE), "error");
    }

    #[test]
    fn few_rows_tell_only_of_the_worst() {
        assert_eq!(said(&explains(49, [0.0, 0.0], 1), RULE), "insufficient");
        assert_eq!(said(&explains(9, [-5.0, -5.0], 1), RULE), "insufficient");
    }
}
