//! Known wrong behaviours of `answer-extractor`: real bugs, and conventions mistaken for others.

use super::reference::{self, blocks, braced, finished};
use super::{
    AnswerExtractor, AnswerExtractorCase, AnswerExtractorOutput, Format, Missing, Options, Which,
};
use crate::contract::fault::{Behaviour, Fault, Function, misbehaviours};
use crate::generate::completions::Markers;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault<AnswerExtractor>> {
    let mut faults = which_answer();
    faults.extend(search());
    faults.extend(changed());
    faults.extend(missing());
    faults.extend(boxes_and_hashes());
    faults.extend(misbehaviours());
    faults
}

fn fault(
    id: &'static str,
    summary: &'static str,
    source: &'static str,
    options: &'static str,
    variants: &'static [Function<AnswerExtractor>],
) -> Fault<AnswerExtractor> {
    Fault { id, summary, source, options, behaviour: Behaviour::Gives(variants) }
}

/// Another answer than the one that is asked for.
fn which_answer() -> Vec<Fault<AnswerExtractor>> {
    vec![
        fault(
            "first-answer-taken",
            "the first answer is taken, where the last is asked for",
            "TinyZero 5f94a68; verifiers #196 (74867bf)",
            "{}",
            &[|case, options, _| {
                let first = Options { pick: Which::First, ..options.clone() };
                each(case, |text| reference::answer(text, &first))
            }],
        ),
        fault(
            "last-answer-taken",
            "the last answer is taken, where the first is asked for",
            "an option without effect",
            "{pick: first}",
            &[|case, options, _| {
                let last = Options { pick: Which::Last, ..options.clone() };
                each(case, |text| reference::answer(text, &last))
            }],
        ),
        fault(
            "two-tags-required",
            "an answer counts only when there is another one before it",
            "Search-R1: the prompt is searched too, and holds an example",
            "{}",
            &[|case, options, _| {
                each(case, |text| {
                    let several = text.matches(options.marks()[0].trim()).count() > 1;
                    if several { reference::answer(text, options) } else { none(text, options) }
                })
            }],
        ),
        fault(
            "greedy-to-the-last-tag",
            "the answer goes on to the last closing tag, over other answers",
            "plausible: `.*` for `.*?`",
            "{}",
            &[|case, options, _| {
                tagged(case, options, |text, [open, close]| {
                    text.split_once(open)?.1.rsplit_once(close).map(|(answer, _)| answer)
                })
            }],
        ),
        fault(
            "previous-answer-kept",
            "a text without an answer gives that of the row before it",
            "plausible: a variable that the loop does not reset",
            "{}",
            &[|case, options, _| {
                let null = Options { missing: Missing::Null, ..options.clone() };
                let mut last = None;
                each(case, |text| {
                    last = reference::answer(text, &null).or(last.take());
                    last.clone().or_else(|| none(text, options))
                })
            }],
        ),
        fault(
            "tag-option-without-effect",
            "`<answer>` is searched for, whatever tag is declared",
            "an option without effect",
            "{tag: final}",
            &[|case, options, _| {
                let answer = Options { tag: "answer".to_owned(), ..options.clone() };
                each(case, |text| reference::answer(text, &answer))
            }],
        ),
    ]
}

/// Not all of the text is searched, or not as text.
fn search() -> Vec<Fault<AnswerExtractor>> {
    vec![
        fault(
            "xml-parser-for-prose",
            "the completion is parsed as XML, which fails at a `<` or `&` in the prose",
            "torchtune #2604 (7d92c10e4), #2425, #2601",
            "{}",
            &[
                |case, options, _| each(case, |text| parsed(text, options, Which::Last)),
                |case, options, _| each(case, |text| parsed(text, options, Which::First)),
            ],
        ),
        fault(
            "only-the-tail-is-searched",
            "only the last characters of a completion are searched",
            "verl #2568 (152c59930), #7274, #7440: the last 300 characters",
            "{}",
            &[
                |case, options, _| each(case, |text| tail(text, options, 300)),
                |case, options, _| each(case, |text| tail(text, options, 100)),
            ],
        ),
        fault(
            "last-line-before-the-marker",
            "the last line is taken first, and the answer searched for in it",
            "TinyZero 1c17832",
            "{}",
            &[|case, options, _| {
                each(case, |text| {
                    let line = text.rsplit('\n').next().unwrap_or("");
                    of_part(line, text, options)
                })
            }],
        ),
        fault(
            "dot-stops-at-newlines",
            "an answer over several lines is none",
            "open-r1 #237: a regular expression without DOTALL",
            "{}",
            &[|case, options, _| {
                each(case, |text| match blocks(text, options).last() {
                    Some(block) if block.contains('\n') => none(text, options),
                    _ => reference::answer(text, options),
                })
            }],
        ),
        fault(
            "only-at-the-start",
            "text before the answer hides it",
            "plausible: `re.match` for `re.search`",
            "{}",
            &[|case, options, _| {
                each(case, |text| {
                    let starts = text.starts_with(options.marks()[0].as_str());
                    if starts { reference::answer(text, options) } else { none(text, options) }
                })
            }],
        ),
        fault(
            "only-at-the-end",
            "anything after the answer hides it, white space too",
            "plausible: a regular expression that ends in `$`",
            "{}",
            &[|case, options, _| {
                each(case, |text| {
                    let ends = text.ends_with(options.marks()[1].as_str());
                    if ends { reference::answer(text, options) } else { none(text, options) }
                })
            }],
        ),
        fault(
            "tags-on-lines-of-their-own",
            "a tag counts only with a line end beside it",
            "open-r1 #237: the strict format of the tutorial, `<answer>\\n(.*?)\\n</answer>`",
            "{}",
            &[|case, options, _| {
                each(case, |text| {
                    let found = blocks(text, options).pop();
                    let found = found.and_then(|a| a.strip_prefix('\n')?.strip_suffix('\n'));
                    finished(found, text, options)
                })
            }],
        ),
    ]
}

