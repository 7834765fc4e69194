//! The definition of `importance-weights` in plain f64, with the scale of every number.

use ndarray::{Array2, arr0};

use super::{
    ImportanceWeightsCase, Level, Normalize, Options, Rejected, Select, is_empty, tokens_of,
};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number, outside};
use shakedown_core::value::place::Dtype;

/// Whether something is the case; rounding decides where a number is next to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    No,
    Open,
    Yes,
}

/// Whether a number is positive, where it may be off by a margin.
fn is_positive(number: f64, margin: f64) -> Verdict {
    match number {
        _ if number.abs() <= margin => Verdict::Open,
        _ if number > 0.0 => Verdict::Yes,
        _ => Verdict::No,
    }
}

/// A token that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// The row and the column.
    pub at: (usize, usize),
    /// The log-ratio of policy and sampler.
    pub d: f64,
    /// The ratio on the level of the weight, once its exponent is clamped.
    pub ratio: f64,
    /// The ratio within its clamp.
    pub weight: Scaled,
    /// Whether the weight depends on where the log-ratios of a mean are clamped.
    pub ambiguous: bool,
    /// Whether the clamp changes the ratio.
    pub clamped: Verdict,
    /// Whether the token is dropped.
    pub dropped: Verdict,
    /// |log_probs| + |sampler_log_probs|.
    magnitude: f64,
}

/// An exponent, and how near to a bound it may be on either side of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exponent {
    pub number: Scaled,
    margin: f64,
}

impl Exponent {
    /// A sum of log-ratios, or their mean, of logarithms of this magnitude.
    fn of(value: f64, magnitude: f64, count: usize, dtype: Dtype) -> Exponent {
        let scale = magnitude * (1.0 + (count as f64).log2());
        let roundoff = dtype.arithmetic().unit_roundoff();
        let margin = 1e-6 * (1.0 + magnitude) + 4.0 * roundoff * scale;
        Exponent { number: Scaled { value, scale }, margin }
    }

    /// The exponent within ±c.
    fn clamped(self, options: &Options) -> Exponent {
        let Some(c) = options.log_ratio_clamp else { return self };
        let number = match is_positive(self.number.value.abs() - c, self.margin) {
            Verdict::Yes => Scaled::rounded(c.copysign(self.number.value)),
            Verdict::Open => Scaled { value: self.number.value.clamp(-c, c), ..self.number },
            Verdict::No => self.number,
        };
        Exponent { number, ..self }
    }

    /// Whether the ratio is above a bound.
    fn is_above(self, bound: Option<f64>) -> Verdict {
        let excess = |bound: f64| is_positive(self.number.value - bound.ln(), self.margin);
        bound.map_or(Verdict::No, excess)
    }

    /// Whether the ratio is below a bound.
    fn is_below(self, bound: Option<f64>) -> Verdict {
        let excess = |bound: f64| is_positive(bound.ln() - self.number.value, self.margin);
        bound.map_or(Verdict::No, excess)
    }
}

/// The tokens of a row that count, as logarithms.
struct Row {
    gaps: Vec<f64>,
    magnitudes: Vec<f64>,
}

impl Row {
    fn sum(numbers: &[f64]) -> f64 {
        numbers.iter().sum()
    }

    /// The exponent of a token on a level.
    fn exponent(&self, token: usize, level: Level, dtype: Dtype) -> Exponent {
        let count = self.gaps.len();
        let (sum, magnitude) = (Row::sum(&self.gaps), Row::sum(&self.magnitudes));
        match level {
            Level::Token => Exponent::of(self.gaps[token], self.magnitudes[token], 1, dtype),
            Level::Sequence => Exponent::of(sum, magnitude, count, dtype),
            Level::Geometric => {
                Exponent::of(sum / count as f64, magnitude / count as f64, count, dtype)
            }
        }
    }

    /// Whether one of its tokens is so unlikely that all go.
    fn is_vetoed(&self, options: &Options, dtype: Dtype) -> Verdict {
        let each = (0..self.gaps.len())
            .map(|token| self.exponent(token, Level::Token, dtype).is_below(options.veto));
        each.max().unwrap_or(Verdict::No)
    }

