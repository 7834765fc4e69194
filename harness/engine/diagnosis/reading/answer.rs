//! Answers that are looked for otherwise: where one stands, which is taken, which counts, and what
//! a text without one gives.

use crate::diagnosis::text::Text;
use shakedown_core::contract::reading::Marked;
use shakedown_core::value::text::quoted;

/// Where an answer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    FirstOpening,
    LastOpening,
    FirstOpeningOrStart,
    LastOpeningOrStart,
    Start,
    FirstClosing,
    LastClosing,
}

/// Where an answer ends, behind its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    NextClosing,
    LastClosing,
    LastClosingOfTheLine,
    NextClosingOrText,
    AnyClosingTag,
    NextOpening,
    Line,
    Text,
}

/// Which of several answers is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    First,
    Last,
    Second,
    LastButOne,
    Longest,
    Shortest,
    Only,
    Commas,
    Lines,
}

/// Which answers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    OneLine,
    NotEmpty,
    WithoutTags,
    Integer,
    Number,
    OneWord,
    WithoutSpaces,
    AtTheStart,
    AtTheEnd,
}

/// What a text without an answer gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// Something made of the text.
    Made(Text),
    /// What stands in its last box.
    Boxed,
    /// What follows the last colon.
    BehindTheColon,
    /// Always the same.
    Always(String),
}

/// What stands between two places of a text.
pub(super) fn between(begin: Begin, end: End, marked: &Marked<'_>) -> Option<String> {
    let Marked { text, open, close, .. } = marked;
    let close = if close.is_empty() { "\n" } else { close };
    let behind = |mark: &str, at: Option<usize>| at.map(|at| at + mark.len());
    let (first, last) = (behind(open, text.find(open)), behind(open, text.rfind(open)));
    let from = match begin {
        Begin::FirstOpening => first?,
        Begin::LastOpening => last?,
        Begin::FirstOpeningOrStart => first.unwrap_or(0),
        // The last one in front of what ends an answer.
        Begin::LastOpeningOrStart => {
            let until = text.rfind(close).unwrap_or(text.len());
            behind(open, text[..until].rfind(open)).unwrap_or(0)
        }
        Begin::Start => 0,
        Begin::FirstClosing => behind(close, text.find(close))?,
        Begin::LastClosing => behind(close, text.rfind(close))?,
    };
    let rest = &text[from..];
    let line = rest.split('\n').next().unwrap_or("");
    let to = match end {
        End::NextClosing => rest.find(close)?,
        End::LastClosing => rest.rfind(close)?,
        End::LastClosingOfTheLine => line.rfind(close)?,
        End::NextClosingOrText => rest.find(close).unwrap_or(rest.len()),
        End::AnyClosingTag => rest.find("</")?,
        End::NextOpening => rest.find(open).unwrap_or(rest.len()),
        End::Line => line.len(),
        End::Text => rest.len(),
    };
    Some(rest[..to].to_owned())
}

impl Begin {
    pub(crate) const ALL: [Begin; 7] = [
        Begin::FirstOpening,
        Begin::LastOpening,
        Begin::FirstOpeningOrStart,
        Begin::LastOpeningOrStart,
        Begin::Start,
        Begin::FirstClosing,
        Begin::LastClosing,
    ];

    pub(super) fn told(self) -> &'static str {
        match self {
            Begin::FirstOpening => "the first opening mark",
            Begin::LastOpening => "the last opening mark",
            Begin::FirstOpeningOrStart => "the first opening mark, or the start of the text,",
            Begin::LastOpeningOrStart => "the last opening mark, or the start of the text,",
            Begin::Start => "the start of the text",
            Begin::FirstClosing => "the first closing mark",
            Begin::LastClosing => "the last closing mark",
        }
    }
}

impl End {
    pub(crate) const ALL: [End; 8] = [
        End::NextClosing,
        End::LastClosing,
        End::LastClosingOfTheLine,
        End::NextClosingOrText,
        End::AnyClosingTag,
        End::NextOpening,
        End::Line,
        End::Text,
    ];

    pub(super) fn told(self) -> &'static str {
        match self {
            End::NextClosing => "the next closing mark",
            End::LastClosing => "the last closing mark of the text",
            End::LastClosingOfTheLine => "the last closing mark of its line",
            End::NextClosingOrText => "the next closing mark, or the end of the text",
            End::AnyClosingTag => "the closing tag of anything",
            End::NextOpening => "the next opening mark, or the end of the text",
            End::Line => "the end of its line",
            End::Text => "the end of the text",
        }
    }
}

impl Pick {
    pub(crate) const ALL: [Pick; 9] = [
        Pick::First,
        Pick::Last,
        Pick::Second,
        Pick::LastButOne,
        Pick::Longest,
        Pick::Shortest,
        Pick::Only,
        Pick::Commas,
        Pick::Lines,
    ];

