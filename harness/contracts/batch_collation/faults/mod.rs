//! Known wrong behaviours of `batch-collation`: real bugs, and conventions mistaken for others.
//!
//! A fault is a grid of cells, wrong in one step of how it came about: rows that are cut, rows that
//! are placed, or what is read off the cells.

mod cells;
mod cutting;
mod labels;
mod masks;
mod placing;

use super::{BatchCollation, Layout, Options, Shift, TrainOn, Truncate};

type Fault = shakedown_core::contract::fault::Fault<BatchCollation>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [cutting::all(), placing::all(), masks::all(), labels::all(), declared()];
    themes.into_iter().flatten().collect()
}

/// Another convention than the one that is declared.
fn declared() -> Vec<Fault> {
    vec![
        Fault::new("pad-is-zero", "rows are filled up with 0, whatever the pad is")
            .seen("trl #1284 (918671067), #1692 (1d84e2b88)")
            .under("{pad: 3}")
            .as_if(&[|options| Options { pad: 0, ..options }]),
        Fault::new("padded-on-the-other-side", "rows are filled up on the left for on the right")
            .seen("DeepSpeedExamples #457, #468, #819")
            .as_if(&[|options| {
                let left = options.layout == Layout::Left;
                Options { layout: if left { Layout::Right } else { Layout::Left }, ..options }
            }]),
        Fault::new("ignore-hard-coded", "-100 stands for no label, whatever is declared")
            .seen("an option without effect; torch's default of ignore_index")
            .under("{ignore: -1}")
            .as_if(&[|options| Options { ignore: -100, ..options }]),
        Fault::new("prompts-trained", "the tokens of prompts have labels")
            .seen("completion_only_loss without effect")
            .as_if(&[|options| Options { train_on: TrainOn::All, ..options }]),
        Fault::new("prompts-not-trained", "the tokens of prompts have no labels, though declared")
            .seen("an option without effect")
            .under("{train_on: all}")
            .as_if(&[|options| Options { train_on: TrainOn::Completion, ..options }]),
        Fault::new("limit-ignored", "no row is cut")
            .seen("an option without effect")
            .under("{max_length: 3}")
            .as_if(&[|options| Options { max_length: None, ..options }]),
        Fault::new("the-other-end-cut", "the start stays where the end should, or the end")
            .seen("TRL truncation_mode with another default than the trainer's")
            .under("{max_length: 3}")
            .as_if(&[|options| {
                let start = options.truncate == Truncate::KeepStart;
                let truncate = if start { Truncate::KeepEnd } else { Truncate::KeepStart };
                Options { truncate, ..options }
            }]),
        Fault::new("one-token-too-few", "rows are cut to one token less than `max_length`")
            .seen("plausible: room for an end of the sequence that is not added")
            .under("{max_length: 3}")
            .as_if(&[|options| {
                let max_length = options.max_length.map(|most| (most - 1).max(1));
                Options { max_length, ..options }
            }]),
        Fault::new("one-token-too-many", "rows are cut to one token more than `max_length`")
            .seen("plausible: <= for <, or an end that does not count")
            .under("{max_length: 3}")
            .as_if(&[|options| {
                let max_length = options.max_length.map(|most| most + 1);
                Options { max_length, ..options }
            }]),
        Fault::new("multiple-ignored", "the width is that of the longest row, no multiple")
            .seen("an option without effect")
            .under("{multiple_of: 4}")
            .as_if(&[|options| Options { multiple_of: None, ..options }]),
        Fault::new(
            "labels-in-their-own-column",
            "labels stand in their own column, where they are declared to stand before it",
        )
        .seen("two sides of an interface that both leave the shift to the other")
        .under("{shift: next}")
        .as_if(&[|options| Options { shift: Shift::None, ..options }]),
        Fault::new(
            "labels-shifted-undeclared",
            "labels stand before their column; the loss shifts them again",
        )
        .seen("two sides of an interface that both shift")
        .as_if(&[|options| Options { shift: Shift::Next, ..options }]),
    ]
}
