//! Gradients are compared where there was something to learn from, and as much of it.

use crate::rules::Unjudged;
use crate::runs::Run;
use crate::runs::series::Series;
use crate::runs::statistics::{Statistics, mean};

/// The gradient's norms in the rows whose rewards tell completions apart; in all rows where that is
/// not known.
///
/// # Errors
/// There are fewer than `n`.
pub fn with_signal(run: &Run, n: usize) -> Result<&Series, Unjudged> {
    run.need("grad_norm", n)?;
    match run.get("signal") {
        Some(_) => run.need("grad_norm.with_signal", n),
        None => run.need("grad_norm", n),
    }
}

/// How many times as much signal there is at the end as at first: the share of groups that are not
/// flat, else the deviation of the rewards; 1 where neither is logged.
pub fn signal_growth(run: &Run) -> f64 {
    let ends = |of: &Statistics| [mean(&of.values[..of.window]), mean(of.tail())];
    let flat = run.statistics("groups.flat").map(|flat| ends(&flat).map(|share| 1.0 - share));
    let deviation = || run.statistics("reward.group_std").or_else(|| run.statistics("reward.std"));
    match flat.or_else(|| deviation().map(|deviation| ends(&deviation))) {
        Some([first, last]) => last.max(1e-3) / first.max(1e-3),
        None => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::rules::trial2::run;

    #[test]
    fn rows_without_a_signal_do_not_count() {
        let flat = |i: usize| if i.is_multiple_of(2) { 1.0 } else { 0.5 };
        let norm = |i: usize| if i.is_multiple_of(2) { 0.0 } else { 0.7 };
        let run = run(40, &[("groups.flat", &flat), ("grad_norm", &norm)]);
        let rows = with_signal(&run, 20).unwrap_or_else(|why| panic!("{why:?}"));
        assert_eq!(rows.values(), [0.7; 20]);
        assert!(with_signal(&run, 21).is_err());
    }

    #[test]
    fn signal_grows_as_fewer_groups_are_flat() {
        let few = run(100, &[("groups.flat", &|i| if i < 50 { 0.95 } else { 0.5 })]);
        assert!((signal_growth(&few) - 10.0).abs() < 1e-9);
        let std = run(100, &[("reward.std", &|i| if i < 50 { 0.4 } else { 0.1 })]);
        assert!((signal_growth(&std) - 0.25).abs() < 1e-9);
        assert_eq!(signal_growth(&run(100, &[("loss", &|_| 0.0)])), 1.0);
    }
}