/// The right answer, changed.
fn changed() -> Vec<Fault<AnswerExtractor>> {
    vec![
        fault(
            "sign-dropped-from-integers",
            "an integer loses its sign",
            "open-instruct #1530 (d97976175): the sign binds to the branch of decimals",
            "{}",
            &[|case, options, _| {
                answers(case, options, |answer| {
                    let digits = answer.trim_start_matches(['-', '+']);
                    let integer = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
                    if integer { digits.to_owned() } else { answer.to_owned() }
                })
            }],
        ),
        fault(
            "separators-dropped",
            "commas are taken out of the answer",
            "verl gsm8k: `.replace(\",\", \"\")`, which is the verifier's business",
            "{}",
            &[|case, options, _| answers(case, options, |answer| answer.replace(',', ""))],
        ),
        fault(
            "parsed-object-for-its-text",
            "the printed form of an object is given, not the answer in it",
            "verifiers #196 (74867bf); torchtune extract_tags: a list of one element",
            "{}",
            &[
                |case, options, _| answers(case, options, |answer| format!("['{answer}']")),
                |case, options, _| answers(case, options, |answer| format!("answer='{answer}'")),
            ],
        ),
        fault(
            "marks-in-the-answer",
            "the answer comes with its marks",
            "plausible: `group(0)` for `group(1)`",
            "{}",
            &[|case, options, _| answers(case, options, |answer| options.rendered(answer))],
        ),
        fault(
            "full-stop-in-the-answer",
            "a full stop behind the marks becomes part of the answer",
            "verl: `[0-9.,]+` takes the full stop of the sentence",
            "{}",
            &[|case, options, _| {
                each(case, |text| {
                    let answer = reference::answer(text, options)?;
                    let close = options.marks()[1].clone();
                    let found = !close.is_empty() && !blocks(text, options).is_empty();
                    let stops = found && text.contains(&format!("{close}."));
                    Some(if stops { answer + "." } else { answer })
                })
            }],
        ),
        fault(
            "white-space-kept",
            "white space around the answer stays",
            "an option without effect",
            "{}",
            &[|case, options, _| {
                let kept = Options { trim: false, ..options.clone() };
                each(case, |text| reference::answer(text, &kept))
            }],
        ),
        fault(
            "white-space-removed",
            "white space around the answer goes, where it is to stay",
            "an option without effect",
            "{trim: false}",
            &[|case, options, _| {
                let trimmed = Options { trim: true, ..options.clone() };
                each(case, |text| reference::answer(text, &trimmed))
            }],
        ),
        fault(
            "white-space-collapsed",
            "every run of white space in the answer becomes one space",
            "plausible: `\" \".join(answer.split())`",
            "{}",
            &[|case, options, _| {
                answers(case, options, |answer| {
                    answer.split_whitespace().collect::<Vec<_>>().join(" ")
                })
            }],
        ),
        fault(
            "first-line-of-the-answer",
            "only the first line of the answer is given",
            "plausible: `splitlines()[0]`",
            "{}",
            &[|case, options, _| {
                answers(case, options, |a| a.lines().next().unwrap_or("").to_owned())
            }],
        ),
        fault(
            "letters-lowered",
            "the answer is in lower case",
            "plausible: normalised before it is compared, and the gold answer is not",
            "{}",
            &[|case, options, _| answers(case, options, str::to_lowercase)],
        ),
        fault(
            "entities-unescaped",
            "`&lt;` in the answer becomes `<`",
            "plausible: a parser of HTML for text",
            "{}",
            &[|case, options, _| {
                answers(case, options, |answer| {
                    answer.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
                })
            }],
        ),
        fault(
            "only-ascii",
            "characters beyond ASCII are lost",
            "plausible: `encode(\"ascii\", \"ignore\")`",
            "{}",
            &[|case, options, _| {
                answers(case, options, |a| a.chars().filter(char::is_ascii).collect())
            }],
        ),
    ]
}

