//! Which tokens of a completion were sampled: all up to its end-of-sequence token, and no pads.
//!
//! Every sum over tokens is taken under this mask. A mask that loses the end-of-sequence token
//! trains a model that never stops, one that counts pads trains on them, and one that takes an id
//! for an end because it is also the pad, or overlooks the second of two, does both in some rows
//! only.
//!
//! The output is an array of flags, 0 or 1, as floats, integers or booleans. `T` may be 0.
//!
//! ### Source
//! With `j` the first position whose id is in `eos`: `mask[t] = (t ≤ j)`, or `(t < j)` without
//! `include_eos`. verl `get_response_mask` and TRL `first_true_indices` (`unfinished: all`); length
//! and attention mask in OpenRLHF, NeMo-RL and TRL GRPO (`keep`); TRL `mask_truncated_completions`
//! and the overlong filter of DAPO (`drop`). torchtune's
//! `truncate_sequence_at_first_stop_token` gives the opposite, true at the padding.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array2, Ix2};

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The input of `completion-mask`.
    ///
    /// # Shapes
    /// `N` completions of `T` tokens, of which there may be none: `[N, T]`.
    pub struct CompletionMaskCase {
        /// The token ids of each completion, filled up to the same length.
        pub tokens: A::Int<Ix2>,
    }
}

record! {
    /// The output of `completion-mask`.
    ///
    /// # Shapes
    /// `[N, T]`.
    pub struct CompletionMaskOutput {
        /// 1 where the token was sampled, else 0.
        pub mask: A::Float<Ix2>,
    }
}

impl From<Array2<f64>> for CompletionMaskOutput {
    fn from(mask: Array2<f64>) -> Self {
        Self { mask }
    }
}

impl From<Array2<f32>> for CompletionMaskOutput {
    fn from(mask: Array2<f32>) -> Self {
        mask.mapv(f64::from).into()
    }
}

impl From<Array2<i64>> for CompletionMaskOutput {
    fn from(mask: Array2<i64>) -> Self {
        mask.mapv(|flag| flag as f64).into()
    }
}

impl From<Array2<bool>> for CompletionMaskOutput {
    fn from(mask: Array2<bool>) -> Self {
        mask.mapv(f64::from).into()
    }
}

choice! {
    /// What counts in a row without an end-of-sequence token.
    pub enum Unfinished {
        /// What stands before the pads at its end.
        Keep = "keep",
        /// Every column.
        All = "all",
        /// Nothing.
        Drop = "drop",
    }
}

choice! {
    /// Whether there are batches without a column.
    pub enum Empty {
        /// They are generated.
        Generate = "generate",
        /// They never are: whoever sampled has one token at least.
        Avoid = "avoid",
    }
}

options! {
    check: are_ids;
    draw: drawn;

    /// The options of `completion-mask`.
    pub struct Options {
        /// The ids that end a completion, one at least.
        pub eos: Vec<i64> = vec![2];
        /// The id that fills a row up; may be one of `eos`, and then a pad ends a row too.
        pub pad: i64 = 0;
        /// `true` or `false`: whether the token that ends a completion counts.
        pub include_eos: bool = true;
        /// What counts in a row without an id of `eos`: `keep` (what stands before the pads at its
        /// end), `all` (every column) or `drop` (nothing).
        pub unfinished: Unfinished = Unfinished::Keep;
        /// `generate` or `avoid`: whether batches without a column (T = 0) are generated, of
        /// which there are none where a completion has its end at least.
        pub empty: Empty = Empty::Avoid;
    }
}

/// The largest id: ids have 32 bits in some frameworks.
const LARGEST_ID: i64 = i32::MAX as i64;

impl Options {
    /// The first position of a row that ends it.
    fn first_eos(&self, row: &[i64]) -> Option<usize> {
        row.iter().position(|id| self.eos.contains(id))
    }