    /// Whether it has drifted, and its advantage is negative.
    fn has_drifted(&self, advantage: Option<f64>, options: &Options, dtype: Dtype) -> Verdict {
        let (Some(limit), Some(advantage)) = (options.drift, advantage) else {
            return Verdict::No;
        };
        if advantage >= 0.0 {
            return Verdict::No;
        }
        let mean = self.exponent(0, Level::Geometric, dtype);
        is_positive(-mean.number.value - limit, mean.margin + 1e-6 * limit.abs())
    }

    /// The row if its log-ratios are clamped one by one, where that makes a difference.
    fn each_clamped(&self, options: &Options) -> Option<Row> {
        let c = options.log_ratio_clamp.filter(|c| self.gaps.iter().any(|gap| gap.abs() > *c))?;
        let gaps = self.gaps.iter().map(|gap| gap.clamp(-c, c)).collect();
        Some(Row { gaps, magnitudes: self.magnitudes.clone() })
    }

    /// Whether a token is outside the bounds of the ratio that selects. For that of a row it is
    /// left open where it depends on whether the exponent is clamped or each log-ratio: verl
    /// (`compute_rollout_rejection_mask`) and open-instruct clamp each, slime the exponent.
    fn is_outside(&self, token: usize, options: &Options, dtype: Dtype) -> Verdict {
        let Some(level) = options.select.level() else { return Verdict::No };
        let verdict = |row: &Row| {
            let exponent = row.exponent(token, level, dtype).clamped(options);
            exponent.is_below(options.select_low).max(exponent.is_above(options.select_high))
        };
        let of_each = self.each_clamped(options).map(|row| verdict(&row));
        match (verdict(self), of_each) {
            (verdict, Some(other)) if other != verdict => Verdict::Open,
            (verdict, _) => verdict,
        }
    }

    /// Whether the mean of the row is another one if each log-ratio is clamped, as open-instruct
    /// (`compute_rho_correction`) has it. The sum is clamped as a whole wherever there is a weight
    /// of it.
    fn is_ambiguous(&self, options: &Options, dtype: Dtype) -> bool {
        let exponent = |row: &Row| row.exponent(0, options.level, dtype).clamped(options);
        let other = self.each_clamped(options).filter(|_| options.level == Level::Geometric);
        other.is_some_and(|other| {
            let (whole, each) = (exponent(self), exponent(&other));
            (whole.number.value - each.number.value).abs() > whole.margin
        })
    }
}

/// Every token that counts, row by row, before the weights are divided by a mean.
pub(super) fn judged(
    case: &ImportanceWeightsCase,
    options: &Options,
    dtype: Dtype,
) -> Vec<Vec<Token>> {
    let rows = 0..case.mask.nrows();
    rows.map(|row| {
        let columns = tokens_of(case, row);
        let numbers = |of: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
            let both = |c: &usize| (case.log_probs[[row, *c]], case.sampler_log_probs[[row, *c]]);
            columns.iter().map(both).map(|(own, sampler)| of(own, sampler)).collect()
        };
        let logs = Row {
            gaps: numbers(&|own, sampler| own - sampler),
            magnitudes: numbers(&|own, sampler| own.abs() + sampler.abs()),
        };
        if columns.is_empty() {
            return Vec::new();
        }
        let advantage = case.advantages.as_ref().map(|advantages| advantages[row]);
        let drifted = logs.has_drifted(advantage, options, dtype);
        let gone = logs.is_vetoed(options, dtype).max(drifted);
        let ambiguous = logs.is_ambiguous(options, dtype);
        let token = |(index, column): (usize, &usize)| {
            let exponent = logs.exponent(index, options.level, dtype).clamped(options);
            let (weight, clamped) = held(exponent, options);
            let clamped = if ambiguous { Verdict::Open } else { clamped };
            Token {
                at: (row, *column),
                d: logs.gaps[index],
                ratio: exponent.number.value.exp(),
                weight,
                ambiguous,
                clamped,
                dropped: gone.max(logs.is_outside(index, options, dtype)),
                magnitude: logs.magnitudes[index],
            }
        };
        columns.iter().enumerate().map(token).collect()
    })
    .collect()
}

