//! Cases of `completion-decoder`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};

use super::{CompletionDecoder, CompletionDecoderCase, Options, oracle};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::generate::completions::{
    AnswerFamily, Markers, NASTY, Shape, completion, inserted,
};
use shakedown_core::generate::draw::{chance, one};

/// At most this many completions.
const ROWS: usize = 4;

fn case(completions: Vec<String>) -> CompletionDecoderCase {
    CompletionDecoderCase { completions: completions.into() }
}

/// The markers of a completion under these options: the first two that are kept around the answer.
fn markers(options: &Options) -> Markers {
    let answer = match &options.keep[..] {
        [open, close, ..] => [open.as_str(), close],
        _ => ["<answer>", "</answer>"],
    };
    Markers::new(options.think_tags.each_ref().map(|tag| &**tag), answer)
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options) -> Result<CompletionDecoderCase> {
    let markers = markers(options);
    let mut completions = Vec::new();
    for _ in 0..=u.choose_index(ROWS)? {
        let family = one(u, AnswerFamily::ALL)?;
        let answer = family.draw(u)?;
        let mut text = completion(u, &markers, &answer)?;
        if let Some(artefact) =
            options.artefacts.get(u.choose_index(options.artefacts.len().max(1))?)
        {
            text = with_artefacts(u, text, artefact, options)?;
        }
        completions.push(text);
    }
    Ok(case(completions))
}

/// The text with runs of padding, several ends, or artefacts inside.
fn with_artefacts(
    u: &mut Unstructured<'_>,
    text: String,
    artefact: &str,
    options: &Options,
) -> Result<String> {
    Ok(match u.choose_index(7)? {
        0 => text,
        1 => format!("{text}{artefact}"),
        2 => format!("{text}{}", artefact.repeat(1 + u.choose_index(5)?)),
        3 => format!("{}{text}", artefact.repeat(1 + u.choose_index(5)?)),
        4 => format!("{text}{}", options.artefacts.concat().repeat(2)),
        5 => inserted(u, &text, artefact)?,
        // One inside another: it appears when the inner one goes.
        _ => {
            let (start, end) = artefact.split_at(artefact.chars().next().map_or(0, char::len_utf8));
            let place = if chance(u, 128)? { "" } else { " " };
            format!("{text}{place}{start}{artefact}{end}")
        }
    })
}

pub(super) fn corners(options: &Options) -> Vec<CompletionDecoderCase> {
    let mut texts: Vec<String> =
        ["", "a", " a ", "a\nb", "a  b", "1", "A", "a b", "a,b", "a,", ",a", "a\n", "\na"]
            .map(str::to_owned)
            .to_vec();
    let markers = markers(options);
    texts.extend(Shape::ALL.iter().map(|shape| shape.render(&markers, "r", "1")));
    texts.extend(Shape::ALL.iter().map(|shape| shape.render(&markers, "r\nr", "a b")));
    texts.extend(NASTY.iter().map(|(_, piece)| (*piece).to_owned()));
    for artefact in &options.artefacts {
        texts.extend([artefact.clone(), format!("a{artefact}"), format!("{artefact}a")]);
        texts.extend([format!("a{artefact}b"), format!("a{artefact}{artefact}")]);
        let (start, end) = artefact.split_at(artefact.chars().next().map_or(0, char::len_utf8));
        texts.push(format!("a{start}{artefact}{end}"));
        // Text that is made of the letters of an artefact.
        texts.push(artefact.chars().filter(|c| c.is_alphanumeric()).collect());
        texts.push(format!("a{}", &artefact[..artefact.len() - 1]));
    }
    texts.push(format!("a{}", options.artefacts.concat()));
    texts.extend(["a &lt; b", "a &amp; b"].map(str::to_owned));
    texts.push("a".repeat(3000));
    let mut cases: Vec<CompletionDecoderCase> =
        texts.iter().map(|text| case(vec![text.clone()])).collect();
    cases.push(case(["a", "b"].map(str::to_owned).to_vec()));
    cases.push(case(texts.iter().skip(13).take(4).cloned().collect()));
    cases.sort_by_cached_key(CompletionDecoder::measure);
    cases.dedup();
    cases
}

