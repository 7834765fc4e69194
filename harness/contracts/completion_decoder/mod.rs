//! The text that a reward function sees, made of what the model produced.
//!
//! Between the model and the reward stands a decoder: it removes special tokens, and in some
//! pipelines the reasoning. What it loses is not scored, what it leaves is scored with the answer,
//! and a text that it blanks is scored as no answer at all. None of this raises.
//!
//! Artefacts are removed until none is left, so also one that appears when another goes. `think`
//! says what becomes of reasoning: kept; every closed block removed, with a closing tag that has no
//! opener closing a block that began in the prompt, and an unclosed block removed to the end
//! (`strip-closed`); or only what follows the last closing tag kept, where a text without one stays
//! (`last-segment`) or gives nothing (`strip-always`). Where no honest convention exists (nested or
//! overlapping blocks, a closing tag beside closed blocks, a marker that appears only once an
//! artefact is gone) nothing is expected but that a text comes, without artefacts, made of pieces
//! of the input.
//!
//! ### Source
//! `skip_special_tokens` of every tokenizer; verl's reward managers (one trailing end of text);
//! `ThinkParser` and `MaybeThinkParser` of verifiers; `remove_thinking_section` of open-instruct.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array1, Ix1};

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::reading::Reader;
use shakedown_core::contract::rows::{self, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::numeric::tolerance::ExpectedTexts;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The input of `completion-decoder`.
    ///
    /// # Shapes
    /// `N` completions: `[N]`.
    pub struct CompletionDecoderCase {
        /// What the model produced, special tokens and all.
        pub completions: A::Text<Ix1>,
    }
}

record! {
    /// The output of `completion-decoder`.
    ///
    /// # Shapes
    /// `[N]`.
    pub struct CompletionDecoderOutput {
        /// What the reward function sees of each.
        pub texts: A::Text<Ix1>,
    }
}

impl From<Vec<String>> for CompletionDecoderOutput {
    fn from(texts: Vec<String>) -> Self {
        Self { texts: Array1::from_vec(texts) }
    }
}

choice! {
    /// What becomes of reasoning between think tags.
    pub enum Think {
        /// It is content.
        Keep = "keep",
        /// Every closed block goes, and an unclosed one to the end.
        StripClosed = "strip-closed",
        /// What follows the last closing tag stays; without one, nothing.
        StripAlways = "strip-always",
        /// What follows the last closing tag stays; without one, everything.
        LastSegment = "last-segment",
    }
}

/// Special tokens, as tokenizers have them.
const ARTEFACTS: [&[&str]; 4] =
    [&["<pad>", "<eos>"], &["<|endoftext|>", "<|im_end|>"], &["</s>"], &["[PAD]", "<s>"]];

/// Markers of answers.
const MARKERS: [&[&str]; 3] = [&["<answer>", "</answer>"], &["\\boxed{", "}"], &[]];

/// Tags of reasoning.
const TAGS: [[&str; 2]; 3] =
    [["<think>", "</think>"], ["<reasoning>", "</reasoning>"], ["[t]", "[/t]"]];

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().copied().map(str::to_owned).collect()
}

options! {
    check: tokens_agree;

    /// The options of `completion-decoder`.
    pub struct Options {
        /// The special tokens that must not survive; removed until none is left.
        pub artefacts: Vec<String> = owned(ARTEFACTS[0]),
            draw ARTEFACTS.map(owned);
        /// The markers that must survive.
        pub keep: Vec<String> = owned(MARKERS[0]),
            draw MARKERS.map(owned);
        /// What becomes of reasoning: `keep` (it is content), `strip-closed` (every closed block
        /// goes, an unclosed one to the end), `strip-always` (what follows the last closing tag,
        /// else nothing) or `last-segment` (what follows the last closing tag, else everything).
        pub think: Think = Think::Keep;
        /// The opening and the closing tag of reasoning.
        pub think_tags: [String; 2] = TAGS[0].map(str::to_owned),
            draw TAGS.map(|tags| tags.map(str::to_owned));
        /// `true` or `false`: whether outer white space may go, also that of what is left beside a
        /// removed block.
        pub trim: bool = true, chance 160;
    }
}

/// What must go and what must stay are not parts of each other.
fn tokens_agree(options: &Options) -> Result<(), (&'static str, String)> {
    let [open, close] = &options.think_tags;
    if open.is_empty() || close.is_empty() || open.contains(&**close) || close.contains(&**open) {
        return Err(("think_tags", "expected two tags, neither of them in the other".to_owned()));
    }
    let overlap = |a: &str, b: &str| a.contains(b) || b.contains(a);
    for artefact in &options.artefacts {
        if artefact.trim().is_empty() {
            return Err(("artefacts", "expected tokens with something to see".to_owned()));
        }
        for marker in options.keep.iter().chain(&options.think_tags) {
            if overlap(artefact, marker) {
                let why = format!("`{artefact}` cannot go where `{marker}` is a marker");
                return Err(("artefacts", why));
            }
        }
    }
    for marker in &options.keep {
        if marker.is_empty() {
            return Err(("keep", "expected markers with something to see".to_owned()));
        }
        let tags = options.think_tags.iter();
        if let Some(tag) =
            tags.filter(|_| options.think != Think::Keep).find(|tag| overlap(marker, tag))
        {
            return Err(("keep", format!("`{marker}` cannot stay where `{tag}` goes")));
        }
    }
    Ok(())
}

/// The contract: the text that a reward function sees.
#[derive(Clone, Copy, Debug)]
pub struct CompletionDecoder;

impl Definition for CompletionDecoder {
    type Case = CompletionDecoderCase;
    type Output = CompletionDecoderOutput;
    type Options = Options;
}

impl Contract for CompletionDecoder {
    const ID: &'static str = "completion-decoder";
    const STAGE: Stage = Stage::Decoding;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[("completions", "N"), ("texts", "N")]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::COMPLETION_DECODER;
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| generate::draw(u, options),
        corners: |options, _| generate::corners(options),
        valid: |case, _, _| rows::check_axes::<Self>(case),
        classes: generate::classes,
        reference: |case, options, _| {
            let texts = case.completions.iter().map(|text| reference::text(text, options));
            texts.collect::<Vec<String>>().into()
        },
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, _: Dtype) -> Vec<CompletionDecoderCase> {
        generate::small(options)
    }

    fn oracle_texts(case: &CompletionDecoderCase, options: &Options) -> Vec<ExpectedTexts> {
        let texts = case.completions.iter().map(|text| oracle::text(text, options)).collect();
        vec![ExpectedTexts { field: "texts", texts }]
    }

    fn reread(
        case: &CompletionDecoderCase,
        options: &Options,
        reader: &Reader<'_>,
    ) -> Option<CompletionDecoderOutput> {
        let texts: Option<Vec<String>> =
            case.completions.iter().map(|text| reference::reread(text, options, reader)).collect();
        texts.map(Into::into)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for CompletionDecoder {}