/// Texts without an answer.
fn missing() -> Vec<Fault<AnswerExtractor>> {
    vec![
        fault(
            "unclosed-answer-taken",
            "an answer that is never closed goes to the end of the text",
            "plausible: `split(\"<answer>\")[1]`; a completion cut at the length limit",
            "{}",
            &[|case, options, _| {
                each(case, |text| {
                    let marks = options.marks();
                    let [open, close] = marks.each_ref().map(String::as_str);
                    let rest = text.rsplit_once(open).map(|(_, rest)| rest);
                    let answer = rest.map(|rest| rest.split(close).next().unwrap_or(""));
                    finished(answer, text, options)
                })
            }],
        ),
        fault(
            "whole-text-without-a-tag",
            "a text without tags is the answer",
            "the GRPO tutorial: `split(\"<answer>\")[-1].split(\"</answer>\")[0]`",
            "{}",
            &[|case, options, _| {
                each(case, |text| {
                    let marks = options.marks();
                    let [open, close] = marks.each_ref().map(String::as_str);
                    let rest = text.rsplit(open).next().unwrap_or("");
                    finished(rest.split(close).next(), text, options)
                })
            }],
        ),
        fault(
            "empty-for-null",
            "a text without an answer gives the empty text for null",
            "torchtune extract_tags, where null is declared",
            "{}",
            &[|case, options, _| or_else(case, options, |_| Some(String::new()))],
        ),
        fault(
            "null-for-empty",
            "a text without an answer gives null for the empty text",
            "verl's convention, where verifiers' strict one is declared",
            "{missing: empty}",
            &[|case, options, _| or_else(case, options, |_| None)],
        ),
        fault(
            "nothing-for-the-whole",
            "a text without an answer gives the empty text for the whole",
            "verifiers extract_boxed_answer, strict where lenient is declared",
            "{missing: whole}",
            &[|case, options, _| or_else(case, options, |_| Some(String::new()))],
        ),
        fault(
            "the-word-none",
            "a text without an answer gives the word None",
            "plausible: `str(answer)`; a gold answer `None` would be right",
            "{}",
            &[|case, options, _| or_else(case, options, |_| Some("None".to_owned()))],
        ),
        fault(
            "empty-answer-is-missing",
            "an answer that is empty counts as none",
            "plausible: `if answer:`, or `.+?` for `.*?`",
            "{}",
            &[|case, options, _| {
                each(case, |text| {
                    let answer = reference::answer(text, options);
                    answer.filter(|answer| !answer.is_empty()).or_else(|| none(text, options))
                })
            }],
        ),
    ]
}

