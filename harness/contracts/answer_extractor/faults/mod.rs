//! Known wrong behaviours of `answer-extractor`: real bugs, and conventions mistaken for others.

mod formats;

use super::reference::{self, blocks, finished};
use super::{
    AnswerExtractor, AnswerExtractorCase, AnswerExtractorOutput, Format, Missing, Options, Which,
};
use shakedown_core::generate::completions::Markers;

type Fault = shakedown_core::contract::fault::Fault<AnswerExtractor>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes =
        [which_answer(), search(), changed(), missing(), formats::boxes(), formats::hashes()];
    themes.into_iter().flatten().collect()
}

/// Another answer than the one that is asked for.
fn which_answer() -> Vec<Fault> {
    vec![
        Fault::new("first-answer-taken", "the first answer is taken, where the last is asked for")
            .seen("TinyZero 5f94a68; verifiers #196 (74867bf)")
            .as_if(&[|options| Options { pick: Which::First, ..options }]),
        Fault::new("last-answer-taken", "the last answer is taken, where the first is asked for")
            .seen("an option without effect")
            .under("{pick: first}")
            .as_if(&[|options| Options { pick: Which::Last, ..options }]),
        Fault::new(
            "two-tags-required",
            "an answer counts only when there is another one before it",
        )
        .seen("Search-R1: the prompt is searched too, and holds an example")
        .gives(&[|case, options, _| {
            only_if(case, options, |text| text.matches(options.marks()[0].trim()).count() > 1)
        }]),
        Fault::new(
            "greedy-to-the-last-tag",
            "the answer goes on to the last closing tag, over other answers",
        )
        .seen("plausible: `.*` for `.*?`")
        .gives(&[|case, options, _| {
            tagged(case, options, |text, [open, close]| {
                text.split_once(open)?.1.rsplit_once(close).map(|(answer, _)| answer)
            })
        }]),
        Fault::new(
            "previous-answer-kept",
            "a text without an answer gives that of the row before it",
        )
        .seen("plausible: a variable that the loop does not reset")
        .gives(&[|case, options, _| {
            let null = Options { missing: Missing::Null, ..options.clone() };
            let mut last = None;
            each(case, |text| {
                last = reference::answer(text, &null).or(last.take());
                last.clone().or_else(|| none(text, options))
            })
        }]),
        Fault::new(
            "tag-option-without-effect",
            "`<answer>` is searched for, whatever tag is declared",
        )
        .seen("an option without effect")
        .under("{tag: final}")
        .as_if(&[|options| Options { tag: "answer".to_owned(), ..options }]),
    ]
}

/// Not all of the text is searched, or not as text.
fn search() -> Vec<Fault> {
    vec![
        Fault::new(
            "xml-parser-for-prose",
            "the completion is parsed as XML, which fails at a `<` or `&` in the prose",
        )
        .seen("torchtune #2604 (7d92c10e4), #2425, #2601")
        .gives(&[
            |case, options, _| each(case, |text| parsed(text, options, Which::Last)),
            |case, options, _| each(case, |text| parsed(text, options, Which::First)),
        ]),
        Fault::new(
            "only-the-tail-is-searched",
            "only the last characters of a completion are searched",
        )
        .seen("verl #2568 (152c59930), #7274, #7440: the last 300 characters")
        .gives(&[
            |case, options, _| each(case, |text| tail(text, options, 300)),
            |case, options, _| each(case, |text| tail(text, options, 100)),
        ]),
        Fault::new(
            "last-line-before-the-marker",
            "the last line is taken first, and the answer searched for in it",
        )
        .seen("TinyZero 1c17832")
        .gives(&[|case, options, _| {
            each(case, |text| {
                let line = text.rsplit('\n').next().unwrap_or("");
                of_part(line, text, options)
            })
        }]),
        Fault::new("dot-stops-at-newlines", "an answer over several lines is none")
            .seen("open-r1 #237: a regular expression without DOTALL")
            .gives(&[|case, options, _| {
                only_if(case, options, |text| {
                    blocks(text, options).last().is_none_or(|block| !block.contains('\n'))
                })
            }]),
        Fault::new("only-at-the-start", "text before the answer hides it")
            .seen("plausible: `re.match` for `re.search`")
            .gives(&[|case, options, _| {
                only_if(case, options, |text| text.starts_with(options.marks()[0].as_str()))
            }]),
        Fault::new("only-at-the-end", "anything after the answer hides it, white space too")
            .seen("plausible: a regular expression that ends in `$`")
            .gives(&[|case, options, _| {
                only_if(case, options, |text| text.ends_with(options.marks()[1].as_str()))
            }]),
        Fault::new("tags-on-lines-of-their-own", "a tag counts only with a line end beside it")
            .seen("open-r1 #237: the strict format of the tutorial, `<answer>\\n(.*?)\\n</answer>`")
            .gives(&[|case, options, _| {
                each(case, |text| {
                    let found = blocks(text, options).pop();
                    let found = found.and_then(|a| a.strip_prefix('\n')?.strip_suffix('\n'));
                    finished(found, text, options)
                })
            }]),
    ]
}

