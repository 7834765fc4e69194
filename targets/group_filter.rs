//! `group-filter` on tensors: which groups have something to say.

use shakedown::author::Component;
use shakedown::contracts::group_filter::{
    Criterion, GroupFilter, GroupFilterCase, GroupFilterOutput, Options, Singleton,
};
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor};

use crate::arithmetic;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<GroupFilter> {
    tch::<GroupFilter>(move |case| group_filter(case, &options))
}

/// Which rows stay, with the ids and the rewards of those that do.
///
/// # Shapes
/// `N` rows: rewards, metric, groups and ids `[N]`; keep `[N]`, and for `M` rows that stay ids and
/// rewards `[M]`. Takes memory of the order `N²`.
///
/// # Units
/// Range and tolerance in those of the metric.
///
/// # Errors
/// Panics where the shapes differ.
///
/// # Source
/// Yu et al. 2025 (DAPO) for `spread`, which is exact here: a deviation about a rounded mean is not
/// 0 for every constant. OpenRLHF's `dynamic_filtering` for `range`.
pub fn group_filter(
    case: &GroupFilterCase<Tensors>,
    options: &Options,
) -> GroupFilterOutput<Tensors> {
    let metric = case.metric.to_kind(arithmetic(case.metric.kind()));
    let group = case.groups.unsqueeze(1).eq_tensor(&case.groups.unsqueeze(0));
    let stays = match options.criterion {
        Criterion::Spread => {
            let of_group =
                |other: f64| metric.unsqueeze(0).expand_as(&group).where_scalarother(&group, other);
            let most = of_group(f64::NEG_INFINITY).amax([1], false);
            let least = of_group(f64::INFINITY).amin([1], false);
            let differs = (most - least).gt(options.tolerance);
            let alone = group.sum_dim_intlist(1, false, Kind::Int64).eq(1);
            match options.singleton {
                Singleton::Keep => differs.logical_or(&alone),
                Singleton::Drop | Singleton::Avoid => differs,
            }
        }
        Criterion::Range => {
            let weights = group.to_kind(metric.kind());
            let sums = weights.mv(&metric);
            let mean = sums / weights.sum_dim_intlist(1, false, None);
            let [lo, hi] = options.range;
            mean.gt(lo).logical_and(&mean.lt(hi))
        }
    };
    let keep = match options.limit {
        Some(limit) => stays.logical_and(&earlier(&group, &stays).lt(limit)),
        None => stays,
    };
    GroupFilterOutput {
        kept_ids: Some(case.ids.masked_select(&keep)),
        kept_rewards: Some(case.rewards.masked_select(&keep)),
        keep,
    }
}

/// How many groups that stay appear before the one of each row.
fn earlier(group: &Tensor, stays: &Tensor) -> Tensor {
    let count = group.size()[0];
    let row = Tensor::arange(count, (Kind::Int64, group.device()));
    let first = row.expand_as(group).where_scalarother(group, count).amin([1], false);
    let opens = first.eq_tensor(&row).logical_and(stays).to_kind(Kind::Int64);
    let before = opens.cumsum(0, Kind::Int64) - opens;
    before.index_select(0, &first)
}
