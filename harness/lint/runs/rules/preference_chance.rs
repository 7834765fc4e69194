//! Pairs are told apart no better than by a coin.
//!
//! ### Fires when
//! The accuracy is between 0.45 and 0.55 at the end of at least 50 rows, and the margin does not
//! rise.
//!
//! ### Not said
//! That the policy does not change: it may follow noise.
//!
//! ### Causes
//! - labels are noise, or both sides are drawn from the same
//! - the learning rate is too low to tell
//! - prompt or completion is cut before the sides differ
//!
//! ### Next
//! - shakedown check-data FILE
//! - train on a hundred pairs for some passes: these it must learn by heart
//!
//! ### Source
//! An accuracy of a half is what random labels give.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::pairs::margin;
use crate::runs::statistics::{TREND_POINTS, mean, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Reward,
    needs: &["pref.accuracy", "pref.margin"],
    explains: &[],
    contracts: &[],
    catches: &["labels-noise"],
    check,
};

/// The accuracies that a coin has.
const CHANCE: [f64; 2] = [0.45, 0.55];

fn check(run: &Run) -> Judgement {
    let margin = margin(run, TREND_POINTS)?;
    let accuracy = run.figures("pref.accuracy", 50)?;
    let last = mean(accuracy.tail());
    if !(CHANCE[0]..=CHANCE[1]).contains(&last) || margin.rises() {
        return Ok(vec![]);
    }
    let found = format!(
        "the accuracy is {} at the end of {} rows, and the margin does not rise",
        short(last),
        accuracy.n(),
    );
    let steps = run.steps_from("pref.accuracy", 0);
    let firing = Firing::warning(found).at_steps(steps);
    firing.metric("pref.accuracy", "mean of the tail", last, Some(CHANCE[1])).into()
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, noise, run, said};

    const RULE: &str = "preference-chance";

    fn pairs(rows: usize, accuracy: f64, slope: f64, seed: u64) -> Run {
        let margin = |i: usize| slope * i as f64 + 0.02 * noise(seed, i);
        let accuracy = |i: usize| accuracy + 0.05 * noise(seed, i + 500);
        run(rows, &[("pref.accuracy", &accuracy), ("pref.margin", &margin)])
    }

    #[test]
    fn a_coin_is_found() {
        always("warning", RULE, |seed| pairs(100, 0.5, 0.0, seed));
    }

    #[test]
    fn accuracies_above_chance_and_margins_that_grow_are_left_alone() {
        always("quiet", RULE, |seed| pairs(100, 0.65, 0.0, seed));
        always("quiet", RULE, |seed| pairs(100, 0.53, 0.005, seed));
    }

    #[test]
    fn fifty_rows_are_needed_and_a_margin() {
        assert_eq!(said(&pairs(49, 0.5, 0.0, 1), RULE), "insufficient");
        assert_eq!(said(&run(60, &[("pref.accuracy", &|_| 0.5)]), RULE), "insufficient");
    }
}
