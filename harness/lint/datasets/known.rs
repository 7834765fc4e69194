//! What is known while rows are taken.

/// Counts the tokens of a text.
pub type CountTokens<'a> = &'a dyn Fn(&str) -> usize;

/// What is known while rows are taken.
pub(super) struct Known<'a> {
    pub(super) limit: Option<u64>,
    pub(super) count_tokens: Option<CountTokens<'a>>,
    pub(super) shows_text: bool,
}
