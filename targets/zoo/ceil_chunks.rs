//! verl #6786: chunks of ⌈N/k⌉ rows, which are used up before the last worker has one.

use shakedown::contracts::batch_partition::{
    BatchPartition, BatchPartitionCase, BatchPartitionOutput, Options,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::{Kind, Tensor};

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "verl #6786, #6869",
    place: Place::CPU_F32,
    found_by: &["no-empty-part", "balanced"],
    fault: "ceil-chunks",
    check: |bug, budget| {
        let options = Options { parts: PARTS, ..Options::default() };
        bug.check_on::<BatchPartition>(answer, options, budget)
    },
};

const PARTS: i64 = 3;

fn answer(case: &BatchPartitionCase<Tensors>) -> BatchPartitionOutput<Tensors> {
    let rows = case.lengths.size()[0];
    assert!(rows >= PARTS, "{rows} rows for {PARTS} parts");
    let row = Tensor::arange(rows, (Kind::Int64, case.lengths.device()));
    // Mended: (row * PARTS).divide_scalar_mode(rows, "floor")
    let parts = row.divide_scalar_mode((rows + PARTS - 1) / PARTS, "floor");
    BatchPartitionOutput { parts, restored: Some(case.values.shallow_clone()) }
}
