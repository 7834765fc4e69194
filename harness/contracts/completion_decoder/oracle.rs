//! What the definition of `completion-decoder` gives: the pieces of a completion that stay.

use super::{Options, Think};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::tolerance::Wanted;

/// A tag of reasoning and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Open,
    Close,
}

/// What is expected of one completion.
pub(super) fn text(completion: &str, options: &Options) -> Wanted {
    let Some(pieces) = pieces(completion, options) else { return Wanted::Open };
    match options.trim {
        true => Wanted::Pieces(pieces),
        false => Wanted::text(pieces.concat()),
    }
}

/// The pieces that stay, in order; none where the contract leaves them open.
pub(super) fn pieces(completion: &str, options: &Options) -> Option<Vec<String>> {
    let text = without_artefacts(completion, options)?;
    if options.think == Think::Keep {
        return Some(vec![text]);
    }
    let tags = tags(&text, &options.think_tags);
    coverage::event(&["tags", ["none", "one", "two", "three", "more"][tags.len().min(4)]]);
    is_regular(&tags).then(|| match options.think {
        Think::Keep => vec![text.clone()],
        Think::StripClosed => outside_blocks(&text, &tags, &options.think_tags),
        Think::LastSegment | Think::StripAlways => {
            let last = tags.iter().rev().find(|(tag, _)| *tag == Tag::Close);
            let after = last.map(|(_, at)| text[at + options.think_tags[1].len()..].to_owned());
            let otherwise = match options.think {
                Think::LastSegment => text.clone(),
                _ => String::new(),
            };
            vec![after.unwrap_or(otherwise)]
        }
    })
}

/// The completion with artefacts removed one at a time, from the left, until none is left. None
/// where the order of removal matters, or where a marker appears only once an artefact is gone.
fn without_artefacts(completion: &str, options: &Options) -> Option<String> {
    let removed = |last: bool| {
        let mut text = completion.to_owned();
        while let Some((at, length)) = artefact(&text, &options.artefacts, last) {
            text.replace_range(at..at + length, "");
        }
        text
    };
    let text = removed(false);
    if text != removed(true) {
        return None;
    }
    // Markers count whether or not an artefact stands right beside them.
    let markers = options.keep.iter().chain(&options.think_tags);
    let mut same = markers
        .map(|marker| text.matches(&**marker).count() == completion.matches(&**marker).count());
    same.all(|same| same).then_some(text)
}

/// Where the first or the last artefact stands, and how long it is; the longest where several do.
fn artefact(text: &str, artefacts: &[String], last: bool) -> Option<(usize, usize)> {
    let found = artefacts.iter().filter_map(|artefact| {
        let at = if last { text.rfind(&**artefact) } else { text.find(&**artefact) };
        Some((at?, artefact.len()))
    });
    match last {
        true => found.max_by_key(|(at, length)| (*at, *length)),
        false => found.min_by_key(|(at, length)| (*at, usize::MAX - *length)),
    }
}

/// The tags of reasoning in order.
fn tags(text: &str, [open, close]: &[String; 2]) -> Vec<(Tag, usize)> {
    let opening = text.match_indices(&**open).map(|(at, _)| (Tag::Open, at));
    let closing = text.match_indices(&**close).map(|(at, _)| (Tag::Close, at));
    let mut tags: Vec<(Tag, usize)> = opening.chain(closing).collect();
    tags.sort_by_key(|(_, at)| *at);
    tags
}

/// Whether there is one block, which began before the text, or closed blocks follow each other,
/// the last of which may not end. All else has no honest convention.
fn is_regular(tags: &[(Tag, usize)]) -> bool {
    let alternating = tags
        .iter()
        .enumerate()
        .all(|(place, (tag, _))| *tag == if place % 2 == 0 { Tag::Open } else { Tag::Close });
    alternating || matches!(tags, [(Tag::Close, _)])
}

/// What stands outside blocks that follow each other; before a closing tag without an opener stands
/// reasoning.
fn outside_blocks(text: &str, tags: &[(Tag, usize)], [_, close]: &[String; 2]) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut outside_from = Some(0);
    for (tag, at) in tags {
        match tag {
            Tag::Open => pieces.extend(outside_from.take().map(|from| text[from..*at].to_owned())),
            Tag::Close => outside_from = Some(at + close.len()),
        }
    }
    pieces.extend(outside_from.map(|from| text[from..].to_owned()));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(completion: &str, think: Think) -> Option<String> {
        let options = Options { think, ..Options::default() };
        pieces(completion, &options).map(|pieces| pieces.concat())
    }

    #[test]
    fn the_table_of_conventions() {
        use Think::{Keep, LastSegment, StripAlways, StripClosed};
        for (completion, think, expected) in [
            ("<think>a</think>b", Keep, "<think>a</think>b"),
            ("<think>a</think>b", StripClosed, "b"),
            ("<think>a</think>b", StripAlways, "b"),
            ("<think>a</think>b", LastSegment, "b"),
            ("<think>a", Keep, "<think>a"),
            ("<think>a", StripClosed, ""),
            ("<think>a", StripAlways, ""),
            ("<think>a", LastSegment, "<think>a"),
            ("b", Keep, "b"),
            ("b", StripClosed, "b"),
            ("b", StripAlways, ""),
            ("b", LastSegment, "b"),
            ("a</think>b", StripClosed, "b"),
            ("x<think>a</think>y<think>b</think>z", StripClosed, "xyz"),
            ("x<think>a</think>y<think>b</think>z", LastSegment, "z"),
            ("x<think>a</think>y<think>b", StripClosed, "xy"),
        ] {
            assert_eq!(
                shown(completion, think).as_deref(),
                Some(expected),
                "{completion} {think:?}"
            );
        }
    }

    #[test]
    fn what_has_no_convention_is_left_open() {
        for completion in [
            "<think>a<think>b</think>c",
            "<think>a</think>b</think>c",
            "a</think>b<think>c</think>d",
            "<thi<pad>nk>a</think>b",
            "<ans<pad>wer>1</answer>",
        ] {
            assert_eq!(shown(completion, Think::StripClosed), None, "{completion}");
        }
    }

    #[test]
    fn artefacts_go_until_none_is_left() {
        assert_eq!(shown("<pad>a<e<eos>os><eos><pad>", Think::Keep).as_deref(), Some("a"));
        assert_eq!(shown("<p<p<pad>ad>ad>a", Think::Keep).as_deref(), Some("a"));
    }

    #[test]
    fn the_order_of_removal_matters_where_artefacts_overlap() {
        let artefacts = ["ab", "bc"].map(str::to_owned).to_vec();
        let options = Options { artefacts, ..Options::default() };
        // From the left `ab` goes and `c` is left, from the right `bc` goes and `a` is.
        assert_eq!(without_artefacts("abc", &options), None);
        assert_eq!(without_artefacts("abxbc", &options).as_deref(), Some("x"));
    }
}