/// The ratio within its clamp, and whether that changes it.
fn held(exponent: Exponent, options: &Options) -> (Scaled, Verdict) {
    let free = exponent.number.exp();
    type Side = (Option<f64>, Verdict, fn(f64, f64) -> f64);
    let sides: [Side; 2] = [
        (options.clamp_low, exponent.is_below(options.clamp_low), f64::max),
        (options.clamp_high, exponent.is_above(options.clamp_high), f64::min),
    ];
    let (mut weight, mut clamped) = (free, Verdict::No);
    for (bound, verdict, held) in sides {
        let Some(bound) = bound else { continue };
        clamped = clamped.max(verdict);
        weight = match verdict {
            Verdict::Yes => Scaled::rounded(bound),
            Verdict::Open => Scaled { value: held(weight.value, bound), scale: free.scale + bound },
            Verdict::No => weight,
        };
    }
    (weight, clamped)
}

/// The mean by which the weights are divided, of rows with a token.
pub(super) fn mean(rows: &[Vec<Scaled>], normalize: Normalize) -> Scaled {
    let sum = |weights: &Vec<Scaled>| Scaled::sum(weights.iter().copied());
    let filled = || rows.iter().filter(|row| !row.is_empty());
    match normalize {
        Normalize::None => Scaled::exact(1.0),
        Normalize::Tokens => {
            let all = rows.concat();
            sum(&all) / all.len() as f64
        }
        Normalize::Sequences => {
            let means = filled().map(|row| sum(row) / row.len() as f64);
            Scaled::sum(means) / filled().count() as f64
        }
    }
}

/// The weight of a token before it is divided by a mean; `None` where rounding decides whether the
/// token is dropped, or the order of a clamp and a mean what it weighs.
pub(super) fn undivided(token: &Token, options: &Options) -> Option<Scaled> {
    match (token.dropped, options.rejected) {
        (Verdict::Yes, Rejected::Zero) => Some(Scaled::exact(0.0)),
        _ if token.ambiguous => None,
        (_, Rejected::Unchanged) | (Verdict::No, Rejected::Zero) => Some(token.weight),
        (Verdict::Open, Rejected::Zero) => None,
    }
}

/// All outputs.
pub(super) fn outputs(
    case: &ImportanceWeightsCase,
    options: &Options,
    dtype: Dtype,
) -> Vec<Expected> {
    let rows = judged(case, options, dtype);
    let tokens = rows.concat();
    note(&tokens, options);
    let outside = outside(options.masked_output);
    let mut weights = Array2::from_elem(case.mask.dim(), outside);
    let mut keep = weights.clone();
    let of_row = |row: &Vec<Token>| -> Option<Vec<Scaled>> {
        row.iter().map(|token| undivided(token, options)).collect()
    };
    let undivided_rows: Option<Vec<Vec<Scaled>>> = rows.iter().map(of_row).collect();
    let divisor = match options.normalize {
        Normalize::None => Some(None),
        // Unknown where one of the weights is.
        normalize => undivided_rows.map(|rows| {
            let mean = mean(&rows, normalize);
            (mean.value > 0.0).then_some(mean)
        }),
    };
    for token in &tokens {
        weights[token.at] = match (undivided(token, options), divisor) {
            (Some(weight), _) if weight.value == 0.0 && weight.scale == 0.0 => weight.into(),
            (Some(weight), Some(Some(mean))) => (weight / mean).into(),
            (Some(weight), Some(None)) => weight.into(),
            (None, _) | (_, None) => Number::OPEN,
        };
        keep[token.at] = match token.dropped {
            Verdict::No => Number::new(1.0, 0.0),
            Verdict::Open => Number::OPEN,
            Verdict::Yes => Number::new(0.0, 0.0),
        };
    }
    let [fraction, mismatch] = if is_empty(case) {
        match options.empty_mask {
            EmptyMask::Zero => [Number::new(0.0, 0.0); 2],
            EmptyMask::Nan => [Number::NAN; 2],
            EmptyMask::Refuse | EmptyMask::Avoid => [Number::ANYTHING; 2],
        }
    } else {
        [clip_fraction(&tokens), mismatch_kl(&tokens)]
    };
    let array =
        |field, numbers: Array2<Number>| Expected { field, numbers: numbers.into_dyn(), terms: 1 };
    let number = |field, number| Expected { field, numbers: arr0(number).into_dyn(), terms: 1 };
    vec![
        array("weights", weights),
        array("keep", keep),
        number("clip_fraction", fraction),
        number("mismatch_kl", mismatch),
    ]
}

