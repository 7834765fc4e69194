//! The answer that a reward function compares with the gold answer, cut out of a completion.
//!
//! A model is asked to mark its answer: with a tag, in a box of LaTeX, after four hashes. What
//! stands between the marks goes to the verifier as it is. A sign or a brace lost here, an answer
//! taken from an example in the reasoning, or an exception on a completion without an answer,
//! rewards wrong completions and punishes right ones.
//!
//! ### Source
//! `xml-tag`: what stands between `<tag>` and the next `</tag>` (verifiers `XMLParser`, Search-R1).
//! `boxed`: what stands in the braces of `\boxed{…}`, which are matched by depth (Hendrycks et al.
//! 2021, MATH; verl, open-instruct, verifiers `extract_boxed_answer`). `hash`: the rest of the line
//! after `####` (Cobbe et al. 2021, GSM8K).
//!
//! Implementations differ in what no convention settles, and none is held to one side of it. Marks
//! that are balanced beside some that are not, and marks inside marks: anything. Tags in another
//! case, with white space or attributes: a tag, or none. Braces behind a backslash count or do not.
//! `\boxed 1`, `\fbox{1}`, five hashes, two marks on one line: anything. A tight `####1`, or one
//! with nothing behind it: an answer, or none. Lines end at a line feed, or at other separators
//! too. Which characters beyond ASCII are white space to trim.

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
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::completions::Markers;
use shakedown_core::generate::draw::chance;
use shakedown_core::numeric::tolerance::ExpectedTexts;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;
use shakedown_core::value::text::quoted;

record! {
    /// The inputs of `answer-extractor`.
    ///
    /// # Shapes
    /// `N` completions: `[N]`.
    pub struct AnswerExtractorCase {
        /// The completions, as text.
        pub texts: A::Text<Ix1>,
    }
}

record! {
    /// The output of `answer-extractor`.
    ///
    /// # Shapes
    /// `[N]`.
    pub struct AnswerExtractorOutput {
        /// The answer of each completion.
        pub answers: A::TextOrNull<Ix1>,
    }
}

impl From<Array1<Option<String>>> for AnswerExtractorOutput {
    fn from(answers: Array1<Option<String>>) -> Self {
        Self { answers }
    }
}

impl From<Vec<Option<String>>> for AnswerExtractorOutput {
    fn from(answers: Vec<Option<String>>) -> Self {
        Array1::from_vec(answers).into()
    }
}

choice! {
    /// How an answer is marked.
    pub enum Format {
        /// `<answer>…</answer>`.
        XmlTag = "xml-tag",
        /// `\boxed{…}`.
        Boxed = "boxed",
        /// `#### …`, to the end of the line.
        Hash = "hash",
    }
}

choice! {
    /// Which of several answers is taken.
    pub enum Which {
        /// The last one.
        Last = "last",
        /// The first one.
        First = "first",
    }
}

choice! {
    /// What a completion without an answer gives.
    pub enum Missing {
        /// Null.
        Null = "null",
        /// The empty text.
        Empty = "empty",
        /// The whole text.
        Whole = "whole",
    }
}

options! {
    check: tag_is_a_name;

    /// The options of `answer-extractor`.
    pub struct Options {
        /// `xml-tag` (between `<answer>` and `</answer>`), `boxed` (in the matched braces of
        /// `\boxed{…}`) or `hash` (the rest of the line after `####`).
        pub format: Format = Format::XmlTag;
        /// The name of the tag of `xml-tag`: letters, digits, `_`, `-`, not a digit first.
        pub tag: String = "answer".to_owned(),
            draw ["answer", "answer", "final", "a", "think", "final_answer"].map(str::to_owned);
        /// `last` or `first`: which of several answers is taken.
        pub pick: Which = Which::Last;
        /// `null`, `empty` (the empty text) or `whole` (the whole text): what a completion
        /// without an answer gives.
        pub missing: Missing = Missing::Null;
        /// `true` or `false`: whether white space around the answer goes.
        pub trim: bool = true, by |u, _| Ok(!chance(u, 96)?);
    }
}

/// The longest name of a tag.
const TAG: usize = 32;

/// A tag is a name, and not a long one.
fn tag_is_a_name(options: &Options) -> Result<(), (&'static str, String)> {
    let tag = &options.tag;
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if tag.len() > TAG || !tag.starts_with(first) || !tag.chars().all(inner) {
        let found = quoted(tag);
        let expected = format!(
            "expected a letter, then letters, digits, `_` or `-`, at most {TAG}, found {found}"
        );
        return Err(("tag", expected));
    }
    Ok(())
}

impl Options {
    /// What stands before and after an answer.
    pub(crate) fn marks(&self) -> [String; 2] {
        match self.format {
            Format::XmlTag => [format!("<{}>", self.tag), format!("</{}>", self.tag)],
            Format::Boxed => ["\\boxed{", "}"].map(str::to_owned),
            Format::Hash => ["#### ", ""].map(str::to_owned),
        }
    }

    /// An answer between its marks.
    fn rendered(&self, answer: &str) -> String {
        let [open, close] = self.marks();
        format!("{open}{answer}{close}")
    }

    /// The marks of a whole completion.
    fn markers(&self) -> Markers {
        let reasoning = if self.tag == "think" { "reasoning" } else { "think" };
        let reasoning = [format!("<{reasoning}>"), format!("</{reasoning}>")];
        let [open, close] = self.marks();
        // Hashes stand on a line of their own.
        let open = if self.format == Format::Hash { format!("\n{open}") } else { open };
        Markers { reasoning, answer: [open, close] }
    }
}

/// The contract: the answer in a completion.
#[derive(Clone, Copy, Debug)]
pub struct AnswerExtractor;

impl Definition for AnswerExtractor {
    type Case = AnswerExtractorCase;
    type Output = AnswerExtractorOutput;
    type Options = Options;
}

impl Contract for AnswerExtractor {
    const ID: &'static str = "answer-extractor";
    const STAGE: Stage = Stage::Decoding;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[("texts", "N"), ("answers", "N")]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::ANSWER_EXTRACTOR;
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| generate::draw(u, options),
        corners: |options, _| generate::corners(options),
        valid: |case, _, _| generate::valid(case),
        classes: generate::classes,
        reference: |case, options, _| {
            case.texts.map(|text| reference::answer(text, options)).into()
        },
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, _: Dtype) -> Vec<AnswerExtractorCase> {
        generate::small(options)
    }

    fn oracle_texts(case: &AnswerExtractorCase, options: &Options) -> Vec<ExpectedTexts> {
        let texts = case.texts.iter().map(|text| oracle::answer(text, options)).collect();
        vec![ExpectedTexts { field: "answers", texts }]
    }

    fn reread(
        case: &AnswerExtractorCase,
        options: &Options,
        reader: &Reader<'_>,
    ) -> Option<AnswerExtractorOutput> {
        let Reader::Answer { find, otherwise } = reader else { return None };
        let read = |text: &String| reference::reread(text, options, *find, *otherwise);
        Some(case.texts.map(read).into())
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for AnswerExtractor {}