/// Mistakes of the other formats.
fn boxes_and_hashes() -> Vec<Fault<AnswerExtractor>> {
    vec![
        fault(
            "first-closing-brace",
            "a box ends at the first closing brace",
            "trl #5026, ai-agent-book #173: `\\\\boxed\\{([^}]*)\\}`",
            "{format: boxed}",
            &[|case, options, _| {
                boxed(case, options, |rest| rest.split_once('}')?.0.strip_prefix('{'))
            }],
        ),
        fault(
            "last-closing-brace",
            "a box ends at the last closing brace of the text",
            "lmms-eval #1512: `oxed{(.*)}`",
            "{format: boxed}",
            &[|case, options, _| {
                boxed(case, options, |rest| rest.rsplit_once('}')?.0.strip_prefix('{'))
            }],
        ),
        fault(
            "one-level-of-braces",
            "a box with braces inside braces is none",
            "plausible: `\\\\boxed\\{((?:[^{}]|\\{[^{}]*\\})*)\\}`",
            "{format: boxed}",
            &[|case, options, _| {
                boxed(case, options, |rest| {
                    let shallow = |answer: &&str| {
                        let mut depth = 0;
                        !answer.chars().any(|c| {
                            depth += i32::from(c == '{') - i32::from(c == '}');
                            depth > 1
                        })
                    };
                    braced(rest).filter(shallow)
                })
            }],
        ),
        fault(
            "no-braces-in-a-box",
            "a box with braces in it is none",
            "plausible: `\\\\boxed\\{([^{}]*)\\}`",
            "{format: boxed}",
            &[|case, options, _| {
                boxed(case, options, |rest| braced(rest).filter(|answer| !answer.contains('{')))
            }],
        ),
        fault(
            "unclosed-box-taken",
            "a box that is never closed goes to the end of the text",
            "plausible: a loop over braces that runs off the end",
            "{format: boxed}",
            &[|case, options, _| {
                boxed(case, options, |rest| braced(rest).or_else(|| rest.strip_prefix('{')))
            }],
        ),
        fault(
            "braces-lost",
            "the braces in a box are lost",
            "plausible: `.strip(\"{}\")` and its relatives",
            "{format: boxed}",
            &[
                |case, options, _| answers(case, options, |a| a.replace(['{', '}'], "")),
                |case, options, _| {
                    answers(case, options, |a| a.trim_matches(['{', '}']).to_owned())
                },
            ],
        ),
        fault(
            "box-needs-dollars",
            "a box counts only between dollars",
            "plausible: `\\$\\\\boxed\\{…\\}\\$`",
            "{format: boxed}",
            &[|case, options, _| {
                each(case, |text| {
                    let within = text.contains("$\\boxed{");
                    if within { reference::answer(text, options) } else { none(text, options) }
                })
            }],
        ),
        fault(
            "numbers-only",
            "only the number behind the hashes is taken: words are none",
            "verl gsm8k: `#### (-?[0-9.,]+)`, where the rest of the line is declared",
            "{format: hash}",
            &[|case, options, _| {
                hashed(case, options, |rest| {
                    let rest = rest.trim_start_matches(' ');
                    let number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
                    let end = rest.find(|c| !number(c)).unwrap_or(rest.len());
                    Some(&rest[..end]).filter(|number| !number.is_empty())
                })
            }],
        ),
        fault(
            "rest-of-the-text",
            "all that follows the hashes is taken, not only their line",
            "plausible: `split(\"####\")[-1]`",
            "{format: hash}",
            &[|case, options, _| hashed(case, options, |rest| rest.get(..))],
        ),
        fault(
            "first-word-of-the-line",
            "only the first word behind the hashes is taken",
            "plausible: `split(\"####\")[-1].split()[0]`",
            "{format: hash}",
            &[|case, options, _| {
                hashed(case, options, |rest| {
                    let line = rest.split('\n').next().unwrap_or("");
                    line.split_whitespace().next()
                })
            }],
        ),
        fault(
            "hashes-at-the-start-of-a-line",
            "hashes after other words on their line do not count",
            "plausible: `^####` with MULTILINE",
            "{format: hash}",
            &[|case, options, _| {
                each(case, |text| {
                    let within = |(at, _): (usize, &str)| at > 0 && !text[..at].ends_with('\n');
                    let hidden = text.match_indices("####").last().is_some_and(within);
                    if hidden { none(text, options) } else { reference::answer(text, options) }
                })
            }],
        ),
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

/// The right answers, and something else where there is none.
fn or_else(
    case: &AnswerExtractorCase,
    options: &Options,
    other: impl Fn(&str) -> Option<String>,
) -> AnswerExtractorOutput {
    let null = Options { missing: Missing::Null, ..options.clone() };
    each(case, |text| reference::answer(text, &null).or_else(|| other(text)))
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

/// Answers found in what follows the word `\boxed` that is asked for.
fn boxed(
    case: &AnswerExtractorCase,
    options: &Options,
    find: impl for<'a> Fn(&'a str) -> Option<&'a str>,
) -> AnswerExtractorOutput {
    behind(case, options, Format::Boxed, "\\boxed", find)
}

/// Answers found in what follows the hashes that are asked for.
fn hashed(
    case: &AnswerExtractorCase,
    options: &Options,
    find: impl for<'a> Fn(&'a str) -> Option<&'a str>,
) -> AnswerExtractorOutput {
    behind(case, options, Format::Hash, "####", find)
}

/// Answers found in what follows a mark; the right ones in the other formats.
fn behind(
    case: &AnswerExtractorCase,
    options: &Options,
    format: Format,
    mark: &str,
    find: impl for<'a> Fn(&'a str) -> Option<&'a str>,
) -> AnswerExtractorOutput {
    each(case, |text| {
        if options.format != format {
            return reference::answer(text, options);
        }
        let parts = match options.pick {
            Which::Last => text.rsplit_once(mark),
            Which::First => text.split_once(mark),
        };
        finished(parts.and_then(|(_, rest)| find(rest)), text, options)
    })
}
