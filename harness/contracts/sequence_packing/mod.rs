//! Documents packed into rows of one width, so that no step is spent on padding.
//!
//! There are many right answers: documents and rows come in any order. What is asked is that each
//! document is there once, token for token, that a model can tell where each begins, and that none
//! is trained on what another one says.
//!
//! The outputs are arrays of integers or floats, all of one shape. `B` and `L` are the component's
//! own.
//!
//! ### Source
//! TRL `pack_dataset` with the padding-free collator: `bfd` is `overlong: truncate, first_label:
//! ignore`, `bfd_split` is `split`, and `wrapped` is `split` with `cut: anywhere`. torchtune
//! `PackedDataset`: `avoid`, an error above the capacity without `split_across_pack`. open-instruct
//! `rl_utils.py`: `avoid, width: needed`. Krell et al. 2021, Efficient Sequence Packing without
//! Cross-contamination.
//!
//! Attention masks as block matrices and cumulative lengths are no outputs: `segments` is derived
//! from them.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array2, Ix1, Ix2};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `sequence-packing`.
    ///
    /// # Shapes
    /// `N` documents, filled up to `T` tokens: tokens and mask `[N, T]`, lengths `[N]`.
    pub struct SequencePackingCase {
        /// The token ids of each document, then padding. The padding's id may stand inside too.
        pub tokens: A::Int<Ix2>,
        /// How many tokens each document has, one at least.
        pub lengths: A::Int<Ix1>,
        /// True where a token is trained.
        pub mask: A::Bool<Ix2>,
    }
}

record! {
    /// The outputs of `sequence-packing`.
    ///
    /// # Shapes
    /// `B` rows of `L` tokens: all `[B, L]`.
    pub struct SequencePackingOutput {
        /// The token ids.
        pub packed: A::Float<Ix2>,
        /// The document of each token, counted from 1 in its row; 0 at padding.
        pub segments: A::Float<Ix2>,
        /// The position of each token in its document. At padding anything.
        pub positions: Option<A::Float<Ix2>>,
        /// What is to be predicted of, or at, each token; `ignore` where nothing is.
        pub labels: Option<A::Float<Ix2>>,
    }
}

impl From<[Array2<i64>; 2]> for SequencePackingOutput {
    fn from(arrays: [Array2<i64>; 2]) -> Self {
        let [packed, segments] = arrays.map(|array| array.mapv(|id| id as f64));
        Self { packed, segments, positions: None, labels: None }
    }
}

impl From<[Array2<i64>; 4]> for SequencePackingOutput {
    fn from(arrays: [Array2<i64>; 4]) -> Self {
        let [packed, segments, positions, labels] = arrays.map(|array| array.mapv(|id| id as f64));
        Self { packed, segments, positions: Some(positions), labels: Some(labels) }
    }
}

choice! {
    /// How wide rows are.
    pub enum Width {
        /// As wide as the capacity.
        Capacity = "capacity",
        /// At most that.
        Needed = "needed",
    }
}

choice! {
    /// What becomes of a document that is longer than a row may be.
    pub enum Overlong {
        /// It is never generated.
        Avoid = "avoid",
        /// Its first tokens are kept, as many as a row holds.
        Truncate = "truncate",
        /// It is cut into pieces, each a segment of its own.
        Split = "split",
        /// It is an error.
        Refuse = "refuse",
    }
}

choice! {
    /// Where the pieces of a document end.
    pub enum Cut {
        /// At the capacity: full pieces, and what is left.
        Capacity = "capacity",
        /// Wherever there is room.
        Anywhere = "anywhere",
    }
}

choice! {
    /// At which position a piece begins.
    pub enum SplitPositions {
        /// At 0.
        Restart = "restart",
        /// At 0, or at the position in its document.
        Any = "any",
    }
}

choice! {
    /// Which token a label belongs to.
    pub enum Shift {
        /// The token at the same place.
        None = "none",
        /// The next token of the segment.
        Next = "next",
    }
}

choice! {
    /// Whether the first token of a segment is predicted.
    pub enum FirstLabel {
        /// It has its label: the model's own shift drops it, or it is never asked for.
        Keep = "keep",
        /// It has none.
        Ignore = "ignore",
    }
}

/// The largest id: f32 holds every whole number up to it.
const LARGEST_ID: i64 = 1 << 24;

