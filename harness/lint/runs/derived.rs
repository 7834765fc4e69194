//! What follows from several metrics of one row. Rules that compare metrics row by row ask for one
//! of these, as a long run keeps no single rows.

use std::collections::BTreeMap;

use crate::runs::row::Row;
use crate::runs::series::Series;

/// The metrics without which nothing can be said of training, upstream first.
pub const CORE: [&str; 12] = [
    "reward.mean",
    "advantage.mean",
    "advantage.max",
    "advantage.min",
    "entropy",
    "kl.ref",
    "kl.ref.seq",
    "kl.old",
    "value.loss",
    "pg_loss",
    "loss",
    "grad_norm",
];

/// A series that is computed from each row.
pub struct Derived {
    /// Its id, which no metric has: `signal`.
    pub id: &'static str,
    /// Its value in a row; `None` where the row does not say.
    pub of: fn(&Row) -> Option<f64>,
}

/// What must not be larger than what, where a metric has its smallest, mean and largest value.
macro_rules! extremes {
    ($of:literal) => {
        [
            [concat!($of, ".min"), concat!($of, ".mean")],
            [concat!($of, ".mean"), concat!($of, ".max")],
            [concat!($of, ".min"), concat!($of, ".max")],
        ]
    };
}

/// Every derived series. One may use those before it.
pub const DERIVED: &[Derived] = &[
    Derived { id: "signal", of: signal },
    Derived { id: "grad_norm.with_signal", of: |row| gradient(row, 1.0) },
    Derived { id: "grad_norm.without_signal", of: |row| gradient(row, 0.0) },
    Derived { id: "signal.missed", of: missed },
    Derived { id: "nonfinite", of: nonfinite },
    Derived { id: "disorder.reward", of: |row| disorder(row, &extremes!("reward")) },
    Derived { id: "disorder.advantage", of: |row| disorder(row, &extremes!("advantage")) },
    Derived { id: "disorder.length", of: |row| disorder(row, &extremes!("length")) },
    Derived { id: "disorder.clip", of: |row| disorder(row, &[["clip.low", "clip.frac"]]) },
    Derived {
        id: "disorder.mismatch",
        of: |row| disorder(row, &[["mismatch.prob", "mismatch.prob_max"]]),
    },
    Derived { id: "disorder.margin", of: margin },
    Derived { id: "advantage.one_sided", of: one_sided },
    Derived { id: "kl.ref.moving", of: moving },
];

fn value(row: &Row, id: &str) -> Option<f64> {
    row.get(id).map(|cell| cell.value).filter(|value| value.is_finite())
}

/// 1 where the rewards of a row differ within a group, 0 where none do: from `groups.flat`
/// (< 0.999), else the groups' deviation (> 1e-6), else that of the batch, else the spread of the
/// advantages. What may have been rounded to 0 does not say.
fn signal(row: &Row) -> Option<f64> {
    let resolution = |id: &str| row.get(id).map_or(0.0, |cell| cell.resolution);
    let above = |id: &str| Some(is_above_nought(value(row, id)?, resolution(id)));
    let spread = || {
        let (max, min) = (value(row, "advantage.max")?, value(row, "advantage.min")?);
        let hidden = resolution("advantage.max") + resolution("advantage.min");
        Some(is_above_nought(max - min, hidden))
    };
    value(row, "groups.flat")
        .map(|flat| Some(flat < 0.999))
        .or_else(|| above("reward.group_std"))
        .or_else(|| above("reward.std"))
        .or_else(spread)?
        .map(|signal| if signal { 1.0 } else { 0.0 })
}

/// Whether a deviation is above 0; `None` where it may have been rounded away.
fn is_above_nought(value: f64, resolution: f64) -> Option<bool> {
    match value > 1e-6 {
        false if resolution > 1e-6 => None,
        is_above => Some(is_above),
    }
}

/// The gradient's norm in rows whose `signal` is this.
fn gradient(row: &Row, signal: f64) -> Option<f64> {
    value(row, "grad_norm").filter(|_| value(row, "signal") == Some(signal))
}

