//! What the contracts of whole trainers share: numbers with their scales, from the oracles of their
//! components to the gradient by the logits; sequences that end; pairs of them.

use ndarray::{Array1, Array2, Array3, Array4, ArrayD, ArrayView1, Axis, IxDyn, s};

use crate::token_log_probs::{Options, TokenLogProbs, TokenLogProbsCase};
use shakedown_core::contract::Contract;
use shakedown_core::contract::rows;
use shakedown_core::contract::step::{Plan, Shape};
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// How many times its error an input is moved, to see what becomes of it.
const MOVED: f64 = 8.0;

/// How far a number of this scale is moved.
pub(crate) fn error(dtype: Dtype, scale: f64) -> f64 {
    MOVED * dtype.arithmetic().unit_roundoff() * scale
}

/// Numbers and their scales.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) values: Array2<f64>,
    pub(crate) scales: Array2<f64>,
}

impl Known {
    /// What an oracle expects of a matrix.
    pub(crate) fn of(expected: &Expected) -> Known {
        let numbers = expected.numbers.view().into_dimensionality().expect("a matrix");
        let numbers: Array2<Number> = numbers.to_owned();
        Known { values: numbers.mapv(|n| n.value), scales: numbers.mapv(|n| n.scale) }
    }

    pub(crate) fn rows(&self, rows: &[usize]) -> Known {
        Known {
            values: self.values.select(Axis(0), rows),
            scales: self.scales.select(Axis(0), rows),
        }
    }

    pub(crate) fn at(&self, place: [usize; 2]) -> Scaled {
        Scaled { value: self.values[place], scale: self.scales[place] }
    }
}

/// The log-probability of each token, and its slope by each logit.
pub(crate) struct Scores {
    pub(crate) log_probs: Known,
    slopes: ArrayD<Number>,
}

impl Scores {
    /// Of the tokens of all rows, under the logits `[rows, T, V]` that hold.
    pub(crate) fn of(
        logits: Array3<f64>,
        tokens: &Array2<i64>,
        options: &Options,
        dtype: Dtype,
    ) -> Scores {
        let case = TokenLogProbsCase { logits, tokens: tokens.clone() };
        let slopes = TokenLogProbs::oracle_gradient(&case, options, dtype).swap_remove(0).numbers;
        let log_probs = Known::of(&TokenLogProbs::oracle(&case, options, dtype)[0]);
        Scores { log_probs, slopes }
    }

    /// Adds to the gradients of an update by the logits, given those of some rows by the
    /// log-probabilities of their tokens.
    pub(crate) fn add(
        &self,
        gradients: &mut Array4<Scaled>,
        shape: &Shape,
        update: usize,
        rows: &[usize],
        by_token: impl Fn([usize; 2]) -> Scaled,
    ) {
        shape.add(gradients, update, rows, |[of, at], [row, id]| {
            let Number { value, scale, .. } = self.slopes[[row, at, id]];
            by_token([of, at]) * Scaled { value, scale }
        });
    }
}

/// What is expected of the outputs of every trainer, given its gradients by row.
pub(crate) fn outputs(
    gradients: Array4<Scaled>,
    shape: &[usize],
    terms: usize,
    has_reference: bool,
) -> Vec<Expected> {
    let updates = gradients.dim().0;
    let gradients = gradients.mapv(Number::from).into_dyn();
    let numbers = gradients.to_shape(shape).expect("a row of the table for each place");
    let gradient = Expected { field: "gradient", numbers: numbers.into_owned(), terms };
    let mut outputs = vec![gradient, exactly("unknown", &[updates], 0.0)];
    if has_reference {
        outputs.extend([exactly("ref_gradient", &[], 0.0), exactly("ref_training", &[], 0.0)]);
    }
    outputs
}

/// Exact numbers.
pub(crate) fn exactly(field: &'static str, shape: &[usize], value: f64) -> Expected {
    let numbers = ArrayD::from_elem(IxDyn(shape), Number::new(value, 0.0));
    Expected { field, numbers, terms: 1 }
}

/// The ids below a number that none of these are.
pub(crate) fn words(special: &[i64], vocabulary: usize) -> Vec<i64> {
    (0..vocabulary as i64).filter(|id| !special.contains(id)).collect()
}

/// The logits of what is no beginning of a completion, such as a part of a prompt, go from minus
/// this to this.
const UNKNOWN_LOGIT: f64 = 20.0;

/// The gradient by those logits of the log-probability of tokens, each so many times.
pub(crate) fn unknown_slopes(vocabulary: usize, tokens: &[(i64, usize)]) -> Array1<f64> {
    let logit = |id: usize| UNKNOWN_LOGIT * (2.0 * id as f64 / (vocabulary - 1) as f64 - 1.0);
    let times: usize = tokens.iter().map(|(_, times)| times).sum();
    let mut slopes = Array1::from_shape_fn(vocabulary, |id| logit(id).exp());
    slopes *= -(times as f64) / slopes.sum();
    for (id, times) in tokens {
        slopes[*id as usize] += *times as f64;
    }
    slopes
}

/// The same of a prompt, the row-th of all, without its first token. It has one word, once more
/// than the prompt before, and another word at the end.
pub(crate) fn prompt_slopes(words: &[i64], row: usize, vocabulary: usize) -> Array1<f64> {
    unknown_slopes(vocabulary, &[(words[0], row), (words[1], 1)])
}

/// The smallest vocabulary that has these ids and two words.
pub(crate) fn smallest_vocabulary(special: &[i64]) -> usize {
    let least = special.iter().max().map_or(0, |id| *id as usize + 1);
    (least..).find(|size| words(special, *size).len() >= 2).expect("ids are endless")
}

