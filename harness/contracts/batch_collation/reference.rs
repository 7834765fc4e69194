//! The reference implementation of `batch-collation`, as a trainer would write it: lists that are
//! cut row by row, then filled up, side by side.

use ndarray::Array2;

use super::{BatchCollationCase, BatchCollationOutput, Layout, Options, Shift, TrainOn, Truncate};

/// One row on its way: lists of one length.
#[derive(Clone, Default)]
struct Lists {
    ids: Vec<i64>,
    attention: Vec<i64>,
    completion: Vec<i64>,
    labels: Vec<i64>,
    positions: Vec<i64>,
}

impl Lists {
    fn push(&mut self, id: i64, of_completion: bool, options: &Options) {
        let trained = of_completion || options.train_on == TrainOn::All;
        self.ids.push(id);
        self.attention.push(1);
        self.completion.push(i64::from(of_completion));
        self.labels.push(if trained { id } else { options.ignore });
    }

    fn each(&mut self, change: impl Fn(&mut Vec<i64>, i64), options: &Options) {
        change(&mut self.ids, options.pad);
        change(&mut self.attention, 0);
        change(&mut self.completion, 0);
        change(&mut self.labels, options.ignore);
        change(&mut self.positions, 0);
    }
}

/// The batch.
///
/// # Panics
/// For a row above `max_length`, where `truncate: refuse` promises it.
pub(super) fn collate(case: &BatchCollationCase, options: &Options) -> BatchCollationOutput {
    let rows = case.prompts.nrows();
    let longest = |lengths: &ndarray::Array1<i64>| lengths.iter().copied().max().unwrap_or(0);
    let prompt_width = longest(&case.prompt_lengths) as usize;
    let mut lists = vec![Lists::default(); rows];
    for (row, list) in lists.iter_mut().enumerate() {
        for column in 0..case.prompt_lengths[row] as usize {
            list.push(case.prompts[[row, column]], false, options);
        }
        for column in 0..case.completion_lengths[row] as usize {
            list.push(case.completions[[row, column]], true, options);
        }
        if let Some(most) = options.max_length.map(|most| most as usize) {
            let over = list.ids.len().saturating_sub(most);
            match options.truncate {
                Truncate::Refuse => assert!(over == 0, "row {row} is {over} tokens too long"),
                Truncate::KeepStart => list.each(|of, _| of.truncate(most), options),
                Truncate::KeepEnd => {
                    list.each(|of, _| drop(of.drain(..over.min(of.len()))), options);
                }
            }
        }
        list.positions = (0..list.ids.len() as i64).collect();
        if options.layout == Layout::Split {
            let before = prompt_width - case.prompt_lengths[row] as usize;
            list.each(|of, pad| drop(of.splice(0..0, vec![pad; before])), options);
        }
    }
    let mut width = lists.iter().map(|list| list.ids.len()).max().unwrap_or(0);
    if let Some(multiple) = options.multiple_of {
        width = width.next_multiple_of(multiple as usize);
    }
    for list in &mut lists {
        let more = width - list.ids.len();
        match options.layout {
            Layout::Left => {
                list.each(|of, pad| drop(of.splice(0..0, vec![pad; more])), options);
            }
            _ => list.each(|of, pad| of.resize(width, pad), options),
        }
        if options.shift == Shift::Next && width > 0 {
            list.labels.remove(0);
            list.labels.push(options.ignore);
        }
    }
    let stacked = |list: fn(&Lists) -> &[i64]| {
        Some(Array2::from_shape_fn((rows, width), |(row, column)| list(&lists[row])[column] as f64))
    };
    BatchCollationOutput {
        input_ids: stacked(|list| &list.ids),
        attention_mask: stacked(|list| &list.attention),
        completion_mask: stacked(|list| &list.completion),
        labels: stacked(|list| &list.labels),
        position_ids: stacked(|list| &list.positions),
    }
}
