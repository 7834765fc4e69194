//! What the faults of `token-log-probs` are made of: each with the gradient that follows from it.

use ndarray::{Array2, Array3, Axis};

use crate::token_log_probs::generate::argmax;
use crate::token_log_probs::{
    Options, TokenLogProbsCase, TokenLogProbsOutput, columns, position, reference, scored,
};
use shakedown_core::value::place::Dtype;

/// One scored position.
pub(super) struct At<'a> {
    /// The column of the output.
    pub(super) column: usize,
    /// The token to score.
    pub(super) token: usize,
    /// The logits.
    pub(super) logits: &'a [f64],
    /// The logits over the temperature.
    pub(super) z: Vec<f64>,
    /// The temperature.
    pub(super) temperature: f64,
}

impl At<'_> {
    pub(super) fn onehot(&self, entry: usize) -> f64 {
        f64::from(u8::from(entry == self.token))
    }

    pub(super) fn log_prob(&self) -> f64 {
        self.z[self.token] - log_sum(&self.z)
    }

    pub(super) fn softmax(&self) -> Vec<f64> {
        softmax(&self.z)
    }

    /// How many entries are more likely, or as likely and earlier.
    pub(super) fn rank(&self, entry: usize) -> usize {
        let before = |other: usize| {
            self.z[other] > self.z[entry] || (self.z[other] == self.z[entry] && other < entry)
        };
        (0..self.z.len()).filter(|other| before(*other)).count()
    }

    /// factor · (onehot - softmax) / temperature.
    pub(super) fn gradient(&self, softmax: &[f64], factor: f64) -> Vec<f64> {
        let parts = softmax.iter().enumerate();
        parts.map(|(entry, p)| factor * (self.onehot(entry) - p) / self.temperature).collect()
    }
}

fn log_sum(z: &[f64]) -> f64 {
    let largest = z[argmax(z)];
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + z.iter().map(|z| (z - largest).exp()).sum::<f64>().ln()
}

fn softmax(z: &[f64]) -> Vec<f64> {
    let log_sum = log_sum(z);
    if log_sum == f64::NEG_INFINITY {
        return vec![f64::NAN; z.len()];
    }
    z.iter().map(|z| (z - log_sum).exp()).collect()
}

/// The right values with the right gradient.
pub(super) fn right(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
) -> TokenLogProbsOutput {
    reference::log_probs(case, options, dtype)
}

