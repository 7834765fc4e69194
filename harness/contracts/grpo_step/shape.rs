//! Where things stand in a case: its sizes, which completion a row is, which rows an update trains,
//! and which prefixes are one.

use std::ops::Range;

use ndarray::{Array1, Array2, Array3, ArrayRef, Axis, IxDyn, s};

use super::{GrpoStepCase, GrpoStepOutput, Options};

/// The sizes of a case, and how its rows come to the updates.
pub(super) struct Shape<'a> {
    case: &'a GrpoStepCase,
    options: &'a Options,
    /// Completions of each prompt.
    pub(super) group: usize,
    /// Places of each completion.
    pub(super) width: usize,
    /// Rows of each generation.
    pub(super) rows: usize,
    /// Rows of all generations.
    pub(super) all_rows: usize,
    /// For each place of each row, the row whose logits hold there: the first with that prefix.
    homes: Array2<usize>,
}

impl<'a> Shape<'a> {
    /// Of a valid case.
    pub(super) fn of(case: &'a GrpoStepCase, options: &'a Options) -> Shape<'a> {
        let (prompts, group, width) = case.tokens.dim();
        let all_rows = prompts * group;
        let rows = all_rows / usize::from(options.generations);
        let homes = homes(&case.tokens);
        Shape { case, options, group, width, rows, all_rows, homes }
    }

    /// The generation that an update trains on.
    pub(super) fn generation(&self, update: usize) -> usize {
        update / self.options.updates_of_a_generation()
    }

    /// The update in which a generation is sampled.
    pub(super) fn first_update(&self, generation: usize) -> usize {
        generation * self.options.updates_of_a_generation()
    }

    /// The rows of a generation.
    pub(super) fn rows_of(&self, generation: usize) -> Range<usize> {
        generation * self.rows..(generation + 1) * self.rows
    }

    /// The prompt of each of some rows.
    pub(super) fn groups(&self, rows: Range<usize>) -> Array1<i64> {
        rows.map(|row| (row / self.group) as i64).collect()
    }

    /// The tokens of the completions, a row each.
    pub(super) fn tokens(&self) -> Array2<i64> {
        let shape = (self.all_rows, self.width);
        self.case.tokens.to_shape(shape).expect("a row is a completion").to_owned()
    }

    /// The rewards of some completions, a row each.
    pub(super) fn rewards(&self, rows: Range<usize>) -> Array2<f64> {
        let shape = (self.all_rows, self.case.rewards.dim().2);
        let all = self.case.rewards.to_shape(shape).expect("a row is a completion");
        all.slice(s![rows, ..]).to_owned()
    }

    /// The logits that hold at each place of each row, at an update.
    pub(super) fn logits(&self, update: usize) -> Array3<f64> {
        self.held(&self.case.logits.index_axis(Axis(0), update).to_owned())
    }

    /// Those of the reference.
    pub(super) fn ref_logits(&self) -> Option<Array3<f64>> {
        self.case.ref_logits.as_ref().map(|logits| self.held(logits))
    }

    /// The logits that hold, of a table `[P, G, T, V]`.
    fn held(&self, table: &ArrayRef<f64, IxDyn>) -> Array3<f64> {
        let vocabulary = table.shape()[3];
        let shape = (self.all_rows, self.width, vocabulary);
        let table = table.to_shape(shape).expect("a row is a completion");
        Array3::from_shape_fn(shape, |(row, at, id)| table[[self.homes[[row, at]], at, id]])
    }

    /// The row in which a prefix comes first.
    pub(super) fn home(&self, row: usize, at: usize) -> usize {
        self.homes[[row, at]]
    }

    /// The rows of each micro-batch of an update: as the trainer chose them, or in order.
    pub(super) fn micro_batches(&self, update: usize) -> Vec<Vec<usize>> {
        let Some(chosen) = &self.case.micro_batches else { return self.in_order(update) };
        let rows = chosen.index_axis(Axis(0), update);
        rows.rows().into_iter().map(|batch| chosen_rows(batch.iter())).collect()
    }

    /// The rows of each micro-batch of an update, where they are taken in order.
    pub(super) fn in_order(&self, update: usize) -> Vec<Vec<usize>> {
        let Options { mini_batches, accumulation, .. } = *self.options;
        let (parts, each) = (usize::from(mini_batches), usize::from(accumulation));
        let size = self.rows / (parts * each);
        let part = update % parts;
        let first = self.rows_of(self.generation(update)).start + part * each * size;
        (0..each)
            .map(|batch| (first + batch * size..first + (batch + 1) * size).collect())
            .collect()
    }

    /// The same for every update, as an output has it.
    pub(super) fn all_micro_batches(&self) -> Array3<f64> {
        let updates: Vec<_> = (0..self.options.updates()).map(|u| self.micro_batches(u)).collect();
        let batches = usize::from(self.options.accumulation);
        let size = updates.iter().flatten().map(Vec::len).max().unwrap_or(0);
        Array3::from_shape_fn((updates.len(), batches, size), |(update, batch, at)| {
            updates[update][batch].get(at).map_or(-1.0, |row| *row as f64)
        })
    }
}

fn chosen_rows<'i>(rows: impl Iterator<Item = &'i i64>) -> Vec<usize> {
    rows.filter_map(|row| usize::try_from(*row).ok()).collect()
}