    /// Whether pads end a row, so that no row is unfinished and padded.
    fn pad_is_eos(&self) -> bool {
        self.eos.contains(&self.pad)
    }

    /// Whether an id has no meaning of its own: neither an end nor a pad.
    fn is_word(&self, id: i64) -> bool {
        id != self.pad && !self.eos.contains(&id)
    }
}

/// The ends and the pad are ids, and there is an end.
fn are_ids(options: &Options) -> Result<(), (&'static str, String)> {
    let an_id = |id: i64| {
        let expected = || format!("expected an id from 0 to {LARGEST_ID}, found {id}");
        if (0..=LARGEST_ID).contains(&id) { Ok(()) } else { Err(expected()) }
    };
    if options.eos.is_empty() {
        let why = "expected one id or more, found none: no completion would ever end";
        return Err(("eos", why.to_owned()));
    }
    for id in &options.eos {
        an_id(*id).map_err(|why| ("eos", why))?;
    }
    an_id(options.pad).map_err(|why| ("pad", why))
}

/// Ends and pad are drawn together, as tokenizers have them.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let ids: [(&[i64], i64); 16] = [
        (&[2], 0),
        (&[2], 2),
        (&[1], 0),
        (&[1], 1),
        (&[0], 0),
        (&[0], 1),
        (&[3], 1),
        (&[2, 3], 0),
        (&[2, 3], 2),
        (&[2, 3], 3),
        (&[1, 106], 0),
        (&[5, 1, 9], 3),
        (&[2], 32_000),
        (&[50_256], 50_256),
        (&[151_645, 151_643], 151_643),
        (&[128_001, 128_008, 128_009], 128_004),
    ];
    let (eos, pad) = one(u, &ids)?;
    Ok(Options {
        eos: eos.to_vec(),
        pad,
        include_eos: !chance(u, 96)?,
        unfinished: one(u, Unfinished::ALL)?,
        empty: one(u, Empty::ALL)?,
        ..Options::default()
    })
}

/// The contract: which tokens of a completion were sampled.
#[derive(Clone, Copy, Debug)]
pub struct CompletionMask;

impl Definition for CompletionMask {
    type Case = CompletionMaskCase;
    type Output = CompletionMaskOutput;
    type Options = Options;
}

impl Contract for CompletionMask {
    const ID: &'static str = "completion-mask";
    const STAGE: Stage = Stage::Decoding;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["mask"];
    const AXES: Axes = Axes::new(&[("tokens", "NT"), ("mask", "NT")]).may_be_empty(&['T']);
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::COMPLETION_MASK;
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| generate::draw(u, options),
        corners: |options, _| generate::corners(options),
        valid: |case, options, _| generate::valid(case, options),
        classes: generate::classes,
        reference: |case, options, _| reference::mask(case, options).into(),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, _: Dtype) -> Vec<CompletionMaskCase> {
        generate::small(options)
    }

    fn simpler(case: &CompletionMaskCase, options: &Options, _: Dtype) -> Vec<CompletionMaskCase> {
        generate::simpler(case, options)
    }

    fn oracle(case: &CompletionMaskCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::mask(case, options)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }

    fn samples(options: &Options, _: Dtype) -> Vec<CompletionMaskCase> {
        generate::samples(options)
    }
}

impl Rows for CompletionMask {}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_core::contract::options::Options as _;

    #[test]
    fn a_list_without_an_end_is_refused() {
        let refused = |options: Options| options.check().unwrap_err();
        let (option, why) = refused(Options { eos: Vec::new(), ..Options::default() });
        assert_eq!((option, why.contains("one id or more")), ("eos", true));
        assert_eq!(refused(Options { eos: vec![2, -1], ..Options::default() }).0, "eos");
        assert_eq!(refused(Options { pad: -100, ..Options::default() }).0, "pad");
        assert_eq!(Options { eos: vec![2, 3], pad: 3, ..Options::default() }.check(), Ok(()));
    }
}
