//! The reference implementation of `completion-decoder`, as a trainer would write it.

use shakedown_core::contract::reading::Reader;

use super::{Options, Think};

/// What the reward function sees of one completion.
pub(super) fn text(completion: &str, options: &Options) -> String {
    let text = thought(&clean(completion, &options.artefacts), options);
    trimmed(text, options)
}

/// The same of somebody who does a step otherwise.
pub(super) fn reread(completion: &str, options: &Options, reader: &Reader<'_>) -> Option<String> {
    let Reader::Remains { clean: cleaned, outside, kept } = reader else { return None };
    let text = match cleaned {
        Some(cleaned) => cleaned(completion, &options.artefacts),
        None => clean(completion, &options.artefacts),
    };
    let text = match outside {
        Some(_) if options.think == Think::Keep => return None,
        Some(outside) => outside(&text, &options.think_tags),
        None => thought(&text, options),
    };
    let text = match kept {
        Some(_) if options.keep.is_empty() => return None,
        Some(kept) => kept(&text, &options.keep),
        None => text,
    };
    Some(trimmed(text, options))
}

/// The text without artefacts, also without those that appear when others go.
pub(super) fn clean(completion: &str, artefacts: &[String]) -> String {
    let mut text = completion.to_owned();
    while let Some(artefact) = artefacts.iter().find(|artefact| text.contains(&***artefact)) {
        text = text.replace(&**artefact, "");
    }
    text
}

/// The text without its reasoning, as the option says.
pub(super) fn thought(text: &str, options: &Options) -> String {
    let [open, close] = &options.think_tags;
    match options.think {
        Think::Keep => text.to_owned(),
        Think::StripClosed => closed_blocks_removed(text, open, close),
        Think::LastSegment => text.rsplit_once(&**close).map_or(text, |(_, last)| last).to_owned(),
        Think::StripAlways => text.rsplit_once(&**close).map_or("", |(_, last)| last).to_owned(),
    }
}

fn closed_blocks_removed(text: &str, open: &str, close: &str) -> String {
    let mut rest = text;
    if let Some((before, after)) = text.split_once(close)
        && !before.contains(open)
    {
        rest = after; // the block began in the prompt
    }
    let mut kept = String::new();
    while let Some((before, block)) = rest.split_once(open) {
        kept.push_str(before);
        rest = block.split_once(close).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

/// The text without outer white space, where it may go.
pub(super) fn trimmed(text: String, options: &Options) -> String {
    if options.trim { text.trim().to_owned() } else { text }
}
