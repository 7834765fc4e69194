//! Another ratio than the one of the level.

use ndarray::Array2;

use super::{Fault, steps};
use crate::importance_weights::reference::{self, Row};
use crate::importance_weights::{ImportanceWeightsCase, Level, Options};

/// Ratios that are another function of the exponent.
macro_rules! ratio_of {
    ($ratio:expr) => {
        steps(|s| s.ratios = |row, level, options| of(row, level, options, $ratio))
    };
}

/// Ratios that are another function of a row.
macro_rules! of_rows {
    ($ratio:expr) => {
        steps(|s| {
            s.ratios = |row, _, _| {
                let ratio: fn(&Row) -> f64 = $ratio;
                vec![row.round(ratio(row)); row.gaps.len()]
            }
        })
    };
}

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "sampler-replaced",
            "the trainer's log-probabilities stand where the sampler's should: no gap anywhere",
        )
        .seen("verl 2c6c65cb0; trl #4857 (306689179); ROLL bcc5818c")
        .under("{clamp_high: null}")
        .on(&[
            |case, _| case.sampler_log_probs = case.log_probs.clone(),
            |case, _| case.log_probs = case.sampler_log_probs.clone(),
        ]),
        Fault::new(
            "ratio-reversed",
            "sampler over policy: what the sampler liked better counts more",
        )
        .seen("mutation: the operands swapped; verl's k1 bounds are of sampler over policy")
        .made_of([
            steps(|s| s.gap = |log_prob, sampler| sampler - log_prob),
            steps(|s| {
                s.ratios = |row, level, options| of(row, level, options, |row, x| row.exp(-x));
            }),
        ]),
        Fault::new(
            "sum-of-exponentials",
            "the ratio of a row is Σ exp(d) for exp(Σ d): T where d is 0",
        )
        .seen("unsloth-zoo #870 (a5efee2c)")
        .under("{level: sequence, clamp_high: null}")
        .made_of([
            of_rows!(|row| row.sum(row.gaps.iter().map(|gap| row.exp(*gap)))),
            of_rows!(|row| {
                let pads = (row.width - row.gaps.len()) as f64;
                row.sum(row.gaps.iter().map(|gap| row.exp(*gap))) + pads
            }),
        ]),
        Fault::new("mean-of-ratios", "the arithmetic mean of a row's ratios for the geometric one")
            .seen("mutation: exp before the mean; NeMo-RL and slime take the mean of log-ratios")
            .under("{level: geometric}")
            .made_of([of_rows!(|row| {
                let ratios: Vec<f64> = row.gaps.iter().map(|gap| row.exp(*gap)).collect();
                row.mean(&ratios)
            })]),
        Fault::new(
            "divided-by-the-width",
            "the mean of a row divides by T, masked tokens included",
        )
        .seen("mutation: `.mean(-1)` of masked log-ratios")
        .under("{level: geometric}")
        .made_of([of_rows!(|row| {
            row.exp(row.sum(row.gaps.iter().copied()) / row.width as f64)
        })]),
        Fault::new(
            "divided-by-the-tokens-twice",
            "the exponent of a row is divided by n, and by n again",
        )
        .seen("mutation: a mean of a masked mean")
        .under("{level: geometric}")
        .made_of([of_rows!(|row| row.exp(row.mean(&row.gaps) / row.gaps.len() as f64))]),
        Fault::new("one-off-in-the-length", "the exponent of a row is divided by n + 1, or n - 1")
            .seen("mutation: the length of the shifted row, or a guard against 0 that is 1")
            .under("{level: geometric}")
            .made_of([
                of_rows!(|row| {
                    row.exp(row.sum(row.gaps.iter().copied()) / (row.gaps.len() + 1) as f64)
                }),
                of_rows!(|row| {
                    let count = row.gaps.len().max(2) - 1;
                    row.exp(row.sum(row.gaps.iter().copied()) / count as f64)
                }),
            ]),
        Fault::new("median-of-the-row", "the exponent of a row is the median of its log-ratios")
            .seen("mutation: a robust mean, against outliers")
            .under("{level: geometric}")
            .made_of([of_rows!(|row| {
                let mut gaps = row.gaps.clone();
                gaps.sort_by(f64::total_cmp);
                let middle = [(gaps.len() - 1) / 2, gaps.len() / 2].map(|at| gaps[at]);
                row.exp((middle[0] + middle[1]) / 2.0)
            })]),
        Fault::new("mean-of-the-batch", "every row has the mean log-ratio of all tokens")
            .seen("mutation: a masked mean without its axis")
            .under("{level: geometric}")
            .on(&[|case, _| {
                let gaps = (&case.log_probs - &case.sampler_log_probs).into_iter();
                let kept = gaps.zip(&case.mask).filter(|(_, kept)| **kept);
                let (sum, count) = kept.fold((0.0, 0.0), |(sum, n), (gap, _)| (sum + gap, n + 1.0));
                let places = case.sampler_log_probs.iter().zip(&case.mask);
                for (own, (sampler, kept)) in case.log_probs.iter_mut().zip(places) {
                    if *kept {
                        *own = sampler + sum / count;
                    }
                }
            }]),
        Fault::new("root-of-the-length", "the exponent of a row is divided by √n")
            .seen("mutation: a standard error for a mean")
            .under("{level: geometric}")
            .made_of([of_rows!(|row| {
                row.exp(row.sum(row.gaps.iter().copied()) / (row.gaps.len() as f64).sqrt())
            })]),
        Fault::new(
            "product-for-the-row-mean",
            "the product of a row's ratios for their geometric mean",
        )
        .seen("trl #5814, #5815: the other way round, reported as a bug and intended")
        .under("{level: geometric, clamp_high: null}")
        .as_if(&[|options| Options { level: Level::Sequence, ..options }]),
        Fault::new(
            "row-mean-for-the-product",
            "the geometric mean of a row's ratios for their product",
        )
        .seen("trl #5814, #5815: declared as the product, reported as a bug")
        .under("{level: sequence, clamp_high: null}")
        .as_if(&[|options| Options { level: Level::Geometric, ..options }]),
        Fault::new(
            "token-ratios-for-a-row",
            "each token has its own ratio where its row's is declared",
        )
        .seen("mutation: the level is not passed on")
        .under("{level: sequence}")
        .as_if(&[|options| Options { level: Level::Token, ..options }]),
        Fault::new(
            "row-ratio-for-tokens",
            "a token has the ratio of its row where its own is declared",
        )
        .seen("mutation: the level is read from another option")
        .as_if(&[
            |options| Options { level: Level::Sequence, ..options },
            |options| Options { level: Level::Geometric, ..options },
        ]),
        Fault::new("ratio-of-the-prefix", "the product of the ratios up to a token, or from it on")
            .seen("mutation: a cumulative sum, as importance sampling over trajectories has it")
            .under("{level: sequence}")
            .made_of([
                steps(|s| s.ratios = |row, _, options| cumulative(row, options, false)),
                steps(|s| s.ratios = |row, _, options| cumulative(row, options, true)),
                steps(|s| {
                    s.ratios = |row, _, options| {
                        let all = row.sum(row.gaps.iter().copied());
                        let before = cumulative(row, options, true).into_iter();
                        before.map(|before| row.round(row.exp(all) / before)).collect()
                    };
                }),
            ]),
        Fault::new("largest-for-the-row", "a row's ratio is that of its most extreme token")
            .seen("mutation: slime's rejection by the largest token, for the weight")
            .under("{level: geometric}")
            .made_of([
                of_rows!(|row| row.exp(row.gaps.iter().copied().fold(f64::MIN, f64::max))),
                of_rows!(|row| row.exp(row.gaps.iter().copied().fold(f64::MAX, f64::min))),
            ]),
        Fault::new(
            "last-token-for-the-row",
            "a row's ratio is that of its last token, or of its first",
        )
        .seen("mutation: an index where a sum belongs")
        .under("{level: sequence}")
        .made_of([
            of_rows!(|row| row.exp(row.gaps[row.gaps.len() - 1])),
            of_rows!(|row| row.exp(row.gaps[0])),
            of_rows!(|row| row.exp(at_column(row, row.width - 1))),
            of_rows!(|row| row.exp(at_column(row, 0))),
        ]),
        Fault::new("one-token-short", "the sum of a row leaves out its first token, or its last")
            .seen("mutation: a slice that is shifted by one")
            .under("{level: sequence}")
            .made_of([
                of_rows!(|row| row.exp(row.sum(row.gaps[1..].iter().copied()))),
                of_rows!(|row| row.exp(row.sum(row.gaps[..row.gaps.len() - 1].iter().copied()))),
            ]),
        Fault::new(
            "batch-for-the-row",
            "the log-ratios of all rows are added up where a row's own are",
        )
        .seen("mutation: a sum without its axis")
        .under("{level: sequence}")
        .gives(&[|case, options, dtype| {
            let gaps: Vec<f64> =
                reference::RIGHT.rows(case, dtype).into_iter().flat_map(|row| row.gaps).collect();
            let sum: f64 = gaps.iter().sum();
            let mut same = case.clone();
            for row in 0..case.mask.nrows() {
                spread(&mut same, row, sum);
            }
            let mut output = reference::weights(&same, options, dtype);
            output.mismatch_kl = reference::weights(case, options, dtype).mismatch_kl;
            output
        }]),
        Fault::new(
            "column-for-the-row",
            "the log-ratios of a column are added up where a row's own are",
        )
        .seen("mutation: `sum(0)` for `sum(-1)`")
        .under("{level: sequence}")
        .gives(&[|case, options, dtype| {
            let rows = reference::RIGHT.rows(case, dtype);
            let mut sums: Array2<f64> = Array2::zeros((1, case.mask.ncols()));
            for row in &rows {
                for (column, gap) in row.columns.iter().zip(&row.gaps) {
                    sums[[0, *column]] += gap;
                }
            }
            let mut same = case.clone();
            for (row, tokens) in rows.iter().enumerate() {
                let count = match options.level {
                    Level::Geometric => tokens.gaps.len() as f64,
                    Level::Token | Level::Sequence => 1.0,
                };
                for column in &tokens.columns {
                    same.log_probs[[row, *column]] = sums[[0, *column]] / count;
                    same.sampler_log_probs[[row, *column]] = 0.0;
                }
            }
            let tokens = Options { level: Level::Token, ..options.clone() };
            let mut output = reference::weights(&same, &tokens, dtype);
            output.mismatch_kl = reference::weights(case, options, dtype).mismatch_kl;
            output
        }]),
        Fault::new("linearised", "1 + d for exp(d), which is right for small gaps only")
            .seen("mutation: the first terms of the series")
            .made_of([ratio_of!(|_, x| 1.0 + x), ratio_of!(|_, x| 1.0 + x + 0.5 * x * x)]),
        Fault::new("log-ratio-as-the-weight", "the log-ratio itself, without exp")
            .seen("mutation: a line left out")
            .made_of([ratio_of!(|_, x| x)]),
        Fault::new("exponent-scaled", "the log-ratio is doubled or halved before exp")
            .seen("mutation: a temperature that is applied to the ratio")
            .made_of([
                ratio_of!(|row, x| row.exp(2.0 * x)),
                ratio_of!(|row, x| row.exp(0.5 * x)),
                ratio_of!(|row, x| row.exp(0.9 * x)),
            ]),
        Fault::new("power-of-two", "2^d for e^d")
            .seen("mutation: exp2, as kernels have it for logarithms to the base 2")
            .made_of([ratio_of!(|row, x| row.round(x.exp2()))]),
        Fault::new(
            "sampler-left-out",
            "the probability under the policy alone, not over the sampler's",
        )
        .seen("mutation: the denominator forgotten")
        .made_of([steps(|s| s.gap = |log_prob, _| log_prob)]),
        Fault::new(
            "policy-left-out",
            "one over the sampler's probability, as if the policy were sure",
        )
        .seen("mutation: inverse propensity without its numerator")
        .made_of([steps(|s| s.gap = |_, sampler| -sampler)]),
        Fault::new("gaps-added", "the log-probabilities are added, not subtracted")
            .seen("mutation: a sign among logarithms")
            .made_of([steps(|s| s.gap = |log_prob, sampler| log_prob + sampler)]),
        Fault::new("difference-of-probabilities", "1 + π - μ, or exp(π - μ), for π / μ")
            .seen("mutation: subtraction before the logarithms are taken away")
            .made_of([
                steps(|s| {
                    s.gap = |log_prob, sampler| (1.0 + log_prob.exp() - sampler.exp()).ln();
                }),
                steps(|s| s.gap = |log_prob, sampler| log_prob.exp() - sampler.exp()),
            ]),
        Fault::new("quotient-of-logarithms", "log π / log μ for log π - log μ")
            .seen("mutation: the quotient is taken one line too early")
            .made_of([
                steps(|s| s.gap = quotient),
                steps(|s| s.gap = |log_prob, sampler| quotient(log_prob, sampler).ln()),
            ]),
        Fault::new("gap-is-absolute", "|d| for d: what the policy likes less counts more too")
            .seen("mutation: a distance where a ratio is meant")
            .made_of([ratio_of!(|row, x| row.exp(x.abs()))]),
    ]
}

