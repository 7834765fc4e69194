//! torchtune #2613: labels are shifted along a packed row, over the boundaries of its documents.

use shakedown::contracts::sequence_packing::{
    Options, SequencePacking, SequencePackingCase, SequencePackingOutput, Shift,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::sequence_packing::{Packed, sequence_packing};

pub(super) const BUG: Bug = Bug {
    source: "torchtune #2613 (b18312c7d)",
    place: Place::CPU_F32,
    found_by: &["labels"],
    fault: "label-across-documents",
    check: |bug, budget| {
        let options = Options { shift: Shift::Next, ..Options::default() };
        bug.check_on::<SequencePacking>(answer, options, budget)
    },
};

fn answer(case: &SequencePackingCase<Tensors>) -> SequencePackingOutput<Tensors> {
    let options = Options::default();
    // Mended: each document shifted before it is packed, as `Shift::Next` does
    let Packed { packed, segments, positions, labels } =
        sequence_packing(&case.tokens, &case.lengths, &case.mask, &options);
    let none = labels.slice(1, 0, 1, 1).full_like(options.ignore);
    let labels = Tensor::cat(&[labels.slice(1, 1, None, 1), none], 1);
    SequencePackingOutput { packed, segments, positions: Some(positions), labels: Some(labels) }
}
