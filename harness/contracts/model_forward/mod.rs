//! The forward pass of a model: logits that depend on the tokens before them, and on nothing else.
//!
//! Ratios and divergences compare log-probabilities of two passes. One of them was padded, packed,
//! ordered or cached in another way. So the logits of a token must not depend on its padding, on
//! other rows, on tokens behind it or on a cache.
//!
//! Any model may be checked, so no oracle knows its logits: those of one call are compared with
//! those of another. They may be apart by a part of the largest logit: 1e-9 at f64, 1e-4 at f32,
//! 0.01 at f16, 0.05 at bf16. No input says in which format the model computes: the place does.
//! A model in training mode drops some of its state at random: `eval()` comes first.
//!
//! ### Source
//! transformers: `position_ids` are counted from the attention mask where a model has learned
//! positions and padding on the left. TRL and verl pack rows and let positions start again at 0.

mod faults;
mod generate;
mod invariants;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array2, Array3, ArrayD, Ix2, Ix3, s};

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{Masked, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::pick::Pick;
pub use shakedown_core::numeric::conventions::MaskedValues;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `model-forward`.
    ///
    /// # Shapes
    /// `N` rows of `T` columns: `[N, T]`.
    pub struct ModelForwardCase {
        /// Token ids below `vocabulary`. Under padding any of them.
        pub input_ids: A::Int<Ix2>,
        /// True at tokens, false at padding.
        pub attention_mask: A::Bool<Ix2>,
        /// With `positions: given`: the number of each token in its sequence, from 0 on; 0 under
        /// padding.
        pub position_ids: Option<A::Int<Ix2>>,
    }
}

record! {
    /// The outputs of `model-forward`.
    ///
    /// # Shapes
    /// `[N, T, V]`, where `V` is `vocabulary`. The first `V` logits of a larger model will do.
    pub struct ModelForwardOutput {
        /// The logits behind each token. Under padding anything.
        pub logits: A::Float<Ix3>,
        /// The same, computed token by token with a cache.
        pub cached_logits: Option<A::Float<Ix3>>,
    }
}

impl From<Array3<f64>> for ModelForwardOutput {
    fn from(logits: Array3<f64>) -> Self {
        Self { logits, cached_logits: None }
    }
}

impl From<Array3<f32>> for ModelForwardOutput {
    fn from(logits: Array3<f32>) -> Self {
        logits.mapv(f64::from).into()
    }
}

choice! {
    /// Where rows may have padding.
    pub enum Padding {
        /// At either end.
        Any = "any",
        /// Behind the tokens.
        Right = "right",
        /// Before the tokens.
        Left = "left",
        /// Nowhere.
        None = "none",
    }
}

impl Padding {
    fn is_on_the_right(self) -> bool {
        matches!(self, Padding::Any | Padding::Right)
    }

    fn is_on_the_left(self) -> bool {
        matches!(self, Padding::Any | Padding::Left)
    }
}

choice! {
    /// Where positions come from.
    pub enum Positions {
        /// The model counts them.
        Counted = "counted",
        /// They are an input.
        Given = "given",
    }
}

options! {
    check: fit_together;

    /// The options of `model-forward`.
    pub struct Options {
        /// An integer ≥ 2: ids are below it, and so many logits are looked at.
        pub vocabulary: i64 = 8, in 2..=4096, draw [8, 8, 3, 16];
        /// An integer ≥ 1: rows have so many columns at most, padding included.
        pub columns: i64 = 12, in 1..=4096, draw [12, 12, 6, 24];
        /// `any`, `right`, `left` or `none`: the sides on which rows may have padding.
        pub padding: Padding = Padding::Any;
        /// `counted` or `given`: whether the model counts positions itself, or is given
        /// `position_ids`.
        pub positions: Positions = Positions::Counted;
        /// `true` or `false`: whether a row may hold several sequences, which must not see each
        /// other. Their positions begin at 0: this needs `positions: given`.
        pub packed: bool = false, by drawn_packed;
        /// `true` or `false`: whether a row may be all padding.
        pub empty_rows: bool = false, by drawn_empty_rows;
    }
}