/// The ratios of a row, made of its exponents in another way.
fn of(row: &Row, level: Level, options: &Options, ratio: fn(&Row, f64) -> f64) -> Vec<f64> {
    let c = row.round(options.log_ratio_clamp.unwrap_or(f64::INFINITY));
    let exponents = reference::exponents(row, level);
    exponents.into_iter().map(|x| row.round(ratio(row, x.clamp(-c, c)))).collect()
}

/// The ratios of all that stands up to a token, itself included or not.
fn cumulative(row: &Row, options: &Options, before: bool) -> Vec<f64> {
    let c = row.round(options.log_ratio_clamp.unwrap_or(f64::INFINITY));
    let mut sum = 0.0;
    let each = row.gaps.iter().map(|gap| {
        let ahead = sum;
        sum = row.round(sum + gap);
        row.exp(if before { ahead } else { sum }.clamp(-c, c))
    });
    each.collect()
}

/// The quotient of two logarithms, 1 where both are those of certainty.
fn quotient(log_prob: f64, sampler: f64) -> f64 {
    if log_prob == sampler { 1.0 } else { log_prob / sampler }
}

/// The log-ratio in a column of a row, 0 under the mask.
fn at_column(row: &Row, column: usize) -> f64 {
    row.columns.iter().position(|at| *at == column).map_or(0.0, |at| row.gaps[at])
}

/// Gives a row log-ratios that add up to a sum.
fn spread(case: &mut ImportanceWeightsCase, row: usize, sum: f64) {
    let columns = super::super::tokens_of(case, row);
    let zeros: Array2<f64> = Array2::zeros((1, case.mask.ncols()));
    case.log_probs.row_mut(row).assign(&zeros.row(0));
    case.sampler_log_probs.row_mut(row).assign(&zeros.row(0));
    if let Some(first) = columns.first() {
        case.log_probs[[row, *first]] = sum;
    }
}
