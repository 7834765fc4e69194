//! What whole trainers have in common: how rows come to updates, which of their prefixes are one,
//! and wrong parts that make a wrong whole.
//!
//! A trainer is handed a model whose logits are a table, one row for each prefix. A row of a case
//! is a sequence of tokens behind a prompt. A prefix that several rows share has one row of the
//! table: the logits where it comes first hold, and its gradient is there too. Behind an end
//! every place sees the same prefix, the whole sequence. A table of scores has one number for each
//! place, that of the tokens up to it.

use std::ops::{Add, Range};
use std::sync::Arc;

use ndarray::{Array2, Array3, Array4, ArrayD, ArrayView1, ArrayView3, ArrayViewD, Axis, s};

use crate::contract::Contract;
use crate::contract::definition::Definition;
use crate::contract::fault::{Fault, Variant};
use crate::numeric::tolerance::Expected;
use crate::value::place::Dtype;
use crate::value::text::rounded;

/// How many updates there are, and how many backward passes each has.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many times rows are made.
    pub generations: usize,
    /// How many times the rows of a generation are passed.
    pub passes: usize,
    /// How many updates a pass has.
    pub mini_batches: usize,
    /// How many micro-batches an update has.
    pub accumulation: usize,
}

impl Plan {
    /// The number of updates of a generation.
    pub fn updates_of_a_generation(&self) -> usize {
        self.passes * self.mini_batches
    }

    /// The number of updates of a case.
    pub fn updates(&self) -> usize {
        self.generations * self.updates_of_a_generation()
    }

    /// So many micro-batches do the rows of a generation make.
    pub fn parts(&self) -> usize {
        self.mini_batches * self.accumulation
    }
}

/// The rows of a case, and how they come to the updates.
pub struct Shape {
    plan: Plan,
    /// Rows of each prompt, next to each other.
    pub group: usize,
    /// Rows of each generation.
    pub rows: usize,
    /// The tokens of all rows.
    pub tokens: Array2<i64>,
    /// For each place of each row, the row and the place whose logits hold there.
    homes: Array2<[usize; 2]>,
    /// The rows of each micro-batch, where the trainer chose them.
    chosen: Option<Array3<i64>>,
}

impl Shape {
    /// Of rows that end with the first of some ids. `group` rows in turn have one prompt.
    pub fn new(
        plan: Plan,
        tokens: Array2<i64>,
        group: usize,
        ends: &[i64],
        chosen: Option<&Array3<i64>>,
    ) -> Shape {
        let homes = homes(&tokens, group, ends);
        Shape::with(plan, tokens, group, homes, chosen)
    }

    /// The same, of a table with one number for each place: a score of all tokens up to that one.
    /// Behind an end each pad has its own.
    pub fn of_scores(
        plan: Plan,
        tokens: Array2<i64>,
        group: usize,
        chosen: Option<&Array3<i64>>,
    ) -> Shape {
        let homes = Array2::from_shape_fn(tokens.raw_dim(), |(row, at)| {
            [first_alike(&tokens, group, row, at + 1), at]
        });
        Shape::with(plan, tokens, group, homes, chosen)
    }

    fn with(
        plan: Plan,
        tokens: Array2<i64>,
        group: usize,
        homes: Array2<[usize; 2]>,
        chosen: Option<&Array3<i64>>,
    ) -> Shape {
        let rows = tokens.nrows() / plan.generations;
        Shape { plan, group, rows, tokens, homes, chosen: chosen.cloned() }
    }

    /// Rows of all generations.
    pub fn all_rows(&self) -> usize {
        self.tokens.nrows()
    }

    /// Places of each row.
    pub fn width(&self) -> usize {
        self.tokens.ncols()
    }

    /// The generation that an update trains on.
    pub fn generation(&self, update: usize) -> usize {
        update / self.plan.updates_of_a_generation()
    }

    /// The update in which a generation is made.
    pub fn first_update(&self, generation: usize) -> usize {
        generation * self.plan.updates_of_a_generation()
    }

    /// The rows of a generation.
    pub fn rows_of(&self, generation: usize) -> Range<usize> {
        generation * self.rows..(generation + 1) * self.rows
    }