/// Maps each scored position to a value and its gradient by the logits of the position.
pub(super) fn by_position(
    case: &TokenLogProbsCase,
    options: &Options,
    f: impl Fn(At<'_>) -> (f64, Vec<f64>),
) -> TokenLogProbsOutput {
    let mut log_probs = Array2::zeros((case.tokens.nrows(), columns(case, options)));
    let mut grad_logits = Array3::zeros(case.logits.dim());
    for (row, column, token) in scored(case, options) {
        let logits = position(case, row, column).to_vec();
        let temperature = options.temperature;
        let z = logits.iter().map(|logit| logit / temperature).collect();
        let (value, gradient) = f(At { column, token, logits: &logits, z, temperature });
        log_probs[[row, column]] = value;
        for (entry, g) in gradient.into_iter().enumerate() {
            grad_logits[[row, column, entry]] = g;
        }
    }
    TokenLogProbsOutput { log_probs, grad_logits: Some(grad_logits) }
}

/// What the reference gives for one position.
pub(super) fn right_at(at: &At<'_>, dtype: Dtype) -> (f64, Vec<f64>) {
    let case = TokenLogProbsCase {
        logits: Array3::from_shape_fn((1, 1, at.logits.len()), |(_, _, entry)| at.logits[entry]),
        tokens: Array2::from_elem((1, 1), at.token as i64),
    };
    let options = Options { temperature: at.temperature, ..Options::default() };
    let output = reference::log_probs(&case, &options, dtype);
    (output.log_probs[[0, 0]], output.grad_logits.into_iter().flatten().collect())
}

/// The output and its gradient times a factor.
pub(super) fn times(output: TokenLogProbsOutput, factor: f64) -> TokenLogProbsOutput {
    TokenLogProbsOutput {
        log_probs: factor * output.log_probs,
        grad_logits: output.grad_logits.map(|gradient| factor * gradient),
    }
}

/// Right values with another gradient.
pub(super) fn gradient(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
    change: impl Fn(&Options, f64) -> f64,
) -> TokenLogProbsOutput {
    let output = right(case, options, dtype);
    let grad_logits = output.grad_logits.map(|gradient| gradient.mapv(|g| change(options, g)));
    TokenLogProbsOutput { grad_logits, ..output }
}

/// Right values with a gradient divided by a count.
pub(super) fn divided_gradient(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
    count: usize,
) -> TokenLogProbsOutput {
    gradient(case, options, dtype, |_, g| g / count as f64)
}

/// The gradient of each column times its weight.
pub(super) fn weighted(
    mut output: TokenLogProbsOutput,
    weight: impl Fn(usize) -> usize,
) -> TokenLogProbsOutput {
    let columns = output.log_probs.ncols();
    if let Some(gradient) = &mut output.grad_logits {
        for column in 0..columns {
            let mut column_of = gradient.index_axis_mut(Axis(1), column);
            column_of *= weight(column) as f64;
        }
    }
    output
}

/// Column c of the output comes from the logits and the token of the columns that `from(c, T)`
/// names; 0 where there is no such column.
pub(super) fn moved(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
    from: impl Fn(usize, usize) -> (usize, Option<usize>),
) -> TokenLogProbsOutput {
    let (rows, length) = case.tokens.dim();
    let mut log_probs = Array2::zeros((rows, columns(case, options)));
    let mut grad_logits = Array3::zeros(case.logits.dim());
    for ((row, column), value) in log_probs.indexed_iter_mut() {
        let (logits_at, token_at) = from(column, length);
        let Some(token_at) = token_at.filter(|at| logits_at.max(*at) < length) else { continue };
        let logits = position(case, row, logits_at).to_vec();
        let temperature = options.temperature;
        let token = case.tokens[[row, token_at]] as usize;
        let at = At { column, token, logits: &logits, z: Vec::new(), temperature };
        let (found, gradient) = right_at(&at, dtype);
        *value = found;
        for (entry, g) in gradient.into_iter().enumerate() {
            grad_logits[[row, logits_at, entry]] = g;
        }
    }
    TokenLogProbsOutput { log_probs, grad_logits: Some(grad_logits) }
}

/// Another token is scored at each position.
pub(super) fn with_token(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
    token: impl Fn(&At<'_>) -> usize,
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let token = token(&at);
        right_at(&At { token, ..at }, dtype)
    })
}

/// Tokens are read from other places than their own.
pub(super) fn with_tokens_at(
    case: &mut TokenLogProbsCase,
    place: impl Fn(usize, usize) -> (usize, usize),
) {
    let tokens = &case.tokens;
    case.tokens = Array2::from_shape_fn(tokens.dim(), |(row, column)| tokens[place(row, column)]);
}

/// The logits pass through a function first, which gives its derivative too.
pub(super) fn mapped(
    case: &TokenLogProbsCase,
    options: &Options,
    f: impl Fn(f64) -> (f64, f64),
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let through: Vec<(f64, f64)> = at.logits.iter().map(|logit| f(*logit)).collect();
        let z = through.iter().map(|(logit, _)| logit / at.temperature).collect();
        let at = At { z, ..at };
        let gradient = at.gradient(&at.softmax(), 1.0).into_iter().zip(&through);
        (at.log_prob(), gradient.map(|(g, (_, slope))| g * slope).collect())
    })
}

/// Clamped to ±`most`.
pub(super) fn within(x: f64, most: f64) -> (f64, f64) {
    (x.clamp(-most, most), f64::from(u8::from(x.abs() <= most)))
}

/// Soft-capped at ±`most`.
pub(super) fn capped(x: f64, most: f64) -> (f64, f64) {
    let share = (x / most).tanh();
    (most * share, 1.0 - share * share)
}