/// For each place of each row, the first row with the same prompt and the same tokens before it.
fn homes(tokens: &Array3<i64>) -> Array2<usize> {
    let (prompts, group, width) = tokens.dim();
    Array2::from_shape_fn((prompts * group, width), |(row, at)| {
        let (prompt, own) = (row / group, row % group);
        let prefix = |of: usize| tokens.slice(s![prompt, of, ..at]).to_owned();
        let first = (0..own).find(|other| prefix(*other) == prefix(own)).unwrap_or(own);
        prompt * group + first
    })
}

/// The case with the micro-batches that the trainer chose, where it trains every row of each
/// generation once a pass, as many in every micro-batch as in any other.
pub(super) fn settled(
    case: &GrpoStepCase,
    options: &Options,
    output: &GrpoStepOutput,
) -> Option<GrpoStepCase> {
    let chosen = output.micro_batches.as_ref()?;
    partition(case, options, output).ok()?;
    let micro_batches = Some(chosen.mapv(|row| row as i64));
    Some(GrpoStepCase { micro_batches, ..case.clone() })
}

/// Whether micro-batches train every row of each generation once a pass.
///
/// # Errors
/// Which row is trained how often.
pub(super) fn partition(
    case: &GrpoStepCase,
    options: &Options,
    output: &GrpoStepOutput,
) -> Result<(), String> {
    let Some(chosen) = &output.micro_batches else { return Ok(()) };
    let shape = Shape::of(case, options);
    let (updates, batches, size) = chosen.dim();
    let expected = (options.updates(), usize::from(options.accumulation));
    if (updates, batches) != expected {
        let found = format!("{updates} updates of {batches} micro-batches");
        return Err(format!("{found}, expected {} of {}", expected.0, expected.1));
    }
    let passes = usize::from(options.mini_batches);
    for first in (0..updates).step_by(passes) {
        let rows = shape.rows_of(shape.generation(first));
        let trained = chosen.slice(s![first..first + passes, .., ..]);
        for row in 0..shape.all_rows {
            let times = trained.iter().filter(|one| **one == row as f64).count();
            let declared = usize::from(rows.contains(&row));
            if times != declared {
                let (prompt, own) = (row / shape.group, row % shape.group);
                let last = first + passes - 1;
                let when = if passes == 1 {
                    format!("update {first}")
                } else {
                    format!("updates {first} to {last}")
                };
                return Err(format!(
                    "completion {own} of prompt {prompt} is trained {} in {when}, expected {}",
                    times_of(times),
                    times_of(declared),
                ));
            }
        }
        let wrong = trained.iter().find(|row| row.fract() != 0.0 || **row < -1.0);
        if let Some(row) = wrong {
            return Err(format!("a micro-batch has row {row}"));
        }
        if size * batches * passes != rows.len() {
            return Err(format!("micro-batches of {size} rows at most, which is not as declared"));
        }
    }
    Ok(())
}

/// `once`, `3 times`, `0 times`.
fn times_of(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, array};

    use super::*;

    /// Two completions that begin alike, in two updates.
    fn case() -> GrpoStepCase {
        GrpoStepCase {
            tokens: array![[[2, 1], [2, 3]]],
            rewards: array![[[1.0], [0.0]]],
            logits: ArrayD::zeros(IxDyn(&[2, 1, 2, 2, 4])),
            ref_logits: None,
            micro_batches: None,
        }
    }

    fn settled_as(rows: Array3<f64>) -> Result<(), String> {
        let options = Options { mini_batches: 2, ..Options::default() };
        let output = GrpoStepOutput {
            gradient: case().logits,
            micro_batches: Some(rows),
            unknown: None,
            ref_gradient: None,
            ref_training: None,
            scored: None,
        };
        let is_settled = settled(&case(), &options, &output).is_some();
        let found = partition(&case(), &options, &output);
        assert_eq!(is_settled, found.is_ok());
        found
    }

    #[test]
    fn a_case_is_settled_by_rows_that_are_trained_once() {
        assert_eq!(settled_as(array![[[1.0]], [[0.0]]]), Ok(()));
        let again = settled_as(array![[[0.0]], [[0.0]]]).unwrap_err();
        assert_eq!(
            again,
            "completion 0 of prompt 0 is trained 2 times in updates 0 to 1, expected once"
        );
        let other = settled_as(array![[[0.0]], [[7.0]]]).unwrap_err();
        assert!(other.contains("completion 1 of prompt 0 is trained 0 times"), "{other}");
        assert!(settled_as(array![[[0.0, 1.0]]]).unwrap_err().contains("expected 2 of 1"));
    }

    #[test]
    fn equal_prefixes_have_the_logits_of_the_first() {
        let (case, options) = (case(), Options { mini_batches: 2, ..Options::default() });
        let shape = Shape::of(&case, &options);
        assert_eq!([shape.home(1, 0), shape.home(1, 1)], [0, 0]);
        let apart = GrpoStepCase { tokens: array![[[2, 1], [3, 1]]], ..case.clone() };
        let shape = Shape::of(&apart, &options);
        assert_eq!([shape.home(1, 0), shape.home(1, 1)], [0, 1]);
    }
}
