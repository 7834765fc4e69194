//! What must hold of `group-advantage`: the laws that apply, and one file for each of its own.

use ndarray::Array1;

use crate::group_advantage::{GroupAdvantage, GroupAdvantageCase, members};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<GroupAdvantage>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&["epsilon-clamped-for-added", "median-for-mean"]),
        laws::row_permutation::law().catching(&["groups-assumed-contiguous"]),
        laws::row_split::law().catching(&["group-stride-applied-twice"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    GroupAdvantage;
    zero_sum,
    constant_group,
    signal,
    declared_scale,
    shift_invariant,
    scales_with_the_rewards,
    odd,
    order_preserved,
    bounded,
    groups_independent,
    relabelling,
    leave_one_out,
    singleton,
    unscored,
}

/// The scored rows of every group that has two or more, with the group's number.
fn several(case: &GroupAdvantageCase) -> Result<Vec<(i64, Vec<usize>)>, Stop> {
    let groups: Vec<(i64, Vec<usize>)> = members(case)
        .into_iter()
        .map(|rows| {
            let number = case.groups[rows[0]];
            let scored = |row: &usize| !case.rewards[*row].is_nan();
            (number, rows.into_iter().filter(scored).collect::<Vec<_>>())
        })
        .filter(|(_, rows)| rows.len() > 1)
        .collect();
    if groups.is_empty() { Err(Stop::Vacuous) } else { Ok(groups) }
}

/// The deviation of some rows' values.
fn deviation(values: &Array1<f64>, rows: &[usize], ddof: u8) -> f64 {
    let mean = rows.iter().map(|row| values[*row]).sum::<f64>() / rows.len() as f64;
    let squares: f64 = rows.iter().map(|row| (values[*row] - mean).powi(2)).sum();
    (squares / (rows.len() as f64 - f64::from(ddof))).sqrt()
}