/// The place of the end of a sequence that has one, and nothing but pads behind it.
///
/// # Errors
/// What is wrong, to be said of a sequence.
pub(crate) fn end_of(
    tokens: ArrayView1<'_, i64>,
    [eos, pad]: [i64; 2],
    vocabulary: usize,
) -> Result<usize, String> {
    if let Some(id) = tokens.iter().find(|id| !(0..vocabulary as i64).contains(*id)) {
        return Err(format!("has the id {id}, expected less than {vocabulary}"));
    }
    let end = tokens.iter().position(|id| *id == eos);
    let end = end.ok_or_else(|| format!("has no end, which is {eos}"))?;
    if tokens.iter().skip(end + 1).any(|id| *id != pad) {
        return Err("goes on behind its end".to_owned());
    }
    if tokens.iter().take(end).any(|id| *id == pad) {
        return Err("has a pad before its end".to_owned());
    }
    Ok(end)
}

/// A sequence with one token less.
pub(crate) fn without(tokens: ArrayView1<'_, i64>, left_out: usize, pad: i64) -> Array1<i64> {
    let kept = tokens.iter().enumerate().filter(|(at, _)| *at != left_out);
    kept.map(|(_, id)| *id).chain([pad]).collect()
}

/// The pairs of a micro-batch, of its rows: in the order of their chosen completions.
pub(crate) fn pairs(rows: &[usize]) -> Vec<usize> {
    rows.iter().filter(|row| *row % 2 == 0).map(|row| row / 2).collect()
}

/// What a row of pairs is called.
pub(crate) fn side(row: usize) -> String {
    format!("the {} completion of pair {}", ["chosen", "rejected"][row % 2], row / 2)
}

/// Whether the completions `[P, 2, T]` of pairs have ends, and make the micro-batches of a plan,
/// for whose updates there are so many tables.
///
/// # Errors
/// What is wrong.
pub(crate) fn valid_pairs(
    tokens: &Array3<i64>,
    plan: &Plan,
    tables: usize,
    ids: [i64; 2],
    vocabulary: usize,
) -> Result<(), String> {
    let (pairs, sides, _) = tokens.dim();
    if tables != plan.updates() {
        return Err(format!("tables of {tables} updates, expected {}", plan.updates()));
    }
    if sides != 2 {
        return Err(format!("{sides} completions of a pair, expected 2"));
    }
    if !pairs.is_multiple_of(plan.parts()) {
        return Err(format!("{pairs} pairs do not make {} micro-batches", plan.parts()));
    }
    for (row, tokens) in tokens.rows().into_iter().enumerate() {
        let end = end_of(tokens, ids, vocabulary);
        end.map_err(|wrong| format!("{} {wrong}", side(row)))?;
    }
    Ok(())
}

/// Cases of fewer pairs, of simpler words, and of pairs in another order; `with` gives the case
/// other tokens.
pub(crate) fn fewer_pairs<C: Contract>(
    case: &C::Case,
    tokens: &Array3<i64>,
    parts: usize,
    words: &[i64],
    with: impl Fn(Array3<i64>) -> C::Case,
) -> Vec<C::Case> {
    let pairs = tokens.dim().0;
    let mut simpler = Vec::new();
    for kept in [parts, pairs / 2 / parts * parts, pairs.saturating_sub(parts)] {
        if kept > 0 && kept < pairs {
            for first in [0, pairs - kept] {
                let kept: Vec<usize> = (first..first + kept).collect();
                simpler.push(rows::select::<C, _>(case, 'P', &kept));
            }
        }
    }
    for (from, to) in words.iter().skip(1).flat_map(|from| words.iter().map(move |to| (from, to))) {
        if to < from && tokens.iter().any(|id| id == from) {
            simpler.push(with(tokens.mapv(|id| if id == *from { *to } else { id })));
        }
    }
    for pair in 1..pairs {
        let mut order: Vec<usize> = (0..pairs).collect();
        order.swap(pair - 1, pair);
        simpler.push(rows::select::<C, _>(case, 'P', &order));
    }
    simpler
}

/// Cases with a completion one token shorter; with one column less, for which all that fill it are
/// shorter.
pub(crate) fn shorter_pairs<C: Contract>(
    tokens: &Array3<i64>,
    [eos, pad]: [i64; 2],
    with: impl Fn(Array3<i64>) -> C::Case,
) -> Vec<C::Case> {
    let (pairs, _, width) = tokens.dim();
    let shorter = |completions: &[[usize; 2]], left_out: usize| {
        let mut shorter = tokens.clone();
        for [pair, side] in completions.iter().copied() {
            let tokens = without(tokens.slice(s![pair, side, ..]), left_out, pad);
            shorter.slice_mut(s![pair, side, ..]).assign(&tokens);
        }
        with(shorter)
    };
    let all: Vec<[usize; 2]> = (0..pairs).flat_map(|pair| [[pair, 0], [pair, 1]]).collect();
    let fills = |[pair, side]: &[usize; 2]| {
        tokens.slice(s![*pair, *side, ..width - 1]).iter().all(|id| *id != eos)
    };
    let filling: Vec<[usize; 2]> = all.iter().copied().filter(fills).collect();
    let columns: Vec<usize> = (0..width - 1).collect();
    let mut simpler = Vec::new();
    for left_out in 0..width {
        simpler.push(rows::select::<C, _>(&shorter(&filling, left_out), 'T', &columns));
        simpler.extend(all.iter().map(|one| shorter(&[*one], left_out)));
    }
    simpler
}
