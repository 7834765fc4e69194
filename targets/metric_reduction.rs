//! `metric-reduction` on tensors: one number from all ranks.

use shakedown::author::Component;
use shakedown::author::conventions::EmptyMask;
use shakedown::contracts::metric_reduction::{
    MetricReduction, MetricReductionOutput, One, Options, Shard, Unit, Unscored,
};
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor};

use crate::arithmetic;
use crate::masked::under;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<MetricReduction> {
    tch::<MetricReduction>(move |case| metrics(&case.shards, &options))
}

/// Mean, extremes, deviation, sum and count of the numbers of all shards, and how much of the
/// variance of their targets they explain.
///
/// What each rank sends are its sums and counts; means are made once, at the end. The variance is
/// taken in a second pass, around the mean of all: the mean of the squares less the square of the
/// mean has nothing left of a small spread far from 0.
///
/// # Shapes
/// Of each shard, values, targets and mask `[n, T]`, where both numbers may differ from one to the
/// next; the results are scalars.
///
/// # Units
/// Those of the values. Half formats are answered in f32.
///
/// # Errors
/// Panics without a number at all with `empty_mask: refuse`, and of no more than `ddof` numbers
/// with `one: refuse`.
///
/// # Source
/// verl `compute_data_metrics` for the formulas; TRL #6380 and NeMo-RL #1818 for what is reduced
/// how.
pub fn metrics(shards: &[Shard<Tensors>], options: &Options) -> MetricReductionOutput<Tensors> {
    let ranks: Vec<[Tensor; 2]> = shards.iter().map(|shard| numbers(shard, options)).collect();
    let all = |which: usize| {
        let of_ranks: Vec<&Tensor> = ranks.iter().map(|rank| &rank[which]).collect();
        Tensor::cat(&of_ranks, 0)
    };
    let (values, targets) = (all(0), all(1));
    let count = values.numel();
    let scalar = |x: f64| Tensor::from(x).to_kind(values.kind()).to_device(values.device());
    if count == 0 {
        assert!(options.empty_mask != EmptyMask::Refuse, "no number on any rank");
        let nothing = if options.empty_mask == EmptyMask::Nan { f64::NAN } else { 0.0 };
        return MetricReductionOutput {
            mean: Some(scalar(nothing)),
            min: Some(scalar(nothing)),
            max: Some(scalar(nothing)),
            std: Some(scalar(nothing)),
            sum: Some(scalar(0.0)),
            count: Some(scalar(0.0)),
            explained_variance: Some(scalar(nothing)),
        };
    }
    let few = count <= usize::from(options.ddof);
    let std = match (few, options.one) {
        (false, _) => variance(&values, options.ddof).sqrt(),
        (true, One::Nan) => scalar(f64::NAN),
        (true, One::Zero) => scalar(0.0),
        (true, One::Refuse) => panic!("no deviation of {count} numbers"),
    };
    // Exactly: a rounded mean makes a variance of equal targets.
    let constant = targets.max() == targets.min();
    let explained = if few || constant && options.ev_epsilon == 0.0 {
        scalar(f64::NAN)
    } else {
        let left = variance(&(&targets - &values), options.ddof);
        let of_targets = if constant { scalar(0.0) } else { variance(&targets, options.ddof) };
        1.0 - left / (of_targets + options.ev_epsilon)
    };
    let sums = ranks.iter().map(|[values, _]| values.sum(None));
    let sum = sums.reduce(|sum, part| sum + part).expect("a step has at least one shard");
    MetricReductionOutput {
        mean: Some(&sum / count as f64),
        min: Some(values.min()),
        max: Some(values.max()),
        std: Some(std),
        sum: Some(sum),
        count: Some(scalar(count as f64)),
        explained_variance: Some(explained),
    }
}

/// The variance of some numbers in two passes; exactly 0 of equal ones.
fn variance(numbers: &Tensor, ddof: u8) -> Tensor {
    let distances = numbers - numbers.get(0);
    let centred = &distances - distances.mean(None);
    centred.square().sum(None) / (numbers.numel() as f64 - f64::from(ddof))
}

/// The numbers of a shard and their targets, each `[m]`.
fn numbers(shard: &Shard<Tensors>, options: &Options) -> [Tensor; 2] {
    let kind = arithmetic(shard.values.kind());
    let (mut values, mut mask) = (shard.values.to_kind(kind), shard.mask.shallow_clone());
    let nan = values.isnan();
    match options.unscored {
        Unscored::Avoid => {}
        Unscored::Skip => mask = mask.logical_and(&nan.logical_not()),
        Unscored::Zero => values = under(&nan.logical_not(), &values),
    }
    let targets = shard.targets.to_kind(kind);
    if options.unit == Unit::Token {
        return [values, targets].map(|numbers| numbers.masked_select(&mask));
    }
    let lengths = mask.sum_dim_intlist(1, false, kind);
    let some = lengths.gt(0.0);
    [values, targets].map(|numbers| {
        let sums = under(&mask, &numbers).sum_dim_intlist(1, false, None::<Kind>);
        let rows = match options.unit {
            Unit::RowMean => sums / lengths.clamp_min(1.0),
            Unit::Token | Unit::RowSum => sums,
        };
        rows.masked_select(&some)
    })
}
