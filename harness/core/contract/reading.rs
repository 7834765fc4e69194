//! How a contract lets texts be read otherwise than its reference reads them: step by step.

/// A text with what marks an answer in it.
pub struct Marked<'a> {
    /// The text.
    pub text: &'a str,
    /// What stands before an answer.
    pub open: &'a str,
    /// What stands behind an answer; empty where the line ends it.
    pub close: &'a str,
    /// All answers, one after the other, each as it stands.
    pub blocks: Vec<&'a str>,
    /// Whether the last of several answers is meant, not the first.
    pub last: bool,
}

/// What an answer is, of a text in which one is looked for.
pub type Find<'s> = &'s dyn Fn(&Marked<'_>) -> Option<String>;

/// What a text without an answer gives.
pub type Otherwise<'s> = &'s dyn Fn(&str) -> Option<String>;

/// What a text gives, given the words that a step is about.
pub type Change<'s> = &'s dyn Fn(&str, &[String]) -> String;

/// Another way to read texts. A step that is none is done as the reference does it.
pub enum Reader<'s> {
    /// An answer is looked for.
    Answer {
        /// How it is found.
        find: Option<Find<'s>>,
        /// What a text without one gives.
        otherwise: Option<Otherwise<'s>>,
    },
    /// What stays of a text is kept.
    Remains {
        /// How special tokens go.
        clean: Option<Change<'s>>,
        /// What stands outside the opening and the closing tag of reasoning.
        outside: Option<Change<'s>>,
        /// What becomes of the text around the markers that are to stay.
        kept: Option<Change<'s>>,
    },
    /// The form is scored: which share of the full score a text gets, given the marks that it
    /// should have, in their order.
    Form(&'s dyn Fn(&str, &[String]) -> f64),
}
