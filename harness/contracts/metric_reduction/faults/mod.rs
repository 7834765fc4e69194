//! Known wrong behaviours of `metric-reduction`: real bugs, and conventions mistaken for others.
//!
//! A fault is the right seven numbers, of which it changes some.

mod deviations;
mod explained;
mod masks;
mod numbers;
mod options;
mod ranks;
mod unscored;

use super::{
    MetricReduction, MetricReductionCase, MetricReductionOutput, One, Options, numbers, reference,
};
use shakedown_core::contract::fault;
use shakedown_core::numeric::conventions::EmptyMask;

type Fault = fault::Fault<MetricReduction>;
type Variant = fault::Variant<MetricReduction>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [
        ranks::all(),
        numbers::all(),
        masks::all(),
        unscored::all(),
        deviations::all(),
        explained::all(),
        options::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The seven numbers.
struct Metrics {
    mean: f64,
    min: f64,
    max: f64,
    std: f64,
    sum: f64,
    count: f64,
    explained: f64,
}

impl Metrics {
    const NAN: Metrics = Metrics {
        mean: f64::NAN,
        min: f64::NAN,
        max: f64::NAN,
        std: f64::NAN,
        sum: f64::NAN,
        count: f64::NAN,
        explained: f64::NAN,
    };
}

impl From<Metrics> for MetricReductionOutput {
    fn from(metrics: Metrics) -> Self {
        let Metrics { mean, min, max, std, sum, count, explained } = metrics;
        reference::output([mean, min, max, std, sum, count, explained])
    }
}

/// One step: the numbers of its ranks, and of all of them.
struct Step<'a> {
    case: &'a MetricReductionCase,
    options: &'a Options,
    ranks: Vec<Vec<[f64; 2]>>,
    all: Vec<[f64; 2]>,
}

impl<'a> Step<'a> {
    fn new(case: &'a MetricReductionCase, options: &'a Options) -> Step<'a> {
        let ranks: Vec<_> = case.shards.iter().map(|part| numbers(part, options)).collect();
        let all = ranks.concat();
        Step { case, options, ranks, all }
    }

    /// The right metrics.
    fn metrics(&self) -> Metrics {
        self.of(&self.all)
    }

    /// The right metrics of some numbers.
    fn of(&self, all: &[[f64; 2]]) -> Metrics {
        let none = if self.options.empty_mask == EmptyMask::Nan { f64::NAN } else { 0.0 };
        if all.is_empty() {
            let [mean, min, max, std, explained] = [none; 5];
            return Metrics { mean, min, max, std, sum: 0.0, count: 0.0, explained };
        }
        let few = all.len() <= usize::from(self.options.ddof);
        let std = match self.options.one {
            One::Zero if few => 0.0,
            _ => variance(all, self.options.ddof).sqrt(),
        };
        let other = |of: fn([f64; 2]) -> f64| -> Vec<[f64; 2]> {
            all.iter().map(|pair| [of(*pair), 0.0]).collect()
        };
        let of_targets = variance(&other(|[_, target]| target), self.options.ddof);
        let left = variance(&other(|[value, target]| target - value), self.options.ddof);
        let divisor = of_targets + self.options.ev_epsilon;
        let explained = if few || divisor == 0.0 { f64::NAN } else { 1.0 - left / divisor };
        let (min, max, sum, count) = (least(all), most(all), sum(all), all.len() as f64);
        Metrics { mean: mean(all), min, max, std, sum, count, explained }
    }

    /// The ranks that have a number.
    fn filled(&self) -> impl Iterator<Item = &Vec<[f64; 2]>> {
        self.ranks.iter().filter(|rank| !rank.is_empty())
    }

    /// The mean over the ranks that have a number of what each one reports.
    fn over_ranks(&self, report: fn(&[[f64; 2]]) -> f64) -> f64 {
        let reports: Vec<f64> = self.filled().map(|rank| report(rank)).collect();
        reports.iter().sum::<f64>() / reports.len() as f64
    }

    /// The mean, of which the mean of each rank weighs as much as a rank further on has numbers.
    fn weighted_by_another(&self, further: usize) -> f64 {
        let own = |rank: &Vec<[f64; 2]>| sum(rank) / rank.len().max(1) as f64;
        let counts = self.ranks.iter().cycle().skip(further).map(|rank| rank.len() as f64);
        let all: f64 = self.ranks.iter().zip(counts).map(|(rank, count)| own(rank) * count).sum();
        all / self.all.len() as f64
    }

    /// The mean of two places around the middle of the sorted numbers; 0 ends the lower half.
    fn middle(&self, places: fn(usize) -> [usize; 2]) -> f64 {
        let mut sorted: Vec<f64> = self.all.iter().map(|pair| pair[0]).collect();
        sorted.sort_by(f64::total_cmp);
        let [low, high] = places(sorted.len().div_ceil(2));
        let high = if sorted.len() % 2 == 1 { low } else { high };
        (sorted[low] + sorted[high]) / 2.0
    }

    /// Whether a token that is not masked has no value.
    fn some_unscored(&self) -> bool {
        self.case
            .shards
            .iter()
            .any(|part| part.values.iter().zip(&part.mask).any(|(x, kept)| *kept && x.is_nan()))
    }

    /// A variance over all ranks.
    fn variance_of(&self, of: fn([f64; 2]) -> f64) -> f64 {
        self.variance_with(self.options.ddof, of)
    }

    /// A variance over all ranks, with other degrees of freedom.
    fn variance_with(&self, ddof: u8, of: fn([f64; 2]) -> f64) -> f64 {
        let numbers: Vec<[f64; 2]> = self.all.iter().map(|pair| [of(*pair), 0.0]).collect();
        variance(&numbers, ddof)
    }
}