fn fit_together(options: &Options) -> Result<(), (&'static str, String)> {
    if options.packed && options.positions != Positions::Given {
        return Err(("packed", "expected false without `positions: given`".to_owned()));
    }
    if options.empty_rows && options.padding == Padding::None {
        return Err(("empty_rows", "expected false with `padding: none`".to_owned()));
    }
    Ok(())
}

fn drawn_packed(u: &mut Unstructured<'_>, drawn: &Options) -> arbitrary::Result<bool> {
    Ok(drawn.positions == Positions::Given && u.arbitrary()?)
}

fn drawn_empty_rows(u: &mut Unstructured<'_>, drawn: &Options) -> arbitrary::Result<bool> {
    Ok(drawn.padding != Padding::None && u.arbitrary()?)
}

/// A row of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    /// How many columns of padding come first.
    before: usize,
    /// The sequences behind them, one after the other. No sequence is empty.
    sequences: Vec<Vec<i64>>,
}

impl Row {
    /// How many columns it needs.
    fn width(&self) -> usize {
        self.before + self.sequences.iter().map(Vec::len).sum::<usize>()
    }
}

/// The rows of a valid case.
fn rows(case: &ModelForwardCase) -> Vec<Row> {
    let row = |at: usize| {
        let mask = case.attention_mask.row(at);
        let mut row =
            Row { before: mask.iter().take_while(|kept| !**kept).count(), ..Row::default() };
        for (column, _) in mask.iter().enumerate().filter(|(_, kept)| **kept) {
            let position =
                case.position_ids.as_ref().map_or(1, |positions| positions[[at, column]]);
            if row.sequences.is_empty() || position == 0 {
                row.sequences.push(Vec::new());
            }
            row.sequences.last_mut().expect("one was pushed").push(case.input_ids[[at, column]]);
        }
        row
    };
    (0..case.input_ids.nrows()).map(row).collect()
}

/// The case of some rows, with so many columns more than they need. The id under padding is 0.
fn case_of(rows: &[Row], options: &Options, more: usize) -> ModelForwardCase {
    let columns = rows.iter().map(Row::width).max().unwrap_or(0).max(1) + more;
    let mut input_ids = Array2::zeros((rows.len(), columns));
    let mut attention_mask = Array2::from_elem((rows.len(), columns), false);
    let mut position_ids = Array2::zeros((rows.len(), columns));
    for (at, row) in rows.iter().enumerate() {
        let tokens = row.sequences.iter().flat_map(|sequence| sequence.iter().enumerate());
        for (column, (position, id)) in (row.before..).zip(tokens) {
            input_ids[[at, column]] = *id;
            attention_mask[[at, column]] = true;
            position_ids[[at, column]] = position as i64;
        }
    }
    let position_ids = (options.positions == Positions::Given).then_some(position_ids);
    ModelForwardCase { input_ids, attention_mask, position_ids }
}

/// The case with so many columns of padding before it and behind it.
fn widened(case: &ModelForwardCase, before: usize, behind: usize) -> ModelForwardCase {
    fn wide<T: Clone>(array: &Array2<T>, filled: T, [before, behind]: [usize; 2]) -> Array2<T> {
        let (rows, columns) = array.dim();
        let mut wide = Array2::from_elem((rows, before + columns + behind), filled);
        wide.slice_mut(s![.., before..before + columns]).assign(array);
        wide
    }
    let more = [before, behind];
    ModelForwardCase {
        input_ids: wide(&case.input_ids, 0, more),
        attention_mask: wide(&case.attention_mask, false, more),
        position_ids: case.position_ids.as_ref().map(|positions| wide(positions, 0, more)),
    }
}

/// The shape of the logits.
fn shape(case: &ModelForwardCase, options: &Options) -> [usize; 3] {
    let (rows, columns) = case.input_ids.dim();
    [rows, columns, options.vocabulary as usize]
}

/// The contract: the forward pass of a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelForward;

impl Definition for ModelForward {
    type Case = ModelForwardCase;
    type Output = ModelForwardOutput;
    type Options = Options;
}

