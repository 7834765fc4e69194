//! The reference implementation of `metric-reduction`, as a trainer would write it: every rank
//! reports sums and counts, the ranks agree on the mean, and a second pass takes the distances.

use ndarray::arr0;

use super::{MetricReductionCase, MetricReductionOutput, One, Options, Unit, sets};
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::value::place::Dtype;

/// All seven numbers, computed in the arithmetic of the dtype.
///
/// # Panics
/// Where `empty_mask: refuse` promises it, without a number at all, and `one: refuse`, of no more
/// than `ddof`.
pub(super) fn metrics(
    case: &MetricReductionCase,
    options: &Options,
    dtype: Dtype,
) -> MetricReductionOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let ranks: Vec<Vec<[f64; 2]>> = case
        .shards
        .iter()
        .map(|part| {
            let of_rank = sets(part, options);
            of_rank.iter().map(|set| [0, 1].map(|which| number(set, which, options, f))).collect()
        })
        .collect();
    let ranks = Ranks { ranks, ddof: options.ddof, f: &f };

    let count = ranks.ranks.iter().map(Vec::len).sum::<usize>() as f64;
    if count == 0.0 {
        assert!(options.empty_mask != EmptyMask::Refuse, "no number on any rank");
        let nothing = if options.empty_mask == EmptyMask::Nan { f64::NAN } else { 0.0 };
        return output([nothing, nothing, nothing, nothing, 0.0, 0.0, nothing]);
    }
    let sum = ranks.sum(|[value, _]| value);
    let all = || ranks.ranks.iter().flatten();
    let few = count <= f64::from(options.ddof);
    let std = match (few, options.one) {
        (false, _) => f(ranks.variance(|[value, _]| value).sqrt()),
        (true, One::Nan) => f64::NAN,
        (true, One::Zero) => 0.0,
        (true, One::Refuse) => panic!("no deviation of {count} numbers"),
    };
    let first = all().next().map_or(0.0, |[_, target]| *target);
    let constant = all().all(|[_, target]| *target == first);
    let explained = if few || constant && options.ev_epsilon == 0.0 {
        f64::NAN
    } else {
        let of_targets = if constant { 0.0 } else { ranks.variance(|[_, target]| target) };
        let left = ranks.variance(|[value, target]| f(target - value));
        f(1.0 - f(left / f(of_targets + f(options.ev_epsilon))))
    };
    output([
        f(sum / count),
        all().fold(f64::INFINITY, |least, [value, _]| least.min(*value)),
        all().fold(f64::NEG_INFINITY, |most, [value, _]| most.max(*value)),
        std,
        sum,
        count,
        explained,
    ])
}

/// One number of a token, or of a row.
fn number(set: &[[f64; 2]], which: usize, options: &Options, f: impl Fn(f64) -> f64) -> f64 {
    let sum = set.iter().fold(0.0, |sum, token| f(sum + token[which]));
    match options.unit {
        Unit::RowMean => f(sum / set.len() as f64),
        Unit::Token | Unit::RowSum => sum,
    }
}

/// The numbers of every rank, and what all of them make together.
struct Ranks<'a> {
    ranks: Vec<Vec<[f64; 2]>>,
    ddof: u8,
    f: &'a dyn Fn(f64) -> f64,
}

impl Ranks<'_> {
    /// The sum over ranks of what each adds up.
    fn sum(&self, of: impl Fn([f64; 2]) -> f64) -> f64 {
        let f = self.f;
        let own = |rank: &Vec<[f64; 2]>| rank.iter().fold(0.0, |sum, pair| f(sum + of(*pair)));
        self.ranks.iter().fold(0.0, |sum, rank| f(sum + own(rank)))
    }

    /// The variance, in two passes.
    fn variance(&self, of: impl Fn([f64; 2]) -> f64) -> f64 {
        let f = self.f;
        let count = self.ranks.iter().map(Vec::len).sum::<usize>() as f64;
        let mean = f(self.sum(&of) / count);
        let squares = self.sum(|pair| {
            let distance = f(of(pair) - mean);
            f(distance * distance)
        });
        f(squares / (count - f64::from(self.ddof)))
    }
}

/// The record of seven numbers.
pub(super) fn output(numbers: [f64; 7]) -> MetricReductionOutput {
    let [mean, min, max, std, sum, count, explained_variance] = numbers.map(|x| Some(arr0(x)));
    MetricReductionOutput { mean, min, max, std, sum, count, explained_variance }
}
