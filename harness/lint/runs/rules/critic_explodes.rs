//! The critic's loss grows without end.
//!
//! ### Fires when
//! The critic's loss, or the norm of its gradient, ends at 10 times its first level or more, and
//! grows on the way; an error at 100 times. It may grow as the variance of the rewards does. Quiet
//! where the critic explains half of the variance of the returns.
//!
//! ### Not said
//! That the loss must fall: as returns grow apart, there is more to predict.
//!
//! ### Causes
//! - the learning rate of the critic is too high
//! - returns that are not scaled, or rewards without a bound
//! - returns that are summed twice
//!
//! ### Next
//! - shakedown check --stage loss
//! - shakedown check --stage advantage
//! - halve the learning rate of the critic, or scale the rewards
//!
//! ### Source
//! A squared error is in units of squared returns: it follows their variance, as long as it
//! converges.

use crate::rules::{Firing, Head, Judgement, Unjudged, insufficient};
use crate::runs::Run;
use crate::runs::statistics::{Statistics, TREND_POINTS, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["value.loss", "value.grad_norm"],
    explains: &[],
    contracts: &[("value-loss", &["constant-error", "even", "shift-invariant"])],
    catches: &["targets-unscaled"],
    check,
};

/// How many times the first level is a warning, and an error.
const LIMITS: [f64; 2] = [10.0, 100.0];

/// What is compared, what it is called, and the power of the returns that it grows with.
const MEASURES: [(&str, &str, f64); 2] =
    [("value.loss", "loss", 2.0), ("value.grad_norm", "gradient's norm", 1.0)];

fn check(run: &Run) -> Judgement {
    let mut why = None;
    for (id, name, power) in MEASURES {
        match one(run, id, name, power) {
            Ok(fired) if fired.is_empty() => why = Some(Ok(fired)),
            Ok(fired) => return Ok(fired),
            Err(reason) => why = why.or(Some(Err(reason))),
        }
    }
    why.unwrap_or_else(|| Ok(vec![]))
}

fn one(run: &Run, id: &str, name: &str, power: f64) -> Judgement {
    let measure = run.figures(id, TREND_POINTS)?;
    let first = measure.first + run.series[id].resolution;
    if first <= 0.0 {
        return Err(insufficient(format!("{id} is 0 at first")));
    }
    let expected = first * spread_growth(run)?.max(1.0).powf(power);
    let times = measure.last / expected;
    let converges = run.statistics("value.explained").is_some_and(|share| share.last >= 0.5);
    if times < LIMITS[0] || measure.tau < 0.2 || converges {
        return Ok(vec![]);
    }
    let found = format!(
        "the {name} of the critic grows from {} to {}",
        short(measure.first),
        short(measure.last),
    );
    let is_severe = times >= LIMITS[1];
    let limit = expected * LIMITS[usize::from(is_severe)];
    let steps = run.steps_where(id, |row| row.mean >= limit).unwrap_or_default();
    let firing = if is_severe { Firing::error(found) } else { Firing::warning(found) };
    firing.at_steps(steps).metric(id, "last", measure.last, Some(limit)).into()
}

/// How many times as far apart rewards are at the end: by their deviation; else, between the lowest
/// and the highest one ever seen, by the most that their mean allows.
fn spread_growth(run: &Run) -> Result<f64, Unjudged> {
    if let Some(deviation) = run.statistics("reward.std") {
        return Ok(growth(&deviation));
    }
    let (Some(reward), Some(max), Some(min)) =
        (run.statistics("reward.mean"), run.get("reward.max"), run.get("reward.min"))
    else {
        return Ok(1.0);
    };
    let allowed = |mean: f64| ((max.max() - mean) * (mean - min.min())).max(0.0).sqrt();
    let values = reward.values.iter().map(|mean| allowed(*mean)).collect();
    Ok(Statistics::of_values(values).map_or(1.0, |deviation| growth(&deviation)))
}

fn growth(of: &Statistics) -> f64 {
    if of.first > 0.0 {
        of.last / of.first
    } else if of.last > 0.0 {
        f64::INFINITY
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, run, said, scatter};

    const RULE: &str = "critic-explodes";

    fn grows(id: &str, rows: usize, times: f64, seed: u64) -> Run {
        let value = |i: usize| 0.2 * times.powf(i as f64 / rows as f64);
        run(rows, &[(id, &|i| value(i) * scatter(seed, i, 0.2))])
    }

    #[test]
    fn losses_and_gradients_without_end_are_found() {
        for id in ["value.loss", "value.grad_norm"] {
            always("warning", RULE, |seed| grows(id, 80, 40.0, seed));
            always("error", RULE, |seed| grows(id, 80, 900.0, seed));
        }
    }

    #[test]
    fn a_loss_that_scatters_falls_or_grows_a_little_is_left_alone() {
        always("quiet", RULE, |seed| grows("value.loss", 80, 4.0, seed));
        always("quiet", RULE, |seed| grows("value.loss", 80, 0.01, seed));
        always("quiet", RULE, |seed| run(80, &[("value.loss", &|i| scatter(seed, i, 1.0))]));
    }

    #[test]
    fn a_loss_may_grow_with_the_returns() {
        let share = |i: usize| (0.01 * (i as f64 / 25.0).exp()).min(0.5);
        let variance = |i: usize| share(i) * (1.0 - share(i));
        let std = |i: usize| variance(i).sqrt();
        let (one, zero) = (|_: usize| 1.0, |_: usize| 0.0);
        assert_eq!(said(&run(100, &[("value.loss", &variance)]), RULE), "warning");
        let with_std = run(100, &[("value.loss", &variance), ("reward.std", &std)]);
        assert_eq!(said(&with_std, RULE), "quiet");
        let columns: [(&str, &dyn Fn(usize) -> f64); 4] = [
            ("value.loss", &variance),
            ("reward.mean", &share),
            ("reward.max", &one),
            ("reward.min", &zero),
        ];
        assert_eq!(said(&run(100, &columns), RULE), "quiet");
        let loss = |i: usize| 0.01 + i as f64;
        let explained = run(100, &[("value.loss", &loss), ("value.explained", &|_| 0.8)]);
        assert_eq!(said(&explained, RULE), "quiet");
    }

    #[test]
    fn few_rows_have_no_trend() {
        assert_eq!(said(&grows("value.loss", 19, 900.0, 1), RULE), "insufficient");
    }
}