/// The right answer, changed.
fn changed() -> Vec<Fault> {
    vec![
        Fault::new("sign-dropped-from-integers", "an integer loses its sign")
            .seen("open-instruct #1530 (d97976175): the sign binds to the branch of decimals")
            .gives(&[|case, options, _| {
                answers(case, options, |answer| {
                    let digits = answer.trim_start_matches(['-', '+']);
                    let integer = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
                    if integer { digits.to_owned() } else { answer.to_owned() }
                })
            }]),
        Fault::new("separators-dropped", "commas are taken out of the answer")
            .seen("verl gsm8k: `.replace(\",\", \"\")`, which is the verifier's business")
            .gives(&[|case, options, _| answers(case, options, |answer| answer.replace(',', ""))]),
        Fault::new(
            "parsed-object-for-its-text",
            "the printed form of an object is given, not the answer in it",
        )
        .seen("verifiers #196 (74867bf); torchtune extract_tags: a list of one element")
        .gives(&[
            |case, options, _| answers(case, options, |answer| format!("['{answer}']")),
            |case, options, _| answers(case, options, |answer| format!("answer='{answer}'")),
        ]),
        Fault::new("marks-in-the-answer", "the answer comes with its marks")
            .seen("plausible: `group(0)` for `group(1)`")
            .gives(&[|case, options, _| answers(case, options, |answer| options.rendered(answer))]),
        Fault::new(
            "full-stop-in-the-answer",
            "a full stop behind the marks becomes part of the answer",
        )
        .seen("verl: `[0-9.,]+` takes the full stop of the sentence")
        .gives(&[|case, options, _| {
            each(case, |text| {
                let answer = reference::answer(text, options)?;
                let close = options.marks()[1].clone();
                let found = !close.is_empty() && !blocks(text, options).is_empty();
                let stops = found && text.contains(&format!("{close}."));
                Some(if stops { answer + "." } else { answer })
            })
        }]),
        Fault::new("white-space-kept", "white space around the answer stays")
            .seen("an option without effect")
            .as_if(&[|options| Options { trim: false, ..options }]),
        Fault::new(
            "white-space-removed",
            "white space around the answer goes, where it is to stay",
        )
        .seen("an option without effect")
        .under("{trim: false}")
        .as_if(&[|options| Options { trim: true, ..options }]),
        Fault::new(
            "white-space-collapsed",
            "every run of white space in the answer becomes one space",
        )
        .seen("plausible: `\" \".join(answer.split())`")
        .gives(&[|case, options, _| {
            answers(case, options, |answer| answer.split_whitespace().collect::<Vec<_>>().join(" "))
        }]),
        Fault::new("first-line-of-the-answer", "only the first line of the answer is given")
            .seen("plausible: `splitlines()[0]`")
            .gives(&[|case, options, _| {
                answers(case, options, |a| a.lines().next().unwrap_or("").to_owned())
            }]),
        Fault::new("letters-lowered", "the answer is in lower case")
            .seen("plausible: normalised before it is compared, and the gold answer is not")
            .gives(&[|case, options, _| answers(case, options, str::to_lowercase)]),
        Fault::new("entities-unescaped", "`&lt;` in the answer becomes `<`")
            .seen("plausible: a parser of HTML for text")
            .gives(&[|case, options, _| {
                answers(case, options, |answer| {
                    answer.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
                })
            }]),
        Fault::new("only-ascii", "characters beyond ASCII are lost")
            .seen("plausible: `encode(\"ascii\", \"ignore\")`")
            .gives(&[|case, options, _| {
                answers(case, options, |a| a.chars().filter(char::is_ascii).collect())
            }]),
    ]
}