fn sum(numbers: &[[f64; 2]]) -> f64 {
    numbers.iter().map(|pair| pair[0]).sum()
}

fn mean(numbers: &[[f64; 2]]) -> f64 {
    sum(numbers) / numbers.len() as f64
}

fn least(numbers: &[[f64; 2]]) -> f64 {
    numbers.iter().fold(f64::INFINITY, |least, pair| least.min(pair[0]))
}

fn most(numbers: &[[f64; 2]]) -> f64 {
    numbers.iter().fold(f64::NEG_INFINITY, |most, pair| most.max(pair[0]))
}

/// The squared distances from the mean; exactly 0 of a constant.
fn squares(numbers: &[[f64; 2]]) -> f64 {
    if numbers.windows(2).all(|pair| pair[0][0] == pair[1][0]) {
        return 0.0;
    }
    let mean = mean(numbers);
    numbers.iter().map(|pair| (pair[0] - mean).powi(2)).sum()
}

/// NaN of no more than `ddof` numbers.
fn variance(numbers: &[[f64; 2]], ddof: u8) -> f64 {
    let degrees = numbers.len() as f64 - f64::from(ddof);
    if degrees > 0.0 { squares(numbers) / degrees } else { f64::NAN }
}

fn zero_for_nan(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x }
}

/// The right metrics, of which some are changed where there is a number.
fn changed(change: impl Fn(&Step<'_>, &mut Metrics) + Send + Sync + 'static) -> Variant {
    Variant::gives(move |case: &MetricReductionCase, options: &Options, _| {
        let step = Step::new(case, options);
        let mut metrics = step.metrics();
        if !step.all.is_empty() {
            change(&step, &mut metrics);
        }
        metrics.into()
    })
}

/// The right metrics, of which some are changed, also where there is no number.
fn always(change: impl Fn(&Step<'_>, &mut Metrics) + Send + Sync + 'static) -> Variant {
    Variant::gives(move |case: &MetricReductionCase, options: &Options, _| {
        let step = Step::new(case, options);
        let mut metrics = step.metrics();
        change(&step, &mut metrics);
        metrics.into()
    })
}

/// The right metrics of other numbers, also where there is no number.
fn of_any(others: fn(&Step<'_>) -> Vec<[f64; 2]>) -> Variant {
    Variant::gives(move |case: &MetricReductionCase, options: &Options, _| {
        let step = Step::new(case, options);
        step.of(&others(&step)).into()
    })
}

/// The right metrics of other numbers.
fn of_others(others: fn(&Step<'_>) -> Vec<[f64; 2]>) -> Variant {
    Variant::gives(move |case: &MetricReductionCase, options: &Options, _| {
        let step = Step::new(case, options);
        if step.all.is_empty() { step.metrics().into() } else { step.of(&others(&step)).into() }
    })
}