/// Gradients below this are none.
const NO_GRADIENT: f64 = 1e-12;

/// In a row that has signal and no gradient at all, the share of its groups without signal: where a
/// row is the mean of several updates and its gradient that of the last one, that is how likely the
/// last one had none.
fn missed(row: &Row) -> Option<f64> {
    value(row, "grad_norm.with_signal").filter(|gradient| *gradient <= NO_GRADIENT)?;
    Some(value(row, "groups.flat").unwrap_or(0.0).max(0.0))
}

/// How many of the core metrics are not finite, where some are.
fn nonfinite(row: &Row) -> Option<f64> {
    let bad = CORE.iter().filter(|id| row.get(**id).is_some_and(|cell| is_bad(id, cell.value)));
    Some(bad.count() as f64).filter(|count| *count > 0.0)
}

/// Whether a value says that a number was not finite. DeepSpeed writes -1 for such a norm.
fn is_bad(id: &str, value: f64) -> bool {
    !value.is_finite() || (id == "grad_norm" && value == NOT_A_NORM)
}

/// What DeepSpeed writes for the norm of a gradient that is not finite.
pub const NOT_A_NORM: f64 = -1.0;

/// By how much two values may differ that are the same: a thousandth of the larger one, what the
/// log has rounded away, and what single precision may lose.
pub fn tolerance(a: f64, b: f64, resolution: f64) -> f64 {
    1e-3 * a.abs().max(b.abs()) + resolution + 1e-6
}

/// By how much the first of a pair is above the second, beyond the tolerance, where it is.
fn disorder(row: &Row, pairs: &[[&str; 2]]) -> Option<f64> {
    let above = |[low, high]: &[&str; 2]| {
        let (a, b) = (value(row, low)?, value(row, high)?);
        let resolution = row.get(*low)?.resolution + row.get(*high)?.resolution;
        Some(a - b - tolerance(a, b, resolution))
    };
    pairs.iter().filter_map(above).filter(|above| *above > 0.0).reduce(f64::max)
}

/// How much of a bf16 the margin of a pair may be off.
const BF16: f64 = 1e-2;

/// By how much the margin is not the chosen reward less the rejected one, beyond what rounding
/// explains.
fn margin(row: &Row) -> Option<f64> {
    let ids = ["pref.margin", "pref.chosen", "pref.rejected"];
    let [margin, chosen, rejected] = ids.map(|id| value(row, id));
    let (margin, chosen, rejected) = (margin?, chosen?, rejected?);
    let resolution: f64 = ids.iter().filter_map(|id| row.get(*id)).map(|it| it.resolution).sum();
    let allowed = BF16 * chosen.abs().max(rejected.abs()) + resolution;
    Some((margin - (chosen - rejected)).abs() - allowed).filter(|above| *above > 0.0)
}

/// 1 where the advantages of a row with signal have one sign, 0 where they have both; `None` where
/// rounding hides the sign.
fn one_sided(row: &Row) -> Option<f64> {
    value(row, "signal").filter(|signal| *signal == 1.0)?;
    let (min, max) = (value(row, "advantage.min")?, value(row, "advantage.max")?);
    let below = row.get("advantage.min")?.resolution;
    let above = row.get("advantage.max")?.resolution;
    if min < -below && max > above {
        return Some(0.0);
    }
    let is_one_sided = min > below || max < -above || below + above == 0.0;
    is_one_sided.then_some(1.0)
}

/// The KL to the reference, in rows where something moves the weights: a gradient that is not 0,
/// and a learning rate that is not, where it is logged.
fn moving(row: &Row) -> Option<f64> {
    let gradient = row.get("grad_norm")?;
    let is_still = row.get("lr").is_some_and(|lr| lr.value == 0.0 && lr.resolution == 0.0);
    let moves = gradient.value > gradient.resolution.max(NO_GRADIENT) && !is_still;
    value(row, "kl.ref").filter(|_| moves)
}

