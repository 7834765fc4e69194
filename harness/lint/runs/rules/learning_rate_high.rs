//! The learning rate is far above what reinforcement learning of language models bears.
//!
//! ### Fires when
//! The largest learning rate is 1e-3 or more; or above 1e-5, where it is known that all parameters
//! are trained and not an adapter.
//!
//! ### Not said
//! That a smaller one is right: see whether the KL to the old policy stays small.
//!
//! ### Causes
//! - a rate for adapters, or for pre-training, was kept
//! - a number without its exponent
//!
//! ### Next
//! - shakedown check-config FILE
//! - divide the learning rate by ten
//!
//! ### Source
//! Published recipes train all parameters at 1e-7 to 1e-5, adapters at up to 5e-4.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::runs::Run;
use crate::runs::statistics::short;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &["lr"],
    explains: &[
        "non-finite",
        "reward-collapses",
        "kl-explodes",
        "kl-spikes",
        "entropy-collapses",
        "entropy-explodes",
        "update-too-large",
        "gradient-explodes",
        "gradient-spikes",
    ],
    contracts: &[("policy-update", &["tiny-learning-rate", "one-step"])],
    catches: &["rate-1e-2"],
    check,
};

/// The highest rates: of anything, and of all parameters.
const LIMITS: [f64; 2] = [1e-3, 1e-5];

fn check(run: &Run) -> Judgement {
    if run.settings.is_supervised {
        return Err(not_applicable("supervised training bears higher rates"));
    }
    let lr = run.need("lr", 1)?;
    if lr.name.contains('(') {
        return Err(insufficient("the learning rate is logged in a unit of its own"));
    }
    let is_full = run.settings.flag("lora") == Some(false);
    let highest = lr.max();
    let is_above = |rate: f64| rate >= LIMITS[0] || (is_full && rate > LIMITS[1]);
    let limit = if highest >= LIMITS[0] || !is_full { LIMITS[0] } else { LIMITS[1] };
    if !is_above(highest - lr.resolution) {
        return match is_above(highest + lr.resolution) {
            true => Err(insufficient("the learning rate is logged with too few digits")),
            false => Ok(vec![]),
        };
    }
    let what = if is_full { " for all parameters" } else { "" };
    let found = format!("the learning rate reaches {}{what}", short(highest));
    let steps = run.steps_where("lr", |row| row.max >= limit).unwrap_or_default();
    let firing = Firing::warning(found).at_steps(steps);
    firing.metric("lr", "max", highest, Some(limit)).into()
}

#[cfg(test)]
mod tests {
    use crate::runs::rules::trial2::{run, run_rounded, said, set};

    const RULE: &str = "learning-rate-high";

    #[test]
    fn rates_that_nothing_bears_are_found() {
        assert_eq!(said(&run(30, &[("lr", &|_| 1e-2)]), RULE), "warning");
        assert_eq!(said(&run(1, &[("lr", &|_| 1e-3)]), RULE), "warning");
        let peak = |i: usize| if i == 20 { 1e-2 } else { 1e-6 };
        assert_eq!(said(&run(30, &[("lr", &peak)]), RULE), "warning");
        assert_eq!(said(&set(run(30, &[("lr", &|_| 2e-5)]), "lora", false), RULE), "warning");
        assert_eq!(said(&set(run(30, &[("lr", &|_| 2e-5)]), "lora", 0), RULE), "warning");
    }

    #[test]
    fn usual_rates_are_left_alone() {
        assert_eq!(said(&run(30, &[("lr", &|_| 1e-6)]), RULE), "quiet");
        assert_eq!(said(&run(30, &[("lr", &|_| 2e-4)]), RULE), "quiet");
        assert_eq!(said(&set(run(30, &[("lr", &|_| 2e-4)]), "lora", 16), RULE), "quiet");
        assert_eq!(said(&set(run(30, &[("lr", &|_| 1e-5)]), "lora", false), RULE), "quiet");
    }

    #[test]
    fn rounded_rates_and_other_units_say_nothing() {
        let rounded = run_rounded(30, 5e-4, &[("lr", &|_| 1e-6)]);
        assert_eq!(said(&rounded, RULE), "quiet");
        assert_eq!(said(&set(rounded, "lora", false), RULE), "insufficient");
        let mut scaled = run(30, &[("lr", &|_| 0.01)]);
        let lr = scaled.series.get_mut("lr").expect("it is logged");
        lr.name = "actor/lr(1e-4)".to_owned();
        assert_eq!(said(&scaled, RULE), "insufficient");
    }
}
