//! Faults of the order of rows, of group numbers, and of number formats.

use super::super::RewardCombinationOutput;
use super::{Fault, members, right};
use shakedown_core::value::place::Dtype;

/// Groups read, or given back, in another order.
pub(super) fn layouts() -> Vec<Fault> {
    vec![
        Fault::new(
            "groups-assumed-contiguous",
            "reshapes to rows of the first group's size and never reads `groups`",
        )
        .seen("layout assumptions as disputed in trl #5030")
        .under("{normalise: group}")
        .on(&[|case, _| {
            let size = members(case)[0].len() as i64;
            case.groups = (0..case.groups.len() as i64).map(|row| row / size).collect();
        }]),
        Fault::new(
            "groups-strided",
            "reshapes the wrong way: rows i, i + K, i + 2K share their statistics",
        )
        .seen("layout assumptions as disputed in trl #5030; prime-rl #600")
        .under("{normalise: group, layout: contiguous}")
        .on(&[|case, _| {
            let count = members(case).len() as i64;
            case.groups = (0..case.groups.len() as i64).map(|row| row % count).collect();
        }]),
        Fault::new(
            "rows-in-group-order",
            "the result comes back sorted by group, not in the order of the rows",
        )
        .seen("verl #1440, #1943: outputs left in sorted order")
        .gives(&[
            |case, options, dtype| {
                let mut groups = members(case);
                groups.sort_by_key(|rows| case.groups[rows[0]]);
                in_order(&groups.concat(), right(case, options, dtype))
            },
            |case, options, dtype| in_order(&members(case).concat(), right(case, options, dtype)),
        ]),
        Fault::new("groups-are-runs", "rows of one group that are not adjacent are two groups")
            .seen("`unique_consecutive` for `unique`, `itertools.groupby` without a sort")
            .under("{normalise: group}")
            .on(&[|case, _| {
                let ids = case.groups.to_vec();
                let mut run = 0;
                for row in 1..ids.len() {
                    run += i64::from(ids[row] != ids[row - 1]);
                    case.groups[row] = run;
                }
                case.groups[0] = 0;
            }]),
        Fault::new(
            "functions-transposed",
            "the matrix of scores is filled row by row from a list that goes function by function",
        )
        .seen("`view(N, K)` for `view(K, N).T` after a gather; compare LLaMA-Factory #7576")
        .on(&[
            |case, _| {
                let (rows, functions) = case.rewards.dim();
                let listed: Vec<f64> = case.rewards.t().iter().copied().collect();
                for row in 0..rows {
                    for function in 0..functions {
                        case.rewards[[row, function]] = listed[row * functions + function];
                    }
                }
            },
            |case, _| {
                let rows = case.groups.len();
                let listed: Vec<f64> = case.rewards.iter().copied().collect();
                for ((row, function), reward) in case.rewards.indexed_iter_mut() {
                    *reward = listed[function * rows + row];
                }
            },
        ]),
    ]
}

/// The right rows in another order.
fn in_order(order: &[usize], output: RewardCombinationOutput) -> RewardCombinationOutput {
    let combined = order.iter().map(|row| output.combined[*row]).collect();
    RewardCombinationOutput { combined, ..output }
}

/// Scores of another format.
pub(super) fn formats() -> Vec<Fault> {
    vec![
        Fault::new("rewards-truncated-to-integers", "the scores pass through an integer tensor")
            .seen("dtype slips, compare NeMo-RL #1619")
            .on(&[|case, _| case.rewards.mapv_inplace(f64::trunc)]),
        Fault::new("rewards-in-half-precision", "the scores pass through bf16 (or f16) at f32")
            .seen("compare OpenRLHF #634, #620")
            .on(&[
                |case, _| case.rewards.mapv_inplace(|r| Dtype::Bf16.round(r)),
                |case, _| case.rewards.mapv_inplace(|r| Dtype::F16.round(r)),
            ]),
        Fault::new("combined-in-half-precision", "the result passes through bf16 (or f16) at f32")
            .seen("compare OpenRLHF #634, #620")
            .made_of([
                super::changed(|x| Dtype::Bf16.round(x)),
                super::changed(|x| Dtype::F16.round(x)),
            ]),
    ]
}
