//! The reference of `model-forward`: one layer of attention over tokens and their positions.

use ndarray::{Array2, Array3};

use super::{ModelForwardCase, ModelForwardOutput, Options, shape};
use shakedown_core::value::place::Dtype;

/// The width of the hidden state.
const WIDTH: usize = 4;

/// What a model does right or wrong: how the tokens of a batch are placed, and which see which.
#[derive(Clone, Copy)]
pub(super) struct Model {
    /// The position of a token: of the batch, its row and its column.
    pub(super) position: fn(&ModelForwardCase, usize, usize) -> f64,
    /// Whether the token in a column sees the one in another: of the batch, the row, and both.
    pub(super) sees: fn(&ModelForwardCase, usize, [usize; 2]) -> bool,
}

pub(super) const RIGHT: Model = Model { position, sees };

/// The given position, else the number of tokens before.
pub(super) fn position(case: &ModelForwardCase, row: usize, column: usize) -> f64 {
    match &case.position_ids {
        Some(positions) => positions[[row, column]] as f64,
        None => {
            let before = case.attention_mask.row(row);
            before.iter().take(column).filter(|kept| **kept).count() as f64
        }
    }
}

/// A token sees those before it in its sequence, and itself.
pub(super) fn sees(case: &ModelForwardCase, row: usize, [from, to]: [usize; 2]) -> bool {
    to <= from && case.attention_mask[[row, to]] && starts(case, row, to, from) == 0
}

/// How many sequences begin behind a column, up to another one.
pub(super) fn starts(case: &ModelForwardCase, row: usize, behind: usize, upto: usize) -> usize {
    let Some(positions) = &case.position_ids else { return 0 };
    let begins =
        |column: &usize| case.attention_mask[[row, *column]] && positions[[row, *column]] == 0;
    (behind + 1..=upto).filter(begins).count()
}

pub(super) fn forward(
    case: &ModelForwardCase,
    options: &Options,
    dtype: Dtype,
) -> ModelForwardOutput {
    let logits = RIGHT.logits(case, options, dtype);
    ModelForwardOutput { cached_logits: Some(logits.clone()), logits }
}

impl Model {
    /// The logits behind each column, in the arithmetic of the dtype.
    pub(super) fn logits(
        self,
        case: &ModelForwardCase,
        options: &Options,
        dtype: Dtype,
    ) -> Array3<f64> {
        let f = |x: f64| dtype.arithmetic().round(x);
        let dot = |a: &[f64; WIDTH], b: &[f64; WIDTH]| {
            a.iter().zip(b).fold(0.0, |sum, (a, b)| f(sum + f(a * b)))
        };
        let state = |row: usize, column: usize| -> [f64; WIDTH] {
            let embedded = embedding(case.input_ids[[row, column]] as f64);
            let position = (self.position)(case, row, column);
            std::array::from_fn(|k| f(embedded[k] + f(0.5 * (position / (k + 1) as f64).cos())))
        };
        let [rows, columns, size] = shape(case, options);
        let states = Array2::from_shape_fn((rows, columns), |(row, column)| state(row, column));
        let mut logits = Array3::zeros((rows, columns, size));
        for ((row, from), own) in states.indexed_iter() {
            let seen = (0..columns).filter(|to| (self.sees)(case, row, [from, *to]));
            let seen: Vec<_> = seen.map(|to| states[[row, to]]).collect();
            let weights: Vec<f64> = seen.iter().map(|to| f(dot(own, to).exp())).collect();
            let total = weights.iter().fold(0.0, |sum, weight| f(sum + weight));
            let hidden: [f64; WIDTH] = std::array::from_fn(|k| {
                let terms = weights.iter().zip(&seen).map(|(weight, to)| f(weight * to[k]));
                let sum = terms.fold(0.0, |sum, term| f(sum + term));
                f(own[k] + if seen.is_empty() { 0.0 } else { f(sum / total) })
            });
            for entry in 0..size {
                logits[[row, from, entry]] = dot(&hidden, &embedding(entry as f64 + 0.5));
            }
        }
        logits
    }
}

/// The vector of an id; that of half an id is the head's.
fn embedding(id: f64) -> [f64; WIDTH] {
    std::array::from_fn(|k| (1.7 * (id + 1.0) * (k + 1) as f64).sin())
}
