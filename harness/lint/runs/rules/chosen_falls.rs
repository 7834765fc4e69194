//! The chosen completions become less likely.
//!
//! ### Fires when
//! The implicit reward of the chosen side falls below 0 while the margin rises: a note, and a
//! warning where the chosen side loses more than the margin gains.
//!
//! ### Not said
//! That the policy gets worse: in most training on preferences both sides fall a little, and the
//! rejected one further.
//!
//! ### Causes
//! - chosen and rejected have much in common, and its probability is pushed down with the rejected
//!   one
//! - chosen completions that the policy would not write itself
//! - a small beta, or a high learning rate
//!
//! ### Next
//! - add a supervised term on the chosen side
//! - shakedown check --stage loss
//! - leave out pairs whose sides are nearly the same
//!
//! ### Source
//! Likelihood displacement, arXiv 2410.08847; DPO-Positive, arXiv 2402.13228.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::pairs::margin;
use crate::runs::statistics::{TREND_POINTS, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["pref.chosen", "pref.margin"],
    explains: &[],
    contracts: &[("preference-loss", &["gradients-opposite", "implicit-rewards"])],
    catches: &["likelihood-displaced"],
    check,
};

fn check(run: &Run) -> Judgement {
    let margin = margin(run, TREND_POINTS)?;
    if run.get("pref.chosen").is_none() {
        return Err(insufficient("the chosen side is not logged by itself"));
    }
    let chosen = run.figures("pref.chosen", TREND_POINTS)?;
    if !chosen.falls() || chosen.last >= 0.0 || !margin.rises() {
        return Ok(vec![]);
    }
    let (lost, gained) = (chosen.first - chosen.last, margin.last - margin.first);
    let found = format!(
        "the chosen side falls from {} to {} nats, while the margin grows by {}",
        short(chosen.first),
        short(chosen.last),
        short(gained),
    );
    let firing = if lost > gained { Firing::warning(found) } else { Firing::note(found) };
    let steps = run.steps_where("pref.chosen", |row| row.mean < 0.0).unwrap_or_default();
    firing.at_steps(steps).metric("pref.chosen", "last", chosen.last, Some(0.0)).into()
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, noise, run, said};

    const RULE: &str = "chosen-falls";

    /// Both sides change by so much a row.
    fn sides(rows: usize, [chosen, rejected]: [f64; 2], seed: u64) -> Run {
        let side = |slope: f64, seed: u64| move |i: usize| slope * i as f64 + 0.02 * noise(seed, i);
        let (chosen, rejected) = (side(chosen, seed), side(rejected, seed + 99));
        run(rows, &[("pref.chosen", &chosen), ("pref.rejected", &rejected)])
    }

    #[test]
    fn displacement_is_a_warning() {
        always("warning", RULE, |seed| sides(80, [-0.1, -0.15], seed));
    }

    #[test]
    fn a_chosen_side_that_falls_a_little_is_a_note() {
        always("note", RULE, |seed| sides(80, [-0.01, -0.04], seed));
    }

    #[test]
    fn sides_that_part_or_stay_are_left_alone() {
        always("quiet", RULE, |seed| sides(80, [0.01, -0.02], seed));
        always("quiet", RULE, |seed| sides(80, [0.0, -0.02], seed));
        always("quiet", RULE, |seed| sides(80, [-0.02, 0.02], seed));
    }

    #[test]
    fn few_rows_and_margins_alone_are_not_judged() {
        assert_eq!(said(&sides(19, [-0.1, -0.15], 1), RULE), "insufficient");
        let margins = run(60, &[("pref.margin", &|i| i as f64)]);
        assert_eq!(said(&margins, RULE), "insufficient");
    }
}
