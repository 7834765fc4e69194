//! The reference implementation of `answer-extractor`, as a trainer would write it.

use shakedown_core::contract::reading::{Find, Marked, Otherwise};

use super::{Format, Missing, Options, Which};

/// The answer of one completion.
pub(super) fn answer(text: &str, options: &Options) -> Option<String> {
    finished(found(text, options), text, options)
}

/// The same of somebody who reads otherwise.
pub(super) fn reread(
    text: &str,
    options: &Options,
    find: Option<Find<'_>>,
    otherwise: Option<Otherwise<'_>>,
) -> Option<String> {
    let [open, close] = options.marks();
    let (open, last) = (open.trim(), options.pick == Which::Last);
    let marked = || Marked { text, open, close: &close, blocks: all(text, options), last };
    let found = match find {
        Some(find) => find(&marked()),
        None => found(text, options).map(str::to_owned),
    };
    match (&found, otherwise) {
        (None, Some(otherwise)) => otherwise(text),
        _ => finished(found.as_deref(), text, options),
    }
}

/// All answers, one after the other.
fn all<'a>(text: &'a str, options: &Options) -> Vec<&'a str> {
    match options.format {
        Format::XmlTag => blocks(text, options),
        Format::Boxed => {
            text.match_indices("\\boxed{").filter_map(|(at, _)| braced(&text[at..])).collect()
        }
        Format::Hash => text.split("####").skip(1).map(line).collect(),
    }
}

/// The answer as it stands in a text.
fn found<'a>(text: &'a str, options: &Options) -> Option<&'a str> {
    match (options.format, options.pick) {
        (Format::XmlTag, pick) => tagged(text, options, pick),
        (Format::Boxed, Which::Last) => text.rfind("\\boxed{").and_then(|at| braced(&text[at..])),
        (Format::Boxed, Which::First) => text.find("\\boxed{").and_then(|at| braced(&text[at..])),
        (Format::Hash, Which::Last) => text.rsplit_once("####").map(|(_, rest)| line(rest)),
        (Format::Hash, Which::First) => text.split_once("####").map(|(_, rest)| line(rest)),
    }
}

/// What is given for what was found.
pub(super) fn finished(found: Option<&str>, text: &str, options: &Options) -> Option<String> {
    match (found, options.missing) {
        (Some(answer), _) if options.trim => Some(answer.trim().to_owned()),
        (Some(answer), _) => Some(answer.to_owned()),
        (None, Missing::Null) => None,
        (None, Missing::Empty) => Some(String::new()),
        (None, Missing::Whole) => Some(text.to_owned()),
    }
}

/// What stands between each opening tag and the next closing tag.
pub(super) fn blocks<'a>(text: &'a str, options: &Options) -> Vec<&'a str> {
    let [open, close] = options.marks();
    let (mut blocks, mut rest) = (Vec::new(), text);
    while let Some((_, inner)) = rest.split_once(open.as_str())
        && let Some((block, after)) = inner.split_once(close.as_str())
    {
        blocks.push(block);
        rest = after;
    }
    blocks
}

fn tagged<'a>(text: &'a str, options: &Options, pick: Which) -> Option<&'a str> {
    let blocks = blocks(text, options);
    match pick {
        Which::Last => blocks.last().copied(),
        Which::First => blocks.first().copied(),
    }
}

/// What stands in the first braces of a text, if they are closed.
pub(super) fn braced(text: &str) -> Option<&str> {
    let open = text.find('{')?;
    let mut depth = 0;
    for (at, c) in text[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[open + 1..open + at]);
        }
    }
    None
}

/// The first line of a text, without a line end.
fn line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}