/// The series up to the row from which on no core metric is finite: what comes after says nothing.
/// The core metrics themselves stay whole, as they say that.
pub fn while_something_is_finite(mut all: BTreeMap<String, Series>) -> BTreeMap<String, Series> {
    let core = || CORE.iter().filter_map(|id| all.get(*id));
    let last_finite = core().filter_map(|one| one.finite().next_back()).map(|one| one.index).max();
    let dead = core().flat_map(|one| &one.buckets).filter(|bucket| bucket.nonfinite > 0);
    let after = dead.filter(|bucket| last_finite.is_none_or(|last| bucket.index > last));
    if let Some(end) = after.map(|bucket| bucket.index).min() {
        let others = |id: &str| !CORE.contains(&id) && id != "nonfinite";
        for (_, series) in all.iter_mut().filter(|(id, _)| others(id)) {
            series.buckets.retain(|bucket| bucket.index < end);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::row::Cell;

    fn row(cells: &[(&str, f64)]) -> Row {
        cells.iter().map(|(id, value)| ((*id).to_owned(), Cell::from(*value))).collect()
    }

    #[test]
    fn an_order_may_be_broken_by_a_thousandth_and_by_what_was_rounded_away() {
        let of = |mean: f64| {
            let row = row(&[("reward.min", 0.0), ("reward.mean", mean), ("reward.max", 1.0)]);
            disorder(&row, &extremes!("reward"))
        };
        assert_eq!([of(0.0), of(0.5), of(1.0), of(1.001)], [None; 4]);
        assert!(of(1.01).is_some_and(|above| above < 0.01) && of(-0.01).is_some());
        let mut rounded = row(&[("reward.mean", 1.01), ("reward.max", 1.0)]);
        rounded.insert("reward.max".to_owned(), Cell { value: 1.0, resolution: 0.05 });
        assert_eq!(disorder(&rounded, &extremes!("reward")), None);
    }

    #[test]
    fn the_first_metric_that_tells_says_whether_there_is_signal() {
        let of = |cells: &[(&str, f64)]| signal(&row(cells));
        assert_eq!(of(&[("groups.flat", 0.998), ("reward.std", 0.0)]), Some(1.0));
        assert_eq!(of(&[("groups.flat", 0.999), ("reward.std", 1.0)]), Some(0.0));
        assert_eq!(of(&[("reward.group_std", 0.0), ("reward.std", 1.0)]), Some(0.0));
        assert_eq!(of(&[("advantage.min", -1.0), ("advantage.max", 1.0)]), Some(1.0));
        assert_eq!(of(&[("reward.mean", 1.0)]), None);
        let rounded = |value: f64| {
            let cell = Cell { value, resolution: 5e-4 };
            signal(&Row::from([("reward.group_std".to_owned(), cell)]))
        };
        assert_eq!([rounded(0.0), rounded(0.001)], [None, Some(1.0)]);
    }

    #[test]
    fn a_rounded_nought_has_no_sign() {
        let of = |min: f64, max: f64, resolution: f64| {
            let mut row = row(&[("signal", 1.0)]);
            row.insert("advantage.min".to_owned(), Cell { value: min, resolution });
            row.insert("advantage.max".to_owned(), Cell { value: max, resolution });
            one_sided(&row)
        };
        assert_eq!(
            [of(0.0, 1.0, 0.0), of(0.2, 1.0, 0.0), of(-1.0, 1.0, 0.0)],
            [Some(1.0), Some(1.0), Some(0.0)]
        );
        assert_eq!([of(0.0, 1.0, 5e-4), of(0.2, 1.0, 5e-4)], [None, Some(1.0)]);
    }

    #[test]
    fn deepspeed_writes_minus_one_for_a_norm_that_is_not_finite() {
        assert_eq!(nonfinite(&row(&[("loss", f64::NAN), ("grad_norm", -1.0)])), Some(2.0));
        assert_eq!(nonfinite(&row(&[("loss", -1.0), ("grad_norm", 0.0)])), None);
    }
}