/// The share of the tokens that are clamped or dropped. One of which rounding decides counts half,
/// give or take the other half.
fn clip_fraction(tokens: &[Token]) -> Number {
    let verdicts = tokens.iter().map(|token| token.clamped.max(token.dropped));
    let (mut clipped, mut undecided) = (0.0, 0.0);
    for verdict in verdicts {
        match verdict {
            Verdict::Yes => clipped += 1.0,
            Verdict::Open => undecided += 1.0,
            Verdict::No => {}
        }
    }
    let count = tokens.len() as f64;
    let share = Number::new((clipped + 0.5 * undecided) / count, 1.0);
    Number { slack: 0.5 * undecided / count, ..share }
}

/// The mean of sampler less policy, whatever becomes of a token.
fn mismatch_kl(tokens: &[Token]) -> Number {
    let gaps = tokens.iter().map(|token| Scaled { value: -token.d, scale: token.magnitude });
    (Scaled::sum(gaps) / tokens.len() as f64).into()
}

/// The gradient of the summed weights: none gets through them.
pub(super) fn gradient(case: &ImportanceWeightsCase) -> Vec<Expected> {
    let numbers = Array2::from_elem(case.mask.dim(), Number::new(0.0, 0.0));
    vec![Expected { field: "grad_log_probs", numbers: numbers.into_dyn(), terms: 1 }]
}

