//! trl #3398: rows are filled up first, and the last columns are kept: what is left of a short row
//! is padding.

use shakedown::contracts::batch_collation::{
    BatchCollation, BatchCollationCase, BatchCollationOutput, Options, Truncate,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::{Kind, Tensor};

use super::Bug;
use crate::batch_collation::collate;

/// How many tokens of a row stay.
const MAX_LENGTH: i64 = 3;

pub(super) const BUG: Bug = Bug {
    source: "trl #3398 (8e8e62b38), #5305 (ee96845a9)",
    place: Place::CPU_F32,
    found_by: &["oracle", "attention", "completion-tokens", "row-split", "cut-beforehand"],
    fault: "last-columns-kept",
    check: |bug, budget| {
        let truncate = Truncate::KeepEnd;
        let options = Options { max_length: Some(MAX_LENGTH), truncate, ..Options::default() };
        bug.check_on::<BatchCollation>(answer, options, budget)
    },
};

fn answer(case: &BatchCollationCase<Tensors>) -> BatchCollationOutput<Tensors> {
    let rows = |padded: &Tensor, lengths: &Tensor| -> Vec<Tensor> {
        let rows = 0..padded.size()[0];
        rows.map(|row| padded.get(row).narrow(0, 0, lengths.int64_value(&[row]))).collect()
    };
    let prompts = rows(&case.prompts, &case.prompt_lengths);
    let completions = rows(&case.completions, &case.completion_lengths);
    // Mended: `max_length` and `truncate` among these options, and no columns taken below
    let batch = collate(&prompts, &completions, &Options::default());
    let width = batch.input_ids.size()[1];
    let kept = width.min(MAX_LENGTH);
    let last = |of: &Tensor| Some(of.narrow(1, width - kept, kept).to_kind(Kind::Double));
    BatchCollationOutput {
        input_ids: last(&batch.input_ids),
        attention_mask: last(&batch.attention_mask),
        completion_mask: last(&batch.completion_mask),
        labels: None,
        position_ids: None,
    }
}