/// Texts without an answer.
fn missing() -> Vec<Fault> {
    vec![
        Fault::new(
            "unclosed-answer-taken",
            "an answer that is never closed goes to the end of the text",
        )
        .seen("plausible: `split(\"<answer>\")[1]`; a completion cut at the length limit")
        .gives(&[|case, options, _| {
            each(case, |text| {
                let marks = options.marks();
                let [open, close] = marks.each_ref().map(String::as_str);
                let rest = text.rsplit_once(open).map(|(_, rest)| rest);
                let answer = rest.map(|rest| rest.split(close).next().unwrap_or(""));
                finished(answer, text, options)
            })
        }]),
        Fault::new("whole-text-without-a-tag", "a text without tags is the answer")
            .seen("the GRPO tutorial: `split(\"<answer>\")[-1].split(\"</answer>\")[0]`")
            .gives(&[|case, options, _| {
                each(case, |text| {
                    let marks = options.marks();
                    let [open, close] = marks.each_ref().map(String::as_str);
                    let rest = text.rsplit(open).next().unwrap_or("");
                    finished(rest.split(close).next(), text, options)
                })
            }]),
        Fault::new("empty-for-null", "a text without an answer gives the empty text for null")
            .seen("torchtune extract_tags, where null is declared")
            .as_if(&[|options| Options { missing: Missing::Empty, ..options }]),
        Fault::new("null-for-empty", "a text without an answer gives null for the empty text")
            .seen("verl's convention, where verifiers' strict one is declared")
            .under("{missing: empty}")
            .as_if(&[|options| Options { missing: Missing::Null, ..options }]),
        Fault::new(
            "nothing-for-the-whole",
            "a text without an answer gives the empty text for the whole",
        )
        .seen("verifiers extract_boxed_answer, strict where lenient is declared")
        .under("{missing: whole}")
        .as_if(&[|options| Options { missing: Missing::Empty, ..options }]),
        Fault::new("the-word-none", "a text without an answer gives the word None")
            .seen("plausible: `str(answer)`; a gold answer `None` would be right")
            .gives(&[|case, options, _| {
                let null = Options { missing: Missing::Null, ..options.clone() };
                each(case, |text| reference::answer(text, &null).or(Some("None".to_owned())))
            }]),
        Fault::new("empty-answer-is-missing", "an answer that is empty counts as none")
            .seen("plausible: `if answer:`, or `.+?` for `.*?`")
            .gives(&[|case, options, _| {
                each(case, |text| {
                    let answer = reference::answer(text, options);
                    answer.filter(|answer| !answer.is_empty()).or_else(|| none(text, options))
                })
            }]),
    ]
}

/// What each text gives.
fn each(
    case: &AnswerExtractorCase,
    mut answer: impl FnMut(&str) -> Option<String>,
) -> AnswerExtractorOutput {
    case.texts.iter().map(|text| answer(text)).collect::<Vec<_>>().into()
}

/// What a text without an answer gives.
fn none(text: &str, options: &Options) -> Option<String> {
    finished(None, text, options)
}

/// The right answer where a text may have one, and none elsewhere.
fn only_if(
    case: &AnswerExtractorCase,
    options: &Options,
    may: impl Fn(&str) -> bool,
) -> AnswerExtractorOutput {
    each(
        case,
        |text| if may(text) { reference::answer(text, options) } else { none(text, options) },
    )
}

/// The answer in a text that must be XML, apart from the tags that are meant.
fn parsed(text: &str, options: &Options, pick: Which) -> Option<String> {
    let Markers { reasoning, answer } = options.markers();
    let tags = reasoning.iter().chain(&answer);
    let prose = tags.fold(text.to_owned(), |text, tag| text.replace(tag.as_str(), ""));
    if prose.contains(['<', '&']) {
        return none(text, options);
    }
    reference::answer(text, &Options { pick, ..options.clone() })
}

/// The answer in a part of a text.
fn of_part(part: &str, text: &str, options: &Options) -> Option<String> {
    let null = Options { missing: Missing::Null, ..options.clone() };
    reference::answer(part, &null).or_else(|| none(text, options))
}

/// The answer in the last characters of a text.
fn tail(text: &str, options: &Options, characters: usize) -> Option<String> {
    let skipped = text.chars().count().saturating_sub(characters);
    let start = text.char_indices().nth(skipped).map_or(text.len(), |(at, _)| at);
    of_part(&text[start..], text, options)
}

/// The right answers, each changed where there is one.
fn answers(
    case: &AnswerExtractorCase,
    options: &Options,
    change: impl Fn(&str) -> String,
) -> AnswerExtractorOutput {
    let null = Options { missing: Missing::Null, ..options.clone() };
    each(case, |text| {
        let found = reference::answer(text, &null);
        found.map(|answer| change(&answer)).or_else(|| none(text, options))
    })
}

/// Answers found by their tags; the right ones in the other formats.
fn tagged(
    case: &AnswerExtractorCase,
    options: &Options,
    find: impl for<'a> Fn(&'a str, [&str; 2]) -> Option<&'a str>,
) -> AnswerExtractorOutput {
    let marks = options.marks();
    each(case, |text| match options.format {
        Format::XmlTag => finished(find(text, marks.each_ref().map(String::as_str)), text, options),
        _ => reference::answer(text, options),
    })
}