/// Orders of tags, and shapes of one row with the shortest reasoning and answer, with and without
/// an artefact.
pub(super) fn small(options: &Options) -> Vec<CompletionDecoderCase> {
    let markers = markers(options);
    let mut cases = Vec::new();
    for shape in Shape::ALL {
        for (reasoning, answer) in
            [("", ""), ("", "a"), ("a", ""), ("a", "a"), ("a", "b"), ("\n", "a")]
        {
            let text = shape.render(&markers, reasoning, answer);
            for artefact in options.artefacts.iter().take(1) {
                cases.push(case(vec![format!("{text}{artefact}")]));
            }
            cases.push(case(vec![text]));
        }
    }
    // Every order of a few tags and letters.
    let pieces = [&*options.think_tags[0], &*options.think_tags[1], "a", "\n"];
    let mut texts = vec![String::new()];
    for _ in 0..4 {
        texts =
            texts.iter().flat_map(|text| pieces.map(|piece| format!("{text}{piece}"))).collect();
        cases.extend(texts.iter().map(|text| case(vec![text.clone()])));
    }
    cases
}

pub(super) fn classes() -> Vec<Class<CompletionDecoder>> {
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    fn any(case: &CompletionDecoderCase, test: impl Fn(&str) -> bool) -> bool {
        case.completions.iter().any(|text| test(text))
    }
    let mut classes = vec![
        class(
            "artefact",
            "a special token in a completion",
            |case, options: &Options| {
                any(case, |t| options.artefacts.iter().any(|a| t.contains(&**a)))
            },
            |options: &Options, _| !options.artefacts.is_empty(),
        ),
        class(
            "several-artefacts-at-the-end",
            "two special tokens or more at the end",
            |case, options: &Options| {
                any(case, |text| {
                    let strip = |t: &str| {
                        let mut stripped =
                            options.artefacts.iter().filter_map(|a| t.strip_suffix(&**a));
                        stripped.next().map(str::to_owned)
                    };
                    strip(text).is_some_and(|text| strip(&text).is_some())
                })
            },
            |options, _| !options.artefacts.is_empty(),
        ),
        class(
            "closed-block",
            "reasoning between both of its tags",
            |case, options: &Options| {
                let [open, close] = &options.think_tags;
                any(case, |t| {
                    t.split_once(&**open).is_some_and(|(_, rest)| rest.contains(&**close))
                })
            },
            |_, _| true,
        ),
        class(
            "unclosed-block",
            "an opening tag of reasoning without a closing one",
            |case, options: &Options| {
                let [open, close] = &options.think_tags;
                any(case, |t| t.contains(&**open) && !t.contains(&**close))
            },
            |_, _| true,
        ),
        class(
            "block-opened-in-the-prompt",
            "a closing tag of reasoning without an opening one",
            |case, options: &Options| {
                let [open, close] = &options.think_tags;
                any(case, |t| !t.contains(&**open) && t.contains(&**close))
            },
            |_, _| true,
        ),
        class(
            "no-marker",
            "text with neither tags nor kept markers",
            |case, options: &Options| {
                any(case, |t| {
                    let mut markers = options.keep.iter().chain(&options.think_tags);
                    !t.is_empty() && !markers.any(|marker| t.contains(&**marker))
                })
            },
            |_, _| true,
        ),
        class(
            "left-open",
            "a completion of which the contract expects no certain text",
            |case, options: &Options| any(case, |t| oracle::pieces(t, options).is_none()),
            |options, _| !options.artefacts.is_empty() && options.think != super::Think::Keep,
        ),
        class("empty", "an empty completion", |case, _| any(case, str::is_empty), |_, _| true),
        class(
            "not-ascii",
            "a character beyond ASCII",
            |case, _| any(case, |t| !t.is_ascii()),
            |_, _| true,
        ),
        class(
            "cut-character",
            "U+FFFD, what is left of a character cut in two",
            |case, _| any(case, |t| t.contains('\u{fffd}')),
            |_, _| true,
        ),
    ];
    classes.push(class(
        "several-rows",
        "completions that are not all the same",
        |case, _| case.completions.iter().any(|text| *text != case.completions[0]),
        |_, _| true,
    ));
    classes.push(class(
        "line-ends-of-windows",
        "a carriage return",
        |case, _| any(case, |t| t.contains('\r')),
        |_, _| true,
    ));
    classes
}
