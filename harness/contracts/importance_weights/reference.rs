//! The reference implementation of `importance-weights`, as a trainer would write it: from the
//! log-ratios to weights, each step of which a fault may replace.

use ndarray::{Array2, arr0};

use super::{
    ImportanceWeightsCase, ImportanceWeightsOutput, Level, Normalize, Options, Rejected, is_empty,
    tokens_of,
};
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::numeric::terms::term;
use shakedown_core::value::place::Dtype;

/// The tokens of a row that count.
pub(super) struct Row {
    /// Their columns.
    pub columns: Vec<usize>,
    /// Policy less sampler, for each of them.
    pub gaps: Vec<f64>,
    /// The advantage of the row, where there is one.
    pub advantage: Option<f64>,
    /// The width of the batch.
    pub width: usize,
    /// The format to compute in.
    arithmetic: Dtype,
}

impl Row {
    /// A number as the format holds it.
    pub(super) fn round(&self, x: f64) -> f64 {
        self.arithmetic.round(x)
    }

    /// The sum of some numbers.
    pub(super) fn sum(&self, numbers: impl IntoIterator<Item = f64>) -> f64 {
        numbers.into_iter().fold(0.0, |sum, x| self.round(sum + x))
    }

    /// The mean of some numbers, one at least.
    pub(super) fn mean(&self, numbers: &[f64]) -> f64 {
        self.round(self.sum(numbers.iter().copied()) / numbers.len() as f64)
    }

    /// The same row with other log-ratios.
    pub(super) fn with_gaps(&self, gaps: Vec<f64>) -> Row {
        Row { gaps, columns: self.columns.clone(), ..*self }
    }

    /// e to a power.
    pub(super) fn exp(&self, x: f64) -> f64 {
        self.round(x.exp())
    }
}

/// Policy less sampler, as a number that is summed, exponentiated and compared.
pub(super) fn exponents(row: &Row, level: Level) -> Vec<f64> {
    let same = |x: f64| vec![x; row.gaps.len()];
    match level {
        Level::Token => row.gaps.clone(),
        Level::Sequence => same(row.sum(row.gaps.iter().copied())),
        Level::Geometric => same(row.mean(&row.gaps)),
    }
}

/// The ratios of a row on a level.
pub(super) fn ratios(row: &Row, level: Level, options: &Options) -> Vec<f64> {
    let c = row.round(options.log_ratio_clamp.unwrap_or(f64::INFINITY));
    exponents(row, level).into_iter().map(|x| term("ratio", row.exp(x.clamp(-c, c)))).collect()
}

/// The weight of a ratio that is kept.
pub(super) fn clamped(row: &Row, ratio: f64, options: &Options) -> f64 {
    let low = row.round(options.clamp_low.unwrap_or(f64::NEG_INFINITY));
    let high = row.round(options.clamp_high.unwrap_or(f64::INFINITY));
    ratio.clamp(low, high)
}

/// Which tokens are outside the bounds of the ratio that selects.
pub(super) fn outside(row: &Row, options: &Options) -> Vec<bool> {
    let Some(level) = options.select.level() else { return vec![false; row.gaps.len()] };
    let low = row.round(options.select_low.unwrap_or(0.0));
    let high = row.round(options.select_high.unwrap_or(f64::INFINITY));
    ratios(row, level, options).into_iter().map(|ratio| ratio < low || ratio > high).collect()
}

/// Which tokens go with a token that the policy would hardly have sampled: all or none.
pub(super) fn vetoed(row: &Row, options: &Options) -> Vec<bool> {
    let below = |v: f64| row.gaps.iter().any(|gap| row.exp(*gap) < row.round(v));
    vec![options.veto.is_some_and(below); row.gaps.len()]
}

/// Which tokens go for the drift of their row: all or none.
pub(super) fn drifted(row: &Row, options: &Options) -> Vec<bool> {
    let (Some(limit), Some(advantage)) = (options.drift, row.advantage) else {
        return vec![false; row.gaps.len()];
    };
    let far = || -row.mean(&row.gaps) > row.round(limit);
    vec![advantage < 0.0 && far(); row.gaps.len()]
}

/// The rows of weights, divided by their mean.
pub(super) fn normalized(rows: &[Row], weights: &mut [Vec<f64>], options: &Options) {
    let Some(row) = rows.first() else { return };
    let filled: Vec<&Vec<f64>> = weights.iter().filter(|weights| !weights.is_empty()).collect();
    let mean = match options.normalize {
        _ if filled.is_empty() => return,
        Normalize::None => return,
        Normalize::Tokens => row.mean(&weights.concat()),
        Normalize::Sequences => {
            let means: Vec<f64> = filled.iter().map(|weights| row.mean(weights)).collect();
            row.mean(&means)
        }
    };
    if mean > 0.0 {
        weights.iter_mut().flatten().for_each(|weight| *weight = row.round(*weight / mean));
    }
}