impl Contract for ModelForward {
    const ID: &'static str = "model-forward";
    const STAGE: Stage = Stage::LogProbability;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[
        ("input_ids", "NT"),
        ("attention_mask", "NT"),
        ("position_ids", "NT"),
        ("logits", "NTV"),
        ("cached_logits", "NTV"),
    ]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::MODEL_FORWARD;
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| generate::draw(u, options),
        corners: |options, _| generate::corners(options),
        valid: |case, options, _| generate::valid(case, options),
        classes: generate::classes,
        reference: reference::forward,
        invariants: invariants::all,
        faults: faults::all,
    };

    /// Any logits where a token is, anything elsewhere.
    fn oracle(case: &ModelForwardCase, options: &Options, _: Dtype) -> Vec<Expected> {
        let numbers = ArrayD::from_shape_fn(shape(case, options).to_vec(), |at| {
            if case.attention_mask[[at[0], at[1]]] { Number::OPEN } else { Number::ANYTHING }
        });
        let expected = |field| Expected { field, numbers: numbers.clone(), terms: 1 };
        ["logits", "cached_logits"].map(expected).into()
    }

    fn noise(dtype: Dtype) -> Option<f64> {
        Some(match dtype {
            Dtype::F64 => 1e-9,
            Dtype::F32 => 1e-4,
            Dtype::F16 => 0.01,
            Dtype::Bf16 => 0.05,
        })
    }

    fn shapes(case: &ModelForwardCase, options: &Options) -> Vec<(&'static str, Vec<usize>)> {
        vec![("logits", shape(case, options).to_vec())]
    }

    fn check_form(
        _: &ModelForwardCase,
        _: &Options,
        output: &ModelForwardOutput,
    ) -> Result<(), String> {
        let expected = output.logits.shape();
        match &output.cached_logits {
            Some(cached) if cached.shape() != expected => {
                let found = cached.shape();
                Err(format!("`cached_logits` has shape {found:?}, expected {expected:?}"))
            }
            _ => Ok(()),
        }
    }

    fn small(options: &Options, _: Dtype) -> Vec<ModelForwardCase> {
        generate::small(options)
    }

    fn simpler(case: &ModelForwardCase, options: &Options, _: Dtype) -> Vec<ModelForwardCase> {
        generate::simpler(case, options)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for ModelForward {}

impl Masked for ModelForward {
    fn mask(case: &ModelForwardCase) -> &Array2<bool> {
        &case.attention_mask
    }

    fn mask_mut(case: &mut ModelForwardCase) -> &mut Array2<bool> {
        &mut case.attention_mask
    }

    fn masked_values(_: &Options) -> MaskedValues {
        MaskedValues::Finite
    }

    fn holes(_: &Options) -> bool {
        false
    }

    fn padded(case: &ModelForwardCase, columns: usize) -> ModelForwardCase {
        widened(case, 0, columns)
    }

    fn poisoned(case: &ModelForwardCase, options: &Options, pick: &mut Pick) -> ModelForwardCase {
        let mut poisoned = case.clone();
        for (id, kept) in poisoned.input_ids.iter_mut().zip(&case.attention_mask) {
            *id = if *kept { *id } else { pick.below(options.vocabulary as usize) as i64 };
        }
        poisoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_core::contract::options::Options as _;

    #[test]
    fn packed_rows_need_positions_and_empty_rows_padding() {
        let refused = |options: Options| options.check().unwrap_err().0;
        assert_eq!(refused(Options { packed: true, ..Options::default() }), "packed");
        let none = Options { padding: Padding::None, ..Options::default() };
        assert_eq!(none.check(), Ok(()));
        assert_eq!(refused(Options { empty_rows: true, ..none }), "empty_rows");
    }

    #[test]
    fn a_case_has_the_rows_that_it_was_made_of() {
        let options = Options { positions: Positions::Given, packed: true, ..Options::default() };
        let made = [
            Row { before: 2, sequences: vec![vec![3, 1], vec![5]] },
            Row { before: 0, sequences: vec![vec![7]] },
            Row::default(),
        ];
        let case = case_of(&made, &options, 1);
        let empty = Row { before: 6, sequences: Vec::new() };
        assert_eq!(rows(&case), [made[0].clone(), made[1].clone(), empty]);
        let positions = case.position_ids.expect("they are given");
        assert_eq!(positions.row(0).to_vec(), [0, 0, 0, 1, 0, 0]);
        assert_eq!(case.attention_mask.row(1).to_vec(), [true, false, false, false, false, false]);
    }
}