options! {
    rows: Batch;
    draw: drawn;

    /// The options of `sequence-packing`.
    pub struct Options {
        /// How many tokens a row may have.
        pub capacity: i64 = 8, in 1..=1_048_576;
        /// `capacity` or `needed`: rows are that wide, or at most.
        pub width: Width = Width::Capacity;
        /// The id of padding in `packed`; may stand inside documents too.
        pub pad: i64 = 0, in 0..=LARGEST_ID;
        /// The label where nothing is predicted.
        pub ignore: i64 = -100, in -LARGEST_ID..=LARGEST_ID;
        /// `avoid`, `truncate`, `split` or `refuse`: a document longer than the capacity is never
        /// generated, cut off at the capacity, cut into pieces that are segments of their own, or
        /// an error.
        pub overlong: Overlong = Overlong::Avoid;
        /// `capacity` or `anywhere`: pieces are full but for the last one, or end wherever a row
        /// is full; then only tokens and positions are checked, and segments for their form.
        /// Says nothing without `overlong: split`.
        pub cut: Cut = Cut::Capacity;
        /// `restart` or `any`: a piece begins at position 0, or there or where it stands in its
        /// document. Inside a segment positions always count up by one.
        pub split_positions: SplitPositions = SplitPositions::Restart;
        /// `none` or `next`: the label at a token is its own, or that of the next token of its
        /// segment, and `ignore` at the end.
        pub shift: Shift = Shift::None;
        /// `keep` or `ignore`: whether the first token of a segment has a label. With `shift: next`
        /// it has none in any case.
        pub first_label: FirstLabel = FirstLabel::Keep;
    }
}

impl Options {
    /// Whether a document is longer than a row may be.
    fn is_overlong(&self, length: i64) -> bool {
        length > self.capacity
    }

    /// Whether it is left open where documents are cut.
    fn cuts_anywhere(&self) -> bool {
        self.overlong == Overlong::Split && self.cut == Cut::Anywhere
    }
}

fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let overlong = one(u, Overlong::ALL)?;
    let split = overlong == Overlong::Split;
    Ok(Options {
        capacity: one(u, &[8, 4, 3, 2, 5, 16, 1, 12])?,
        width: one(u, Width::ALL)?,
        pad: one(u, &[0, 0, 1, 151_643])?,
        ignore: one(u, &[-100, -100, -1])?,
        overlong,
        cut: if split { one(u, Cut::ALL)? } else { Cut::Capacity },
        split_positions: if split && chance(u, 128)? {
            SplitPositions::Any
        } else {
            SplitPositions::Restart
        },
        shift: one(u, Shift::ALL)?,
        first_label: one(u, FirstLabel::ALL)?,
        ..Options::default()
    })
}

/// The contract: documents packed into rows.
#[derive(Clone, Copy, Debug)]
pub struct SequencePacking;

impl Definition for SequencePacking {
    type Case = SequencePackingCase;
    type Output = SequencePackingOutput;
    type Options = Options;
}

impl Contract for SequencePacking {
    const ID: &'static str = "sequence-packing";
    const STAGE: Stage = Stage::Data;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["packed", "segments", "positions", "labels"];
    const AXES: Axes = Axes::new(&[
        ("tokens", "NT"),
        ("lengths", "N"),
        ("mask", "NT"),
        ("packed", "BL"),
        ("segments", "BL"),
        ("positions", "BL"),
        ("labels", "BL"),
    ]);
    const BLIND: &'static [Blind] = &[Blind::at("pad", 0.0, &[("pad", "3")])];
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::SEQUENCE_PACKING;
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| generate::draw(u, options),
        corners: |options, _| generate::corners(options),
        valid: |case, options, _| generate::valid(case, options),
        classes: generate::classes,
        reference: |case, options, _| reference::pack(case, options),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, _: Dtype) -> Vec<SequencePackingCase> {
        generate::small(options)
    }

    fn simpler(
        case: &SequencePackingCase,
        options: &Options,
        _: Dtype,
    ) -> Vec<SequencePackingCase> {
        generate::simpler(case, options)
    }

    fn refuses(case: &SequencePackingCase, options: &Options) -> bool {
        options.overlong == Overlong::Refuse
            && case.lengths.iter().any(|length| options.is_overlong(*length))
    }

    /// Nothing is known of them beforehand.
    fn shapes(_: &SequencePackingCase, _: &Options) -> Vec<(&'static str, Vec<usize>)> {
        Vec::new()
    }

    fn check_form(
        _: &SequencePackingCase,
        _: &Options,
        output: &SequencePackingOutput,
    ) -> Result<(), String> {
        let expected = output.packed.shape();
        let others = [
            ("segments", Some(&output.segments)),
            ("positions", output.positions.as_ref()),
            ("labels", output.labels.as_ref()),
        ];
        for (name, array) in others {
            if let Some(found) = array.map(|array| array.shape())
                && found != expected
            {
                return Err(format!("`{name}` has shape {found:?}, `packed` has {expected:?}"));
            }
        }
        Ok(())
    }
}