/// The steps from log-ratios to weights.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    /// The log-ratio of a token, from policy and sampler.
    pub gap: fn(f64, f64) -> f64,
    /// The ratios on the level of the weight.
    pub ratios: fn(&Row, Level, &Options) -> Vec<f64>,
    /// The weight of a ratio.
    pub clamped: fn(&Row, f64, &Options) -> f64,
    /// Which tokens the bounds drop.
    pub outside: fn(&Row, &Options) -> Vec<bool>,
    /// Which tokens an unlikely one drops.
    pub vetoed: fn(&Row, &Options) -> Vec<bool>,
    /// Which tokens the drift drops.
    pub drifted: fn(&Row, &Options) -> Vec<bool>,
    /// The weight of a dropped token, from the one that it has if it is kept.
    pub dropped: fn(f64, &Options) -> f64,
    /// Divides the weights by their mean.
    pub normalized: fn(&[Row], &mut [Vec<f64>], &Options),
}

/// The right ones.
pub(super) const RIGHT: Steps = Steps {
    gap: |log_prob, sampler| term("log-ratio", log_prob - sampler),
    ratios,
    clamped,
    outside,
    vetoed,
    drifted,
    dropped: |weight, options| match options.rejected {
        Rejected::Zero => 0.0,
        Rejected::Unchanged => weight,
    },
    normalized,
};

impl Steps {
    /// The rows of a case.
    pub(super) fn rows(&self, case: &ImportanceWeightsCase, dtype: Dtype) -> Vec<Row> {
        let arithmetic = dtype.arithmetic();
        let row = |row: usize| {
            let columns = tokens_of(case, row);
            let gap = |column: &usize| {
                let at = [row, *column];
                arithmetic.round((self.gap)(case.log_probs[at], case.sampler_log_probs[at]))
            };
            Row {
                gaps: columns.iter().map(gap).collect(),
                columns,
                advantage: case.advantages.as_ref().map(|advantages| advantages[row]),
                width: case.mask.ncols(),
                arithmetic,
            }
        };
        (0..case.mask.nrows()).map(row).collect()
    }

    /// What these steps give.
    pub(super) fn run(
        &self,
        case: &ImportanceWeightsCase,
        options: &Options,
        dtype: Dtype,
    ) -> ImportanceWeightsOutput {
        assert!(options.empty_mask != EmptyMask::Refuse || !is_empty(case), "no token counts");
        let rows = self.rows(case, dtype);
        let mut keep = Array2::zeros(case.mask.dim());
        let (mut weights, mut gaps) = (Vec::new(), Vec::new());
        let (mut clipped, mut count) = (0.0, 0.0);
        for (index, row) in rows.iter().enumerate().filter(|(_, row)| !row.gaps.is_empty()) {
            let ratios = (self.ratios)(row, options.level, options);
            let drops = [
                (self.outside)(row, options),
                (self.vetoed)(row, options),
                (self.drifted)(row, options),
            ];
            let mut of_row = Vec::new();
            for (token, ratio) in ratios.into_iter().enumerate() {
                let weight = (self.clamped)(row, ratio, options);
                let dropped = drops.iter().any(|drops| drops[token]);
                of_row.push(if dropped { (self.dropped)(weight, options) } else { weight });
                keep[[index, row.columns[token]]] = f64::from(!dropped);
                clipped += f64::from(dropped || weight != ratio);
                gaps.push(-row.gaps[token]);
                count += 1.0;
            }
            weights.push((index, of_row));
        }
        let (indices, mut weights): (Vec<usize>, Vec<Vec<f64>>) = weights.into_iter().unzip();
        (self.normalized)(&rows, &mut weights, options);
        let mut output = Array2::zeros(case.mask.dim());
        for (index, weights) in indices.into_iter().zip(weights) {
            for (column, weight) in rows[index].columns.iter().zip(weights) {
                output[[index, *column]] = weight;
            }
        }
        let of_tokens = |number: &dyn Fn() -> f64| match options.empty_mask {
            _ if count > 0.0 => number(),
            EmptyMask::Nan => f64::NAN,
            EmptyMask::Zero | EmptyMask::Refuse | EmptyMask::Avoid => 0.0,
        };
        ImportanceWeightsOutput {
            weights: output,
            keep: Some(keep),
            clip_fraction: Some(arr0(of_tokens(&|| clipped / count))),
            mismatch_kl: Some(arr0(of_tokens(&|| rows[0].mean(&gaps)))),
            grad_log_probs: Some(Array2::zeros(case.mask.dim())),
        }
    }
}

/// The weights and what goes with them, in the arithmetic of the dtype.
pub(super) fn weights(
    case: &ImportanceWeightsCase,
    options: &Options,
    dtype: Dtype,
) -> ImportanceWeightsOutput {
    RIGHT.run(case, options, dtype)
}