    /// The logits that hold at each place of each row, at an update.
    pub fn logits(&self, tables: &ArrayD<f64>, update: usize) -> Array3<f64> {
        self.held(tables.index_axis(Axis(0), update))
    }

    /// The logits that hold, of one table.
    pub fn held(&self, table: ArrayViewD<'_, f64>) -> Array3<f64> {
        let table = self.by_row(table);
        Array3::from_shape_fn(table.raw_dim(), |(row, at, id)| {
            let [home, place] = self.homes[[row, at]];
            table[[home, place, id]]
        })
    }

    /// One table as `[rows, places, ids]`; of scores as `[rows, places, 1]`.
    pub fn by_row(&self, table: ArrayViewD<'_, f64>) -> Array3<f64> {
        let vocabulary = table.len() / self.tokens.len();
        let shape = (self.all_rows(), self.width(), vocabulary);
        table.to_shape(shape).expect("a row of the table for each place").into_owned()
    }

    /// The row and the place whose logits hold at a place of a row.
    pub fn home(&self, row: usize, at: usize) -> [usize; 2] {
        self.homes[[row, at]]
    }

    /// Adds what an update makes of the logits of some rows to the gradients of all updates, at
    /// the places whose logits hold. `by_logit` takes a place among these rows, its row, the place
    /// in it, and an id.
    pub fn add<N: Copy + Add<Output = N>>(
        &self,
        gradients: &mut Array4<N>,
        update: usize,
        rows: &[usize],
        mut by_logit: impl FnMut([usize; 2], [usize; 2]) -> N,
    ) {
        let vocabulary = gradients.dim().3;
        for (of, row) in rows.iter().enumerate() {
            for at in 0..self.width() {
                let [home, place] = self.home(*row, at);
                for id in 0..vocabulary {
                    let sum = &mut gradients[[update, home, place, id]];
                    *sum = *sum + by_logit([of, at], [*row, id]);
                }
            }
        }
    }

    /// The places that are the home of no trained token, given which are trained: row and place.
    pub fn hidden(&self, trained: &Array2<bool>) -> Vec<[usize; 2]> {
        let mut hidden = Array2::from_elem(trained.raw_dim(), true);
        for ((row, at), is_trained) in trained.indexed_iter() {
            if *is_trained {
                hidden[self.home(row, at)] = false;
            }
        }
        let places = hidden.indexed_iter().filter(|(_, is_hidden)| **is_hidden);
        places.map(|((row, at), _)| [row, at]).collect()
    }