/// Tells a fuzzer what became of the tokens.
fn note(tokens: &[Token], options: &Options) {
    for token in tokens {
        if token.clamped == Verdict::Yes {
            coverage::event(&["clamped", if token.ratio > 1.0 { "above" } else { "below" }]);
        }
        match token.dropped {
            Verdict::Yes if options.select != Select::None => coverage::event(&["selected away"]),
            Verdict::Yes => coverage::event(&["its row is dropped"]),
            Verdict::Open => coverage::event(&["undecided"]),
            Verdict::No => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, arr1, arr2};

    use super::*;

    /// The values of an output for rows of log-ratios, all of which count.
    fn found<const T: usize>(field: &str, gaps: &[[f64; T]], options: &Options) -> Vec<f64> {
        let log_probs = arr2(gaps);
        let advantages = options.drift.map(|_| arr1(&vec![-1.0; gaps.len()]));
        let case = ImportanceWeightsCase {
            sampler_log_probs: Array2::zeros(log_probs.dim()),
            mask: Array2::from_elem(log_probs.dim(), true),
            log_probs,
            advantages,
        };
        let outputs = outputs(&case, options, Dtype::F64);
        let output = outputs.iter().find(|output| output.field == field).unwrap();
        output.numbers.iter().map(|number| number.value).collect()
    }

    #[track_caller]
    fn near(found: &[f64], expected: &[f64]) {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
        assert!(found.len() == expected.len(), "{found:?} {expected:?}");
        assert!(found.iter().zip(expected).all(near), "{found:?} is not {expected:?}");
    }

    fn free() -> Options {
        Options { clamp_high: None, ..Options::default() }
    }

    const LN_2: f64 = std::f64::consts::LN_2;

    #[test]
    fn a_level_is_one_ratio_their_product_or_their_geometric_mean() {
        let gaps = [[LN_2, 2.0 * LN_2]];
        near(&found("weights", &gaps, &free()), &[2.0, 4.0]);
        let sequence = Options { level: Level::Sequence, ..free() };
        near(&found("weights", &gaps, &sequence), &[8.0, 8.0]);
        let geometric = Options { level: Level::Geometric, ..free() };
        near(&found("weights", &gaps, &geometric), &[8_f64.sqrt(); 2]);
    }

    #[test]
    fn what_is_outside_the_bounds_is_held_or_dropped() {
        let gaps = [[2.0 * LN_2, -2.0 * LN_2, 0.0]];
        near(&found("weights", &gaps, &Options::default()), &[2.0, 0.25, 1.0]);
        near(&found("clip_fraction", &gaps, &Options::default()), &[1.0 / 3.0]);
        let select = Options { select: Select::Token, select_low: Some(0.5), ..free() };
        near(&found("weights", &gaps, &select), &[4.0, 0.0, 1.0]);
        near(&found("keep", &gaps, &select), &[1.0, 0.0, 1.0]);
        let unchanged = Options { rejected: Rejected::Unchanged, ..select };
        near(&found("weights", &gaps, &unchanged), &[4.0, 0.25, 1.0]);
        near(&found("keep", &gaps, &unchanged), &[1.0, 0.0, 1.0]);
        near(&found("mismatch_kl", &gaps, &unchanged), &[0.0]);
    }

    #[test]
    fn a_row_goes_as_a_whole() {
        let gaps = [[-3.0, 1.0], [0.0, 0.1]];
        let veto = Options { veto: Some(0.1), ..free() };
        near(&found("keep", &gaps, &veto), &[0.0, 0.0, 1.0, 1.0]);
        let drift = Options { drift: Some(0.5), ..free() };
        near(&found("keep", &gaps, &drift), &[0.0, 0.0, 1.0, 1.0]);
        let geometric = Options { select: Select::Geometric, select_low: Some(0.3), ..free() };
        near(&found("keep", &gaps, &geometric), &[1.0; 4]);
        let sequence = Options { select: Select::Sequence, ..geometric };
        near(&found("keep", &gaps, &sequence), &[0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn weights_are_divided_last_by_their_mean() {
        let gaps = [[3.0 * LN_2, 0.0], [-LN_2, -LN_2]];
        let tokens = Options { normalize: Normalize::Tokens, ..Options::default() };
        near(&found("weights", &gaps, &tokens), &[2.0, 1.0, 0.5, 0.5]);
        let sequences = Options { normalize: Normalize::Sequences, ..free() };
        near(&found("weights", &gaps, &sequences), &[3.2, 0.4, 0.2, 0.2]);
        let none = Options { select: Select::Token, select_low: Some(100.0), ..tokens };
        near(&found("weights", &gaps, &none), &[0.0; 4]);
    }

    #[test]
    fn the_exponent_is_clamped_for_weights_and_bounds_alone() {
        let gaps = [[-10.0, 10.0]];
        let clamp = Options { log_ratio_clamp: Some(1.0), ..free() };
        let e = std::f64::consts::E;
        near(&found("weights", &gaps, &clamp), &[1.0 / e, e]);
        let select = Options { select: Select::Token, select_high: Some(3.0), ..clamp.clone() };
        near(&found("keep", &gaps, &select), &[1.0, 1.0]);
        let veto = Options { veto: Some(0.1), ..clamp };
        near(&found("keep", &gaps, &veto), &[0.0, 0.0]);
    }

    #[test]
    fn next_to_a_bound_nothing_is_said() {
        let select = Options { select: Select::Token, select_high: Some(2.0), ..free() };
        let case = ImportanceWeightsCase {
            log_probs: arr2(&[[LN_2, 0.0]]),
            sampler_log_probs: Array2::zeros((1, 2)),
            mask: Array2::from_elem((1, 2), true),
            advantages: None,
        };
        let expected = outputs(&case, &select, Dtype::F64);
        assert_eq!(expected[0].numbers[[0, 0]], Number::OPEN);
        assert_eq!(expected[1].numbers[[0, 0]], Number::OPEN);
        assert_eq!(expected[2].numbers[[]].slack, 0.25);
        let divided = Options { normalize: Normalize::Tokens, ..select };
        assert_eq!(outputs(&case, &divided, Dtype::F64)[0].numbers[[0, 1]], Number::OPEN);
    }
}
