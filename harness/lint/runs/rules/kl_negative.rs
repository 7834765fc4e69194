//! The KL to the reference is negative.
//!
//! ### Fires when
//! For k2, k3 and absolute values: `kl.ref` is below -1e-4, an error in 3 rows, else a warning.
//! For k1, or where the estimator is not known (10 rows): it ends below -0.01 by more than 3
//! standard errors of its last window; an error where besides more than nine rows in ten are
//! negative, else a warning.
//!
//! ### Not said
//! That a k1 which scatters around 0 is wrong: its rows may have either sign, its mean may not.
//!
//! ### Causes
//! - reference and policy are swapped
//! - the sign of the difference of log-probabilities
//! - completions that the policy did not sample: another temperature, filters, stale weights
//!
//! ### Next
//! - shakedown check --stage log-probability
//! - shakedown explain kl-estimate
//!
//! ### Source
//! A divergence is not negative, nor is any single value of k2 and k3: Schulman, Approximating KL
//! divergence (2020).

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::runs::series::{Bucket, Series};
use crate::runs::statistics::Statistics;
use crate::runs::{Run, known};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::rounded;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::LogProbability,
    needs: &["kl.ref"],
    explains: &[],
    contracts: &[("kl-estimate", &["non-negative", "direction", "expectation"])],
    catches: &["kl-sign"],
    check,
};

/// What rounding may make of an estimate that cannot be negative.
const ROUNDING: f64 = 1e-4;
/// A k1 that ends below this is not 0 up to chance.
const CLEARLY: f64 = -0.01;

fn check(run: &Run) -> Judgement {
    let kl = run.need("kl.ref", 3)?;
    match known::kl_is_never_negative(run) {
        Some(true) => Ok(never_negative(kl).into_iter().collect()),
        _ => scattered(run, kl),
    }
}

fn never_negative(kl: &Series) -> Option<Firing> {
    let limit = -ROUNDING - kl.resolution;
    let below: Vec<&Bucket> = kl.finite().filter(|bucket| bucket.min < limit).collect();
    let (first, last) = (below.first()?, below.last()?);
    let severity = if below.len() < 3 { Severity::Warning } else { Severity::Error };
    let found = format!(
        "{} is as low as {}, and its estimator is never negative",
        kl.name,
        rounded(kl.min()),
    );
    let firing = Firing::new(severity, found).at_steps([first.steps[0], last.steps[1]]);
    Some(firing.metric("kl.ref", "min", kl.min(), Some(limit)))
}

fn scattered(run: &Run, kl: &Series) -> Judgement {
    let is_negative = |figures: &Statistics| {
        let error = figures.sigma / (figures.window as f64).sqrt();
        figures.last < CLEARLY - kl.resolution && figures.last < -3.0 * error
    };
    let Some(figures) = run.figures("kl.ref", 10)?.widths().find(is_negative) else {
        return Ok(vec![]);
    };
    let below = figures.values.iter().filter(|value| **value < 0.0).count();
    let share = below as f64 / figures.n() as f64;
    let severity = if share > 0.9 { Severity::Error } else { Severity::Warning };
    let found = format!(
        "{} ends at {}, negative in {below} of {} rows, and a divergence is not negative",
        kl.name,
        rounded(figures.last),
        figures.n(),
    );
    Firing::new(severity, found)
        .at_steps(run.steps_where("kl.ref", |bucket| bucket.min < 0.0).unwrap_or_default())
        .metric("kl.ref", "last", figures.last, Some(CLEARLY))
        .metric("kl.ref", "share of negative rows", share, Some(0.9))
        .into()
}

#[cfg(test)]
mod tests {
    use super::super::trial::{chance, rounded, run, severities, status};
    use super::*;
    use crate::report::RuleStatus;

    const RULE: &str = "kl-negative";

    fn kls(of: impl Fn(usize) -> f64) -> Run {
        run(60, |row| vec![("kl.ref", of(row))])
    }

    fn k3(run: Run) -> Run {
        run.with(None, &[("kl.estimator", "low_var_kl".into())])
    }

    #[test]
    fn a_k1_may_scatter_around_nought() {
        let healthy = kls(|row| 0.02 * (chance(row) - 0.5) + 1e-5 * row as f64);
        assert_eq!(status(&healthy, RULE), RuleStatus::Quiet);
        let wide = kls(|row| 2.0 * (chance(row) - 0.5));
        assert_eq!(status(&wide, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn a_k1_that_becomes_negative_has_the_wrong_sign() {
        let swapped = kls(|row| -0.002 * row as f64 + 0.002 * (chance(row) - 0.5));
        assert_eq!(severities(&swapped, RULE), [Severity::Error]);
        let late = kls(|row| if row < 30 { 0.01 } else { -0.2 + 0.01 * chance(row) });
        assert_eq!(severities(&late, RULE), [Severity::Warning]);
    }

    #[test]
    fn a_k3_is_not_even_a_little_negative() {
        assert_eq!(status(&k3(kls(|_| -0.9e-4)), RULE), RuleStatus::Quiet);
        assert_eq!(severities(&k3(kls(|_| -2e-4)), RULE), [Severity::Error]);
        let once = k3(kls(|row| if row == 4 { -0.1 } else { 0.1 }));
        assert_eq!(severities(&once, RULE), [Severity::Warning]);
        let zeros = k3(rounded(3, 9, |_| vec![("kl.ref", -5.9e-4)]));
        assert_eq!(severities(&zeros, RULE), [Severity::Error]);
        let zeros = k3(rounded(2, 9, |_| vec![("kl.ref", -4.9e-3)]));
        assert_eq!(status(&zeros, RULE), RuleStatus::Quiet, "a rounded nought");
    }

    #[test]
    fn a_small_mean_shows_in_a_long_noisy_run() {
        let of = |mean: f64| run(5000, |row| vec![("kl.ref", mean + 0.2 * (chance(row) - 0.5))]);
        assert_eq!(severities(&of(-0.015), RULE), [Severity::Warning]);
        assert_eq!(status(&of(0.0), RULE), RuleStatus::Quiet);
    }

    #[test]
    fn which_of_two_kls_is_logged_is_not_known() {
        let both = [("kl.loss", 0.1.into()), ("kl.reward", 0.1.into())];
        let run = k3(kls(|row| 0.02 * (chance(row) - 0.5))).with(None, &both);
        assert_eq!(status(&run, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn few_rows_say_little() {
        let run = |rows| run(rows, |_| vec![("kl.ref", -0.5)]);
        assert_eq!(status(&run(9), RULE), RuleStatus::Insufficient);
        assert_eq!(severities(&run(10), RULE), [Severity::Error]);
    }
}
