//! What must hold of `group-filter`: the laws that apply, and one file for each of its own.

use crate::group_filter::{GroupFilter, GroupFilterCase, members};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<GroupFilter>> {
    let mut all = laws::universal_and(&[("well-formed", &["unfiltered-lists"])]);
    all.extend([
        laws::oracle::law().catching(&[
            "flat-groups-kept",
            "ends-decide",
            "single-rows-stay",
            "single-rows-go",
            "every-row-inside",
            "sum-for-the-mean",
            "median-for-the-mean",
            "spread-for-the-range",
            "one-end-of-the-range",
        ]),
        laws::row_split::law().catching(&[
            "spread-of-the-batch",
            "groups-run-together",
            "nothing-left-keeps-everything",
            "last-group-left-out",
        ]),
    ]);
    all.extend(own());
    all
}

invariants! {
    GroupFilter;
    zero_or_one,
    whole_groups,
    constant_group,
    varied_group,
    inside_the_range,
    metric_decides,
    aligned,
    limit,
    groups_independent,
    row_permutation,
    relabelling,
}

/// The groups of two rows or more, with their numbers.
fn several(case: &GroupFilterCase) -> Result<Vec<(i64, Vec<usize>)>, Stop> {
    let groups = members(case).into_iter().filter(|rows| rows.len() > 1);
    let groups: Vec<(i64, Vec<usize>)> = groups.map(|rows| (case.groups[rows[0]], rows)).collect();
    if groups.is_empty() { Err(Stop::Vacuous) } else { Ok(groups) }
}