/// A number where there is an infinity.
pub(super) fn finite_or(x: f64, number: f64) -> (f64, f64) {
    if x.is_finite() { (x, 1.0) } else { (number, 0.0) }
}

/// Normalised over the logits at `places(row, column, token)`, which may be any.
pub(super) fn less(
    case: &TokenLogProbsCase,
    options: &Options,
    places: impl Fn(usize, usize, usize) -> Vec<[usize; 3]>,
) -> TokenLogProbsOutput {
    let mut log_probs = Array2::zeros((case.tokens.nrows(), columns(case, options)));
    let mut grad_logits = Array3::zeros(case.logits.dim());
    for (row, column, token) in scored(case, options) {
        let places = places(row, column, token);
        let z: Vec<f64> =
            places.iter().map(|place| case.logits[*place] / options.temperature).collect();
        let own = case.logits[[row, column, token]] / options.temperature;
        log_probs[[row, column]] = own - log_sum(&z);
        grad_logits[[row, column, token]] += 1.0 / options.temperature;
        for (place, p) in places.iter().zip(softmax(&z)) {
            grad_logits[*place] -= p / options.temperature;
        }
    }
    TokenLogProbsOutput { log_probs, grad_logits: Some(grad_logits) }
}

/// Normalised over the logits of another position.
pub(super) fn normalised_at(
    case: &TokenLogProbsCase,
    options: &Options,
    place: impl Fn(usize, usize) -> (usize, usize),
) -> TokenLogProbsOutput {
    less(case, options, |row, column, _| {
        let (row, column) = place(row, column);
        (0..case.logits.dim().2).map(|entry| [row, column, entry]).collect()
    })
}

/// Normalised over some entries of the vocabulary only.
pub(super) fn among(
    case: &TokenLogProbsCase,
    options: &Options,
    counts: impl Fn(&At<'_>, usize) -> bool,
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let entries = at.z.iter().enumerate();
        let counted: Vec<f64> = entries
            .map(|(entry, z)| if counts(&at, entry) { *z } else { f64::NEG_INFINITY })
            .collect();
        (at.z[at.token] - log_sum(&counted), at.gradient(&softmax(&counted), 1.0))
    })
}

/// Every step of a log-softmax rounded to a half format.
pub(super) fn in_half(
    case: &TokenLogProbsCase,
    options: &Options,
    half: Dtype,
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let z: Vec<f64> =
            at.logits.iter().map(|x| half.round(half.round(*x) / at.temperature)).collect();
        let largest = z[argmax(&z)];
        let below: Vec<f64> = z.iter().map(|z| half.round(z - largest)).collect();
        let sum = half.round(below.iter().map(|z| half.round(z.exp())).sum());
        let log_probs: Vec<f64> =
            below.iter().map(|below| half.round(below - half.round(sum.ln()))).collect();
        let softmax: Vec<f64> =
            log_probs.iter().map(|log_prob| half.round(log_prob.exp())).collect();
        (log_probs[at.token], at.gradient(&softmax, 1.0))
    })
}

/// The logit less the normaliser, both rounded to a half format: nothing is left near 0.
pub(super) fn normaliser_in_half(
    case: &TokenLogProbsCase,
    options: &Options,
    half: Dtype,
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let z: Vec<f64> =
            at.logits.iter().map(|x| half.round(half.round(*x) / at.temperature)).collect();
        let normaliser = half.round(log_sum(&z));
        let log_probs: Vec<f64> = z.iter().map(|z| half.round(z - normaliser)).collect();
        let softmax: Vec<f64> =
            log_probs.iter().map(|log_prob| half.round(log_prob.exp())).collect();
        (log_probs[at.token], at.gradient(&softmax, 1.0))
    })
}

/// Right values, stored in a half format.
pub(super) fn stored(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
    half: Dtype,
) -> TokenLogProbsOutput {
    let mut output = right(case, options, dtype);
    output.log_probs.mapv_inplace(|x| half.round(x));
    output
}