    pub(super) fn told(self) -> &'static str {
        match self {
            Pick::First => "the first were taken",
            Pick::Last => "the last were taken",
            Pick::Second => "the second were taken",
            Pick::LastButOne => "the last but one were taken",
            Pick::Longest => "the longest were taken",
            Pick::Shortest => "the shortest were taken",
            Pick::Only => "none were taken",
            Pick::Commas => "all were taken, with commas between them",
            Pick::Lines => "all were taken, each on a line of its own",
        }
    }

    pub(super) fn of(self, marked: &Marked<'_>) -> Option<String> {
        let all = &marked.blocks;
        let joined = |by: &str| {
            let trimmed: Vec<&str> = all.iter().map(|block| block.trim()).collect();
            (!all.is_empty()).then(|| trimmed.join(by))
        };
        // Of equal ones the first, as `max` and `min` of Python.
        let length = |block: &&&str| block.chars().count();
        let found = match self {
            Pick::First => all.first(),
            Pick::Last => all.last(),
            Pick::Second => all.get(1).or(all.first()),
            Pick::LastButOne => all.len().checked_sub(2).map_or(all.last(), |at| all.get(at)),
            Pick::Longest => all.iter().rev().max_by_key(length),
            Pick::Shortest => all.iter().min_by_key(length),
            Pick::Only => all.first().filter(|_| all.len() == 1),
            Pick::Commas => return joined(", "),
            Pick::Lines => return joined("\n"),
        };
        found.map(|block| (*block).to_owned())
    }
}

impl Counts {
    pub(crate) const ALL: [Counts; 9] = [
        Counts::OneLine,
        Counts::NotEmpty,
        Counts::WithoutTags,
        Counts::Integer,
        Counts::Number,
        Counts::OneWord,
        Counts::WithoutSpaces,
        Counts::AtTheStart,
        Counts::AtTheEnd,
    ];

    pub(super) fn told(self) -> &'static str {
        match self {
            Counts::OneLine => "has no line end in it",
            Counts::NotEmpty => "is not empty",
            Counts::WithoutTags => "has no `<` in it",
            Counts::Integer => "is an integer, white space around it or not",
            Counts::Number => "is a number, white space around it or not",
            Counts::OneWord => "is one word of letters, digits and underscores",
            Counts::WithoutSpaces => "has no white space in it, not even around it",
            Counts::AtTheStart => "stands at the start of the text, white space before it or not",
            Counts::AtTheEnd => "stands at the end of the text, white space behind it or not",
        }
    }

    pub(super) fn holds(self, block: &str, marked: &Marked<'_>) -> bool {
        let trimmed = block.trim();
        match self {
            Counts::OneLine => !block.contains('\n'),
            Counts::NotEmpty => !block.is_empty(),
            Counts::WithoutTags => !block.contains('<'),
            Counts::Integer => {
                let digits = trimmed.strip_prefix('-').unwrap_or(trimmed);
                !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
            }
            Counts::Number => trimmed.parse::<f64>().is_ok_and(f64::is_finite),
            Counts::OneWord => {
                !block.is_empty() && block.chars().all(|c| c.is_alphanumeric() || c == '_')
            }
            Counts::WithoutSpaces => !block.contains(char::is_whitespace),
            Counts::AtTheStart => marked.text.trim_start().starts_with(marked.open),
            Counts::AtTheEnd => marked.text.trim_end().ends_with(marked.close),
        }
    }
}

impl Otherwise {
    pub(super) fn told(&self) -> String {
        match self {
            Otherwise::Made(text) => match text {
                Text::Trimmed => "all of it, without the white space around it".to_owned(),
                text => text.told(),
            },
            Otherwise::Boxed => "what stands in its last `\\boxed{…}`".to_owned(),
            Otherwise::BehindTheColon => "what follows its last colon".to_owned(),
            Otherwise::Always(text) => quoted(text),
        }
    }

    pub(super) fn of(&self, text: &str) -> Option<String> {
        match self {
            Otherwise::Made(Text::LastLine) => Text::LastLine.of(text.trim()),
            Otherwise::Made(Text::LastWord) => text.split_whitespace().last().map(str::to_owned),
            Otherwise::Made(Text::FirstWord) => text.split_whitespace().next().map(str::to_owned),
            Otherwise::Made(made) => made.of(text),
            Otherwise::Boxed => {
                let (_, rest) = text.rsplit_once("\\boxed{")?;
                let mut depth = 1;
                let end = rest.char_indices().find(|(_, c)| {
                    depth += i32::from(*c == '{') - i32::from(*c == '}');
                    depth == 0
                });
                end.map(|(at, _)| rest[..at].trim().to_owned())
            }
            Otherwise::BehindTheColon => {
                text.rsplit_once(':').map(|(_, rest)| rest.trim().to_owned())
            }
            Otherwise::Always(text) => Some(text.clone()),
        }
    }
}
