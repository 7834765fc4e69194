//! A word of a command, with marks for what could not be read.

use crate::report::Location;
use crate::settings::Origin;

/// Stands in a word for what could not be read.
pub(super) const UNREAD: char = '\u{f8ff}';

/// Stands in a word for what could not be read, and may be any number of words.
pub(super) const OPEN: char = '\u{f8fd}';

/// A word of a command, its expansions made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) at: Location,
}

impl Word {
    /// Whether all of it was read.
    pub(super) fn is_read(&self) -> bool {
        !self.text.contains([UNREAD, OPEN])
    }

    /// Whether it may be any number of words.
    pub(super) fn is_open(&self) -> bool {
        !self.text.is_empty() && self.text.chars().all(|c| c == OPEN)
    }

    pub(super) fn origin(&self) -> Origin {
        Origin::Line(self.at.clone())
    }
}

/// Why defaults are not known after a word that may be many.
pub(super) fn unread(word: &Word) -> String {
    format!("line {} of {} has words that cannot be read", word.at.line, word.at.file)
}