/// Right values of logits that passed through a half format.
pub(super) fn from_rounded(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
    half: Dtype,
) -> TokenLogProbsOutput {
    let logits = case.logits.mapv(|x| half.round(x));
    right(&TokenLogProbsCase { logits, ..case.clone() }, options, dtype)
}

/// Right values of logits that passed through a half format, stored in it. The gradient is left
/// open: it depends on what the backward pass keeps.
pub(super) fn through(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
    half: Dtype,
) -> TokenLogProbsOutput {
    let mut output = from_rounded(case, options, dtype, half);
    output.log_probs.mapv_inplace(|x| half.round(x));
    TokenLogProbsOutput { grad_logits: None, ..output }
}

/// log(p + ε).
pub(super) fn plus_epsilon(
    case: &TokenLogProbsCase,
    options: &Options,
    epsilon: f64,
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let softmax = at.softmax();
        let p = softmax[at.token];
        ((p + epsilon).ln(), at.gradient(&softmax, p / (p + epsilon)))
    })
}

/// No log-probability below a floor.
pub(super) fn clamped(
    case: &TokenLogProbsCase,
    options: &Options,
    floor: f64,
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let log_prob = at.log_prob();
        let factor = if log_prob < floor { 0.0 } else { 1.0 };
        (log_prob.max(floor), at.gradient(&at.softmax(), factor))
    })
}

/// exp and its sum in f32, from logits as they are; `value` is made of z, its exp and the sum.
pub(super) fn overflowing(
    case: &TokenLogProbsCase,
    options: &Options,
    value: impl Fn(f64, f32, f32) -> f64,
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let exponentials: Vec<f32> = at.z.iter().map(|z| z.exp() as f32).collect();
        let sum: f32 = exponentials.iter().sum();
        let softmax: Vec<f64> = exponentials.iter().map(|e| f64::from(e / sum)).collect();
        let value = value(at.z[at.token], exponentials[at.token], sum);
        (value, at.gradient(&softmax, 1.0))
    })
}

/// The logarithm of a softmax whose probabilities are stored.
pub(super) fn underflowing(
    case: &TokenLogProbsCase,
    options: &Options,
    store: impl Fn(f64) -> f64,
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let softmax = at.softmax();
        let p = store(softmax[at.token]);
        // The backward pass multiplies 1/0 by 0.
        let factor = if p == 0.0 { f64::NAN } else { 1.0 };
        (p.ln(), at.gradient(&softmax, factor))
    })
}

/// A share of the mean over the vocabulary mixed in.
pub(super) fn smoothed(
    case: &TokenLogProbsCase,
    options: &Options,
    share: f64,
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let size = at.z.len() as f64;
        let log_sum = log_sum(&at.z);
        let mean = at.z.iter().map(|z| z - log_sum).sum::<f64>() / size;
        let softmax = at.softmax();
        let gradient = (0..at.z.len()).map(|entry| {
            let target = (1.0 - share) * at.onehot(entry) + share / size;
            (target - softmax[entry]) / at.temperature
        });
        ((1.0 - share) * at.log_prob() + share * mean, gradient.collect())
    })
}

/// ε added to the sum of the exponentials, the largest of which is 1.
pub(super) fn wider(
    case: &TokenLogProbsCase,
    options: &Options,
    epsilon: f64,
) -> TokenLogProbsOutput {
    by_position(case, options, |at| {
        let largest = at.z[argmax(&at.z)];
        let exponentials: Vec<f64> = at.z.iter().map(|z| (z - largest).exp()).collect();
        let sum = exponentials.iter().sum::<f64>() + epsilon;
        let shares: Vec<f64> = exponentials.iter().map(|e| e / sum).collect();
        (at.z[at.token] - largest - sum.ln(), at.gradient(&shares, 1.0))
    })
}

/// The rows of an output in another order. The gradient stays with its row.
pub(super) fn in_order(output: TokenLogProbsOutput, order: &[usize]) -> TokenLogProbsOutput {
    TokenLogProbsOutput { log_probs: output.log_probs.select(Axis(0), order), ..output }
}
