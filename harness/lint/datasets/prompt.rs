//! A prompt as it is read from its column: one text, or messages.

use serde_json::Value as Json;

use super::columns::{CONTEXTS, Cells, cell};
use super::text::Hash;

/// How a prompt is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Messages,
    /// Neither.
    Other,
}

/// A message. A prompt that is a text is one message of the user.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) role: Option<&'a str>,
    pub(super) texts: Vec<&'a str>,
    /// Whether it holds an image or the like.
    pub(super) has_media: bool,
    /// Whether it says anything at all: a text, an image, a call of a tool.
    pub(super) has_content: bool,
    source: &'a Json,
}

/// A prompt.
#[derive(Debug)]
pub(super) struct Prompt<'a> {
    pub(super) shape: Shape,
    pub(super) messages: Vec<Message<'a>>,
}

impl<'a> Prompt<'a> {
    pub(super) fn new(value: &'a Json) -> Prompt<'a> {
        match value {
            Json::String(text) => Prompt {
                shape: Shape::Text,
                messages: vec![Message {
                    role: Some("user"),
                    texts: vec![text],
                    has_media: false,
                    has_content: true,
                    source: value,
                }],
            },
            Json::Array(messages) if messages.iter().all(Json::is_object) => Prompt {
                shape: Shape::Messages,
                messages: messages.iter().map(Message::new).collect(),
            },
            _ => Prompt { shape: Shape::Other, messages: Vec::new() },
        }
    }

    /// Its texts, those of the assistant left out.
    pub(super) fn asked(&self) -> String {
        let asked = self.messages.iter().filter(|message| message.role != Some("assistant"));
        let texts: Vec<&str> = asked.flat_map(|message| message.texts.iter().copied()).collect();
        texts.join("\n")
    }

    /// Whether nothing in it says anything.
    pub(super) fn is_blank(&self) -> bool {
        self.shape != Shape::Other && self.messages.iter().all(Message::is_blank)
    }

    /// Which prompt it is, with all that the model sees besides.
    pub(super) fn identity(&self, row: &Cells) -> Hash {
        let mut hash = self.messages.iter().fold(Hash::EMPTY, |hash, message| message.hash(hash));
        for name in CONTEXTS {
            if let Some(context) = cell(row, name) {
                hash = hash.bytes(name.as_bytes()).bytes(context.to_string().as_bytes());
            }
        }
        hash
    }
}

impl<'a> Message<'a> {
    fn new(message: &'a Json) -> Message<'a> {
        let get = |name| message.get(name).filter(|value: &&Json| !value.is_null());
        let (mut texts, mut has_media) = (Vec::new(), false);
        match get("content") {
            Some(Json::String(text)) => texts.push(text.as_str()),
            Some(Json::Array(parts)) => {
                for part in parts {
                    let text = part.as_str().or_else(|| part.get("text")?.as_str());
                    texts.extend(text);
                    has_media |= text.is_none();
                }
            }
            _ => {}
        }
        let is_written = matches!(get("content"), Some(Json::String(_) | Json::Array(_)));
        let calls = ["tool_calls", "function_call", "reasoning_content"];
        let is_call = calls.iter().any(|name| get(name).is_some());
        Message {
            role: get("role").and_then(Json::as_str),
            texts,
            has_media,
            has_content: is_written || is_call,
            source: message,
        }
    }

    /// Whether it is written as ShareGPT writes messages.
    pub(super) fn has_from_and_value(&self) -> bool {
        ["from", "value"].iter().all(|name| self.source.get(name).is_some())
    }

    pub(super) fn is_blank(&self) -> bool {
        !self.has_media && self.texts.iter().all(|text| text.trim().is_empty())
    }

    pub(super) fn hash(&self, hash: Hash) -> Hash {
        // A text and a message of the user that says it are one prompt.
        let role = self.role.filter(|role| *role != "user").unwrap_or_default();
        let hash =
            self.texts.iter().fold(hash.bytes(role.as_bytes()), |hash, text| hash.text(text));
        let rest = self.has_media || self.texts.is_empty();
        if rest { hash.bytes(self.source.to_string().as_bytes()) } else { hash }
    }
}
