//! The policy learns to prefer what was rejected.
//!
//! ### Fires when
//! The accuracy falls, to 0.4 or less at the end; or the margin falls below 0, and the accuracy,
//! where it is logged, is below a half.
//!
//! ### Not said
//! That labels are noise: then the accuracy stays at a half, it does not fall.
//!
//! ### Causes
//! - chosen and rejected are swapped, in the data or on their way
//! - the sign of the loss or of the margin
//! - policy and reference are swapped
//!
//! ### Next
//! - shakedown check --stage loss
//! - shakedown check-data FILE
//! - print some pairs as the loss receives them
//!
//! ### Source
//! DPO, arXiv 2305.18290: the loss falls as the margin of the chosen side grows.

use crate::rules::{Firing, Head, Judgement, Unjudged};
use crate::runs::Run;
use crate::runs::pairs::{margin, margin_id};
use crate::runs::statistics::{Statistics, TREND_POINTS, mean, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["pref.accuracy", "pref.margin"],
    explains: &[],
    contracts: &[("preference-loss", &["falls-with-the-margin", "opposite-pairs"])],
    catches: &["dpo-swapped"],
    check,
};

/// An accuracy that is worse than chance.
const WORSE: f64 = 0.4;

fn check(run: &Run) -> Judgement {
    let margin = margin(run, TREND_POINTS)?;
    let accuracy = run.statistics("pref.accuracy").filter(|one| one.n() >= TREND_POINTS);
    match accuracy {
        Some(accuracy) if accuracy.falls() && mean(accuracy.tail()) <= WORSE => {
            of_accuracy(run, &accuracy)
        }
        Some(accuracy) if mean(accuracy.tail()) >= 0.5 => Ok(vec![]),
        _ => of_margin(run, &margin),
    }
}

fn of_accuracy(run: &Run, accuracy: &Statistics) -> Judgement {
    let last = mean(accuracy.tail());
    let found = format!(
        "the accuracy falls from {} to {}: the rejected side gains",
        short(accuracy.first),
        short(last),
    );
    let steps = run.steps_where("pref.accuracy", |row| row.mean <= WORSE).unwrap_or_default();
    let firing = Firing::error(found).at_steps(steps);
    firing.metric("pref.accuracy", "mean of the tail", last, Some(WORSE)).into()
}

fn of_margin(run: &Run, margin: &Statistics) -> Result<Vec<Firing>, Unjudged> {
    if !margin.falls() || margin.last >= 0.0 {
        return Ok(vec![]);
    }
    let found = format!("the margin falls from {} to {}", short(margin.first), short(margin.last));
    let steps = run.steps_where(margin_id(run), |row| row.mean < 0.0).unwrap_or_default();
    let firing = Firing::error(found).at_steps(steps);
    firing.metric(margin_id(run), "margin, last", margin.last, Some(0.0)).into()
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, noise, run, said};

    const RULE: &str = "preference-inverted";

    /// The margin changes by so much a row; chosen and rejected share it.
    fn pairs(rows: usize, slope: f64, both: bool, seed: u64) -> Run {
        let margin = |i: usize| slope * i as f64 + 0.02 * noise(seed, i);
        let accuracy =
            |i: usize| 0.5 + 0.4 * (30.0 * slope * i as f64).tanh() + 0.03 * noise(seed, i + 500);
        let chosen = |i: usize| -0.3 * margin(i) - 0.01 * i as f64;
        let rejected = |i: usize| chosen(i) - margin(i);
        match both {
            true => run(rows, &[("pref.chosen", &chosen), ("pref.rejected", &rejected)]),
            false => run(rows, &[("pref.accuracy", &accuracy), ("pref.margin", &margin)]),
        }
    }

    #[test]
    fn swapped_sides_are_found() {
        always("error", RULE, |seed| pairs(60, -0.02, false, seed));
        always("error", RULE, |seed| pairs(60, -0.02, true, seed));
    }

    #[test]
    fn margins_that_grow_or_stay_are_left_alone() {
        for both in [true, false] {
            always("quiet", RULE, |seed| pairs(60, 0.02, both, seed));
            always("quiet", RULE, |seed| pairs(60, 0.0, both, seed));
        }
    }

    #[test]
    fn a_few_heavy_pairs_do_not_invert_the_others() {
        let margin = |i: usize| 0.2 - 0.02 * i as f64;
        let most = run(60, &[("pref.accuracy", &|_| 0.7), ("pref.margin", &margin)]);
        assert_eq!(said(&most, RULE), "quiet");
    }

    #[test]
    fn other_training_and_few_rows_are_not_judged() {
        let task = run(60, &[("pref.accuracy", &|i| 0.5 - 0.005 * i as f64)]);
        assert_eq!(said(&task, RULE), "insufficient");
        assert_eq!(said(&pairs(19, -0.02, false, 1), RULE), "insufficient");
        assert_eq!(said(&run(60, &[("loss", &|_| 1.0)]), RULE), "not applicable");
    }
}
