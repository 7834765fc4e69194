//! Training lags behind what it learns from.
//!
//! ### Fires when
//! At the end trajectories are more than 4 steps old on average, or the oldest more than 16.
//!
//! ### Not said
//! That asynchronous rollouts are harm: a few steps are what they cost.
//!
//! ### Causes
//! - the queue between sampling and training is too deep
//! - long completions that are finished under later weights
//! - too few engines for the trainer
//!
//! ### Next
//! - bound the age of what is trained on, or the queue
//! - shakedown check --stage loss
//!
//! ### Source
//! AReaL, arXiv 2505.24298, on the age that an asynchronous trainer bears.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::statistics::short;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &["stale.mean", "stale.max"],
    explains: &[],
    contracts: &[("policy-loss", &["clip-fraction", "clipped-tokens"])],
    catches: &["queue-deep"],
    check,
};

/// The metrics, what they are, and how many steps are too many.
const AGES: [(&str, &str, f64); 2] = [
    ("stale.mean", "are {} steps old on average", 4.0),
    ("stale.max", "are up to {} steps old", 16.0),
];

fn check(run: &Run) -> Judgement {
    let mut is_known = false;
    for (id, text, limit) in AGES {
        let Some(age) = run.statistics(id).filter(|age| age.n() >= 3) else { continue };
        is_known = true;
        if age.last > limit {
            let found = format!("trajectories {}", text.replace("{}", &short(age.last)));
            let steps = run.steps_where(id, |row| row.mean > limit).unwrap_or_default();
            let firing = Firing::warning(found).at_steps(steps);
            return firing.metric(id, "last", age.last, Some(limit)).into();
        }
    }
    if is_known { Ok(vec![]) } else { Err(insufficient("no age of trajectories is logged")) }
}

#[cfg(test)]
mod tests {
    use crate::runs::rules::trial2::{run, said, steps};

    const RULE: &str = "stale-rollouts";

    #[test]
    fn old_trajectories_are_found() {
        assert_eq!(said(&run(30, &[("stale.mean", &|i| i as f64 / 3.0)]), RULE), "warning");
        assert_eq!(said(&run(30, &[("stale.max", &|_| 17.0)]), RULE), "warning");
        let both = run(30, &[("stale.mean", &|_| 3.0), ("stale.max", &|i| i as f64)]);
        assert_eq!(steps(&both, RULE), Some([7 * 17 + 3, 7 * 29 + 3]));
    }

    #[test]
    fn a_few_steps_are_usual() {
        assert_eq!(said(&run(30, &[("stale.mean", &|_| 4.0)]), RULE), "quiet");
        assert_eq!(said(&run(30, &[("stale.max", &|_| 16.0)]), RULE), "quiet");
        let once = run(30, &[("stale.mean", &|i| if i == 29 { 20.0 } else { 1.0 })]);
        assert_eq!(said(&once, RULE), "quiet");
        assert_eq!(said(&run(2, &[("stale.mean", &|_| 40.0)]), RULE), "insufficient");
    }
}
