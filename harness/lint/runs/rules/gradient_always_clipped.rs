//! The limit of the gradient's norm is the step size.
//!
//! ### Fires when
//! In 95 % of at least 10 rows the gradient's norm is more than 10 times the limit that is set.
//!
//! ### Not said
//! That this is wrong: an optimiser that divides by the gradient's size takes the same steps
//! anyway. But batches with more signal then weigh no more than others.
//!
//! ### Causes
//! - a limit that was meant for another loss, or for another way to sum it
//! - a loss that is a sum over tokens where a mean is meant
//!
//! ### Next
//! - set the limit near the usual norm
//! - shakedown check --stage loss
//!
//! ### Source
//! verifiers#82.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::runs::Run;
use crate::runs::statistics::{median, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &["grad_norm", "gradient.clip"],
    explains: &[],
    contracts: &[("accumulated-loss", &["constant-loss", "partition"])],
    catches: &["limit-tiny"],
    check,
};

/// How many times the limit, and in what share of the rows.
const TIMES: f64 = 10.0;
const SHARE: f64 = 0.95;

fn check(run: &Run) -> Judgement {
    let set = run.settings.number("gradient.clip");
    let limit = set.ok_or_else(|| insufficient("the limit of the gradient's norm is not known"))?;
    if limit <= 0.0 {
        return Err(not_applicable("gradients are not clipped"));
    }
    let norms = run.need("grad_norm", 10)?.values();
    let above = norms.iter().filter(|norm| **norm > TIMES * limit).count();
    if (above as f64) < SHARE * norms.len() as f64 {
        return Ok(vec![]);
    }
    let usual = median(&norms);
    let found = format!(
        "{above} of {} rows have a gradient above {TIMES} times the limit of {limit}: {} as a rule",
        norms.len(),
        short(usual),
    );
    let steps = run.steps_where("grad_norm", |row| row.mean > TIMES * limit).unwrap_or_default();
    Firing::note(found)
        .at_steps(steps)
        .metric("grad_norm", "median", usual, Some(TIMES * limit))
        .because(Some("gradient.clip"), format!("the gradient's norm is limited to {limit}"))
        .into()
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, run, said, scatter, set};

    const RULE: &str = "gradient-always-clipped";

    fn norms(rows: usize, norm: f64, seed: u64) -> Run {
        run(rows, &[("grad_norm", &|i| norm * scatter(seed, i, 0.2))])
    }

    #[test]
    fn a_tiny_limit_is_a_note() {
        always("note", RULE, |seed| set(norms(50, 3.0, seed), "gradient.clip", 0.01));
    }

    #[test]
    fn clipping_now_and_then_or_a_little_is_left_alone() {
        always("quiet", RULE, |seed| set(norms(50, 3.0, seed), "gradient.clip", 1.0));
        let most = run(100, &[("grad_norm", &|i| if i.is_multiple_of(10) { 0.5 } else { 30.0 })]);
        assert_eq!(said(&set(most, "gradient.clip", 1.0), RULE), "quiet");
    }

    #[test]
    fn the_limit_must_be_known() {
        assert_eq!(said(&norms(50, 30.0, 1), RULE), "insufficient");
        assert_eq!(said(&set(norms(50, 30.0, 1), "gradient.clip", 0), RULE), "not applicable");
        assert_eq!(said(&set(norms(9, 30.0, 1), "gradient.clip", 1), RULE), "insufficient");
    }
}
