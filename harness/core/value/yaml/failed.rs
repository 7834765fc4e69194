//! Why a part of a document cannot be read, and the way to it.

use std::fmt::{self, Display};

use super::events::Place;
use super::tree::Node;

/// Why a part cannot be read.
#[derive(Debug)]
pub(super) enum Failed {
    /// From there on the text is not YAML.
    Cut,
    /// Aliases of aliases, whose number multiplies: no one place is to blame.
    Aliases,
    /// It is not what was expected; the place is the innermost one.
    Wrong { message: String, place: Option<Place>, trail: String },
}

impl Failed {
    /// The same, about a node if it is not about one inside.
    pub(super) fn located(self, node: &Node, at: Trail<'_>) -> Failed {
        match self {
            Failed::Wrong { message, place: None, .. } => {
                Failed::Wrong { message, place: Some(node.place), trail: at.to_string() }
            }
            failed => failed,
        }
    }
}

impl serde::de::Error for Failed {
    fn custom<T: Display>(message: T) -> Failed {
        Failed::Wrong { message: message.to_string(), place: None, trail: String::new() }
    }
}

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failed::Cut => "the text is cut",
            Failed::Aliases => "the aliases (`*name`) unfold into too much",
            Failed::Wrong { message, .. } => message,
        })
    }
}

impl std::error::Error for Failed {}

/// The way from where reading began to a node, for messages.
#[derive(Clone, Copy)]
pub(super) enum Trail<'p> {
    Root,
    Key(&'p Trail<'p>, &'p str),
    /// The value of a key that is no text.
    Unknown(&'p Trail<'p>),
    Item(&'p Trail<'p>, usize),
}

impl Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parent, name) = match self {
            Trail::Root => return Ok(()),
            Trail::Item(parent, index) => return write!(f, "{parent}[{index}]"),
            Trail::Key(parent, key) => (parent, *key),
            Trail::Unknown(parent) => (parent, "?"),
        };
        match parent {
            Trail::Root => f.write_str(name),
            parent => write!(f, "{parent}.{name}"),
        }
    }
}