    /// The rows of each micro-batch of an update: as the trainer chose them, or in order.
    pub fn micro_batches(&self, update: usize) -> Vec<Vec<usize>> {
        let Some(chosen) = &self.chosen else { return self.in_order(update) };
        let batches = chosen.index_axis(Axis(0), update);
        let rows = |batch: ArrayView1<'_, i64>| -> Vec<usize> {
            batch.iter().filter_map(|row| usize::try_from(*row).ok()).collect()
        };
        // An update of fewer micro-batches than others is filled up with empty ones.
        batches.rows().into_iter().map(rows).filter(|rows| !rows.is_empty()).collect()
    }

    /// The rows of each micro-batch of an update, where they are taken in order.
    pub fn in_order(&self, update: usize) -> Vec<Vec<usize>> {
        let Plan { mini_batches, accumulation, .. } = self.plan;
        let size = self.rows / self.plan.parts();
        let part = update % mini_batches;
        let first = self.rows_of(self.generation(update)).start + part * accumulation * size;
        (0..accumulation)
            .map(|batch| (first + batch * size..first + (batch + 1) * size).collect())
            .collect()
    }

    /// The same for every update, as an output has it.
    pub fn all_micro_batches(&self) -> Array3<f64> {
        let updates: Vec<_> = (0..self.plan.updates()).map(|u| self.micro_batches(u)).collect();
        let most = updates.iter().map(Vec::len).max().unwrap_or(0);
        let size = updates.iter().flatten().map(Vec::len).max().unwrap_or(0);
        Array3::from_shape_fn((updates.len(), most, size), |(update, batch, at)| {
            let row = updates[update].get(batch).and_then(|rows| rows.get(at));
            row.map_or(-1.0, |row| *row as f64)
        })
    }

    /// Whether updates have as many micro-batches as declared, and these as many rows.
    ///
    /// # Errors
    /// How many there are.
    pub fn check_cut(&self, chosen: ArrayView3<'_, f64>) -> Result<(), String> {
        let accumulation = self.plan.accumulation;
        let (_, batches, size) = chosen.dim();
        if batches != accumulation {
            let times = times_of(batches);
            let declared = format!("`accumulation: {accumulation}` is declared");
            return Err(format!("backward is called {times} in an update, and {declared}"));
        }
        let expected = self.rows / self.plan.parts();
        if size != expected {
            return Err(format!("a micro-batch has {size} rows, expected {expected} in each"));
        }
        Ok(())
    }

    /// Whether both rows of each pair are in one micro-batch.
    ///
    /// # Errors
    /// Which row is alone; `named` names a row.
    pub fn check_pairs(
        &self,
        chosen: ArrayView3<'_, f64>,
        named: impl Fn(usize) -> String,
    ) -> Result<(), String> {
        for (update, batches) in chosen.outer_iter().enumerate() {
            for batch in batches.rows() {
                let has = |row: f64| batch.iter().any(|other| *other == row);
                let alone = batch.iter().find(|row| !has((**row as usize ^ 1) as f64));
                if let Some(row) = alone.filter(|row| **row >= 0.0) {
                    let named = named(*row as usize);
                    return Err(format!(
                        "update {update} trains {named} in a micro-batch without the other"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether micro-batches train every row of each generation once a pass.
    ///
    /// # Errors
    /// Which row is trained how often; `named` names a row.
    pub fn check_partition(
        &self,
        chosen: ArrayView3<'_, f64>,
        named: impl Fn(usize) -> String,
    ) -> Result<(), String> {
        let mini_batches = self.plan.mini_batches;
        let updates = chosen.dim().0;
        if updates != self.plan.updates() {
            return Err(format!("there are {updates} updates, expected {}", self.plan.updates()));
        }
        for first in (0..updates).step_by(mini_batches) {
            let rows = self.rows_of(self.generation(first));
            let trained = chosen.slice(s![first..first + mini_batches, .., ..]);
            for row in 0..self.all_rows() {
                let times = trained.iter().filter(|one| **one == row as f64).count();
                let declared = usize::from(rows.contains(&row));
                if times != declared {
                    let when = match mini_batches {
                        1 => format!("update {first}"),
                        _ => format!("updates {first} to {}", first + mini_batches - 1),
                    };
                    return Err(format!(
                        "{} is trained {} in {when}, expected {}",
                        named(row),
                        times_of(times),
                        times_of(declared),
                    ));
                }
            }
            if let Some(row) = trained.iter().find(|row| row.fract() != 0.0 || **row < -1.0) {
                return Err(format!("a micro-batch has row {row}"));
            }
        }
        Ok(())
    }
}

/// `once`, `3 times`, `0 times`.
fn times_of(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// For each place of each row, the first row of its prompt with the same tokens before it, and the
/// place there: behind an end the first one.
fn homes(tokens: &Array2<i64>, group: usize, ends: &[i64]) -> Array2<[usize; 2]> {
    let length = |row: usize| {
        let end = tokens.row(row).iter().position(|id| ends.contains(id));
        end.map_or(tokens.ncols(), |end| end + 1)
    };
    Array2::from_shape_fn(tokens.raw_dim(), |(row, at)| {
        let place = at.min(length(row));
        [first_alike(tokens, group, row, place), place]
    })
}

/// The first row of a row's prompt that has the same first so many tokens.
fn first_alike(tokens: &Array2<i64>, group: usize, row: usize, many: usize) -> usize {
    let prefix = |of: usize| tokens.slice(s![of, ..many]);
    let first = row / group * group;
    (first..row).find(|other| prefix(*other) == prefix(row)).unwrap_or(row)
}

/// Contracts of whole trainers. Their outputs are `gradient`, of each update by each row of the
/// table, and what they share of `micro_batches` `[U, M, B]`, `unknown` `[U]`, `ref_gradient` and
/// `ref_training`.
pub trait Stepped: Contract {
    /// What the table of the model has for each token.
    const TABLE: &'static str = "logits";

    /// The rows of a case.
    fn shape(case: &Self::Case, options: &Self::Options) -> Shape;

    /// What divides the logits.
    fn temperature(_: &Self::Options) -> f64 {
        1.0
    }

    /// Which tokens are trained, row by row.
    fn trained(case: &Self::Case, options: &Self::Options) -> Array2<bool>;

    /// What a row is called: `completion 1 of prompt 0`.
    fn row(case: &Self::Case, row: usize) -> String;

    /// Whether the trainer trains every row once a pass, where it says which rows it trains.
    ///
    /// # Errors
    /// What is not.
    fn partition(
        case: &Self::Case,
        options: &Self::Options,
        micro_batches: ArrayView3<'_, f64>,
    ) -> Result<(), String> {
        let named = |row| Self::row(case, row);
        Self::shape(case, options).check_partition(micro_batches, named)
    }
}

/// The rows of each micro-batch as the trainer chose them, where it trains each once a pass.
pub fn settled<C: Stepped>(
    case: &C::Case,
    options: &C::Options,
    micro_batches: Option<&Array3<f64>>,
) -> Option<Array3<i64>> {
    let chosen = micro_batches?;
    C::partition(case, options, chosen.view()).ok()?;
    Some(chosen.mapv(|row| row as i64))
}

/// With which weight a token is trained where a gradient is wrong, and with which it should be: the
/// gradient of its logits is that many times the one of its negative log-probability. Nothing where
/// rows go on differently, or the gradient is none of a token.
pub fn weights<C: Stepped>(
    case: &C::Case,
    logits: &ArrayD<f64>,
    options: &C::Options,
    found: ArrayViewD<'_, f64>,
    expected: &Expected,
    at: &[usize],
) -> Option<String> {
    let (update, place) = (*at.first()?, at.get(1..)?);
    let shape = C::shape(case, options);
    let sides = found.shape().get(2..found.ndim().checked_sub(2)?)?;
    let (rows, [token, _]) = place.split_last_chunk::<2>()?;
    let row =
        rows.iter().skip(1).zip(sides).fold(*rows.first()?, |row, (at, size)| row * size + at);
    let home = [row, *token];
    let all = shape.tokens.indexed_iter();
    let mut next = all.filter(|((row, at), _)| shape.home(*row, *at) == home).map(|(_, id)| *id);
    let id = next.next().filter(|id| next.all(|other| other == *id))?;
    let logits = shape.logits(logits, update);
    let z = logits.slice(s![row, *token, ..]).mapv(|z| z / C::temperature(options));
    let largest = z.fold(f64::NEG_INFINITY, |most, z| most.max(*z));
    let mut away = z.mapv(|z| (z - largest).exp());
    away /= away.sum();
    away[usize::try_from(id).ok()?] -= 1.0;
    let weight = |table: ArrayViewD<'_, f64>| {
        let of_row = shape.by_row(table);
        let slope = of_row.slice(s![row, *token, ..]).dot(&away);
        C::temperature(options) * slope / away.dot(&away)
    };
    let values = expected.numbers.mapv(|number| number.value);
    let tables = [found, values.view()].map(|tables| tables.index_axis_move(Axis(0), update));
    let [found, expected] = tables.map(weight);
    let is_known = found.is_finite() && expected.is_finite();
    let [found, expected] = [found, expected].map(|weight| rounded((weight * 1e4).round() / 1e4));
    (is_known && found != expected).then(|| {
        let row = C::row(case, row);
        format!("token {token} of {row} is trained with a weight of {found}, expected {expected}")
    })
}

/// A function of a contract, to be put into a larger one.
pub type Part<C> = Arc<
    dyn Fn(
            &<C as Definition>::Case,
            &<C as Definition>::Options,
            Dtype,
        ) -> <C as Definition>::Output
        + Send
        + Sync,
>;

/// The reference of a contract, as a part.
pub fn reference<C: Contract>() -> Part<C> {
    Arc::new(|case, options, dtype| (C::PARTS.reference)(case, options, dtype))
}

impl<C: Contract> Variant<C> {
    /// What it does, as a part.
    pub fn part(self) -> Part<C> {
        match self {
            Variant::Gives(function) => Arc::new(function.0),
            Variant::AsIf(others) => Arc::new(move |case, options, dtype| {
                (C::PARTS.reference)(case, &others(options.clone()), dtype)
            }),
            Variant::On(change) => Arc::new(move |case, options, dtype| {
                let mut case = case.clone();
                change(&mut case, options);
                (C::PARTS.reference)(&case, options, dtype)
            }),
        }
    }
}

/// A fault of a part, as one of what it is a part of: `with` makes the whole of the wrong part.
///
/// # Panics
/// If the part has no fault of this id.
pub fn lifted<C: Contract, D: Definition>(
    id: &str,
    options: &'static str,
    with: impl Fn(Part<C>) -> Variant<D>,
) -> Fault<D> {
    let fault = (C::PARTS.faults)().into_iter().find(|fault| fault.id == id);
    let Fault { id, summary, source, variants, .. } =
        fault.unwrap_or_else(|| panic!("{} has no fault {id}", C::ID));
    let variants = variants.into_iter().map(|variant| with(variant.part()));
    Fault::new(id, summary).seen(source).under(options).made_of(variants)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    const PLAN: Plan = Plan { generations: 1, passes: 1, mini_batches: 2, accumulation: 1 };

    /// Two rows that begin alike, in two updates.
    fn shape(tokens: Array2<i64>) -> Shape {
        Shape::new(PLAN, tokens, 2, &[1], None)
    }

    #[test]
    fn every_row_is_trained_once_a_pass() {
        let shape = shape(array![[2, 1], [2, 3]]);
        let found = |rows: &Array3<f64>| {
            shape.check_partition(rows.view(), |row| format!("row {row}")).err()
        };
        assert_eq!(found(&array![[[1.0]], [[0.0]]]), None);
        let again = found(&array![[[0.0]], [[0.0]]]).unwrap();
        assert_eq!(again, "row 0 is trained 2 times in updates 0 to 1, expected once");
        let other = found(&array![[[0.0]], [[7.0]]]).unwrap();
        assert!(other.contains("row 1 is trained 0 times"), "{other}");
        assert!(found(&array![[[0.0, 1.0]]]).unwrap().contains("1 updates, expected 2"));
        let cut = |rows: &Array3<f64>| shape.check_cut(rows.view()).err();
        assert_eq!(cut(&array![[[1.0]], [[0.0]]]), None);
        let two = cut(&array![[[1.0], [-1.0]], [[0.0], [-1.0]]]).unwrap();
        assert!(two.contains("called 2 times in an update, and `accumulation: 1`"), "{two}");
        assert!(cut(&array![[[0.0, 1.0]], [[-1.0, -1.0]]]).unwrap().contains("2 rows, expected 1"));
    }

    #[test]
    fn equal_prefixes_have_the_logits_of_the_first() {
        let alike = shape(array![[2, 1], [2, 3]]);
        assert_eq!([alike.home(1, 0), alike.home(1, 1)], [[0, 0], [0, 1]]);
        let apart = shape(array![[2, 1], [3, 1]]);
        assert_eq!([apart.home(1, 0), apart.home(1, 1)], [[0, 0], [1, 1]]);
    }

    #[test]
    fn behind_an_end_every_place_sees_the_whole_row() {
        let shape = shape(array![[1, 0, 0], [2, 1, 0]]);
        assert_eq!([shape.home(0, 1), shape.home(0, 2)], [[0, 1], [0, 1]]);
        assert_eq!([shape.home(1, 1), shape.home(1, 2)], [[1, 1], [1, 2]]);
        let trained = array![[true, false, false], [true, true, false]];
        assert_eq!(shape.hidden(&trained), [[0, 1], [0, 2], [1, 0], [1, 2]]);
    }

    #[test]
    fn a_score_is_that_of_the_tokens_up_to_its_own() {
        let tokens = array![[2, 3, 1], [2, 1, 0]];
        let shape = Shape::of_scores(PLAN, tokens, 2, None);
        let homes = [0, 1, 2].map(|at| shape.home(1, at));
        assert_eq!(homes, [[0, 0], [1, 1], [1, 2]]);
        let table = array![[0.5, 1.0, 1.5], [2.0, 2.5, 3.0]].into_dyn();
        let held = shape.held(table.view());
        assert_eq!(held.into_raw_vec_and_offset().0, [0.5, 1.0, 1.5, 0.5, 2.5, 3.0]);
    }
}
