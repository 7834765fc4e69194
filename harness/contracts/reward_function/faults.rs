//! Known wrong behaviours of `reward-function`: readers of completions with one habit each.

use super::reference::{Row, rewards, scored, share};
use super::template::{Template, is_tag};
use super::{Options, RewardFunction, RewardFunctionCase, RewardFunctionOutput};
use crate::contract::fault::{Behaviour, Fault, Function, misbehaviours};

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault<RewardFunction>> {
    let fault = |id, summary, source, options, variants: &'static [Function<RewardFunction>]| {
        Fault { id, summary, source, options, behaviour: Behaviour::Gives(variants) }
    };
    let mut faults = vec![
        fault(
            "substring-partial-credit",
            "the gold answer is found inside another one: 10 passes for 1",
            "torchtune shaped_correctness_reward, seen in the code",
            "{}",
            &[|case, options, _| judged(case, options, |answer, gold| answer.contains(gold))],
        ),
        fault(
            "prefix-is-enough",
            "an answer that begins with the gold answer passes: 10 for 1",
            "startswith and re.match where the whole answer should match",
            "{}",
            &[|case, options, _| judged(case, options, |answer, gold| answer.starts_with(gold))],
        ),
        fault(
            "contained-the-wrong-way-round",
            "an answer that stands inside the gold answer passes, the empty one too",
            "open-instruct #1683 (a09e14928)",
            "{}",
            &[|case, options, _| judged(case, options, |answer, gold| gold.contains(answer))],
        ),
        fault(
            "contained-anywhere",
            "the gold answer is looked for in the whole completion, reasoning included",
            "`gold in completion`; torchtune shaped_correctness_reward",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, _| share(row.completion.contains(row.gold)))
            }],
        ),
        fault(
            "any-candidate-counts",
            "one right answer part among several is enough",
            "torchtune shaped_correctness_reward: some answer equals; any() over findall",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let mut answers = answers(row.completion, template).into_iter();
                    share(answers.any(|answer| answer == row.gold))
                })
            }],
        ),
        fault(
            "score-for-every-answer-part",
            "every answer part adds half a point, right or wrong",
            "tag counts added to a correctness score; verl search_r1_like_qa_em guards against it",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let answers = answers(row.completion, template);
                    let right = answers.last().is_some_and(|answer| answer == row.gold);
                    let parts = 0.1 * answers.len() as f64;
                    (parts + if right { 0.9 } else { 0.0 }).min(1.0)
                })
            }],
        ),
        fault(
            "identity-parser",
            "the gold answer is compared with the whole completion",
            "verifiers #276, #277 (d64d701), #357",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, _| share(row.completion.trim() == row.gold))
            }],
        ),
        fault(
            "strips-nothing",
            "white space around the answer is compared too",
            "exact comparison of what stands between the tags",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let markers = template.markers();
                    let [open, close] = &markers.answer;
                    share(between(row.completion, open, close) == Some(row.gold))
                })
            }],
        ),
        fault(
            "unparsable-gold-scores-full",
            "a gold answer that is no LaTeX is taken for one that cannot be wrong",
            "open-r1 #86, #215, #293, fix #566 (4f5b21e)",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let parsed = row.gold.contains(['$', '\\']);
                    share(!parsed || right(row, template))
                })
            }],
        ),
        fault(
            "scores-replaced-by-zeros",
            "the scores are computed, and zeros returned",
            "ROLL 9c6ce5c0",
            "{}",
            &[|case, options, _| {
                let zero = 0.0_f64.clamp(options.range[0], options.range[1]);
                vec![zero; case.completions.len()].into()
            }],
        ),
        fault(
            "zero-score-is-falsy",
            "a score of 0 is taken for no score",
            "OpenRLHF #1219 (33f9d72f)",
            "{}",
            &[|case, options, _| {
                let scores = rewards(case, options).rewards;
                scores.mapv(|score| if score == 0.0 { f64::NAN } else { score }).into()
            }],
        ),
        fault(
            "no-score-without-tags",
            "a completion without the tags gets None, where every completion needs a score",
            "None from a failed match, returned as it is",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, template| match template.answer_in(row.completion) {
                    Some(_) => share(right(row, template)),
                    None => f64::NAN,
                })
            }],
        ),
        fault(
            "raises-without-tags",
            "a completion without the tags ends the run",
            "`text.split(\"<answer>\")[1]` and `match.group(1)` without a match",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let answer = template.answer_in(row.completion);
                    share(answer.expect("no answer tags").trim() == row.gold)
                })
            }],
        ),
        fault(
            "blank-gold-matches-a-blank-answer",
            "an empty answer is right where the gold answer was lost",
            "open-r1 #566; `extracted == answer` without a look at either",
            "{}",
            &[|case, options, _| judged(case, options, |answer, gold| answer == gold)],
        ),
        fault(
            "gold-taken-for-a-pattern",
            "the gold answer is a pattern in which a dot stands for anything",
            "re.fullmatch(answer, text) without re.escape",
            "{answer_family: decimal}",
            &[|case, options, _| {
                judged(case, options, |answer, gold| {
                    let same = |(a, g)| g == '.' || a == g;
                    let count = answer.chars().count();
                    !gold.is_empty()
                        && count == gold.chars().count()
                        && answer.chars().zip(gold.chars()).all(same)
                })
            }],
        ),
        fault(
            "first-number-wins",
            "the first number of the completion is its answer, wherever it stands",
            "re.search for a number over the whole completion",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, _| {
                    share(numbers(row.completion).first().is_some_and(|found| found == row.gold))
                })
            }],
        ),
        fault(
            "sign-lost",
            "the sign of the answer is not read: a negative gold answer cannot be met",
            "`\\d+` for a number; golds of MATH and of arithmetic sets are negative too",
            "{}",
            &[|case, options, _| {
                judged(case, options, |answer, gold| {
                    !gold.is_empty() && answer.trim_start_matches('-') == gold
                })
            }],
        ),
        fault(
            "length-rewarded",
            "a longer completion scores more",
            "a bonus for length that was meant for the reasoning of right answers",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let length = (row.completion.chars().count() as f64 / 1000.0).min(0.5);
                    if right(row, template) { 0.5 + length } else { 0.0 }
                })
            }],
        ),
        fault(
            "markup-breaks-the-parser",
            "a parser of XML gives up at `<` or `&` in the reasoning",
            "ElementTree.fromstring on completions",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let text = template
                        .marks()
                        .iter()
                        .fold(row.completion.to_owned(), |text, mark| text.replace(mark, ""));
                    share(!text.contains(['<', '&']) && right(row, template))
                })
            }],
        ),
        fault(
            "prompt-read-too",
            "the first answer part of prompt and completion together counts",
            "decoding whole sequences, prompt included; trl #6802, #6805 for stop tokens",
            "{}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let text = [row.prompt, "\n", row.completion].concat();
                    let answers = answers(&text, template);
                    share(answers.first().is_some_and(|answer| answer == row.gold))
                })
            }],
        ),
        fault(
            "prompts-of-other-rows",
            "the columns of other rows: each completion meets the gold answer of the next row",
            "trl #3491 (9ac614fb0)",
            "{}",
            &[|case, options, _| regolded(case, options, |row, count| (row + 1) % count)],
        ),
        fault(
            "mini-batch-slices-the-mapping",
            "every mini-batch, of one row or of two, is scored with the columns of the first one",
            "LLaMA-Factory #7576 (7b9deb941), #2382",
            "{}",
            &[
                |case, options, _| regolded(case, options, |_, _| 0),
                |case, options, _| regolded(case, options, |row, _| row % 2),
            ],
        ),
        fault(
            "score-doubled",
            "the score is twice what was declared",
            "the 2.0 of the GRPO tutorial where [0, 1] is declared",
            "{}",
            &[|case, options, _| rewards(case, options).rewards.mapv(|score| 2.0 * score).into()],
        ),
        fault(
            "format-regex-without-dotall",
            "a dot of the pattern stops at line ends: reasoning of two lines has no form",
            "open-r1 #237, #238 (d12886d)",
            "{judges: format}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let parts = template.parts(row.completion);
                    share(parts.is_some_and(|parts| parts.iter().all(|part| !part.contains('\n'))))
                })
            }],
        ),
        fault(
            "multiline-dollar-accepts-a-tail",
            "`$` matches before any line end: what follows on the next line is not looked at",
            "open-r1 #359, #616, #418; the pattern also in torchtune",
            "{judges: format}",
            &[|case, options, _| {
                formed(case, options, |text, template| {
                    let ends = text.match_indices('\n').map(|(at, _)| &text[..at]);
                    template.parts(text).is_some()
                        || ends.into_iter().any(|text| template.parts(text).is_some())
                })
            }],
        ),
        fault(
            "tail-accepted",
            "the pattern is matched from the start and need not reach the end",
            "re.match without `$`: the soft format reward of the GRPO tutorial",
            "{judges: format}",
            &[|case, options, _| {
                formed(case, options, |text, template| {
                    let closing = template.closing().unwrap_or_default();
                    let end = text.find(closing).map_or(text.len(), |at| at + closing.len());
                    template.parts(&text[..end]).is_some()
                })
            }],
        ),
        fault(
            "duplicate-tags-accepted",
            "a lazy pattern takes repeated tags in: their number is not looked at",
            "open-r1 #359, #616",
            "{judges: format}",
            &[|case, options, _| {
                formed(case, options, |text, template| {
                    let closing = template.closing().unwrap_or_default();
                    let mut text = text.trim();
                    while let Some(rest) = text.strip_suffix(closing)
                        && rest.trim_end().ends_with(closing)
                        && !closing.is_empty()
                    {
                        text = rest.trim_end();
                    }
                    template.parts(text).is_some()
                })
            }],
        ),
        fault(
            "cross-closed-tags-accepted",
            "any closing tag closes any part",
            "verifiers #116, #207",
            "{judges: format}",
            &[|case, options, _| {
                formed(case, options, |text, template| {
                    let closings = template.marks().into_iter().filter(|m| m.starts_with("</"));
                    let mut rest = text;
                    let mut mended = String::new();
                    for closing in closings {
                        let Some(at) = rest.find("</") else { return false };
                        let Some(end) = rest[at..].find('>') else { return false };
                        mended += &rest[..at];
                        mended += closing;
                        rest = &rest[at + end + 1..];
                    }
                    mended += rest;
                    template.parts(&mended).is_some()
                })
            }],
        ),
        fault(
            "opening-tags-are-enough",
            "only the opening tags are asked for",
            "counters of `<think>` and `<answer>`; verifiers #207",
            "{judges: format}",
            &[|case, options, _| {
                formed(case, options, |text, template| {
                    let marks = template.marks();
                    let mut opening = marks.iter().filter(|mark| !mark.starts_with("</"));
                    opening.all(|mark| text.matches(*mark).count() == template.count(mark))
                })
            }],
        ),
        fault(
            "form-needs-the-gold",
            "a score for form that is only given for the right answer",
            "a format reward that calls the correctness check",
            "{judges: format}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let formed = template.parts(row.completion).is_some();
                    share(formed && right(row, template))
                })
            }],
        ),
        fault(
            "every-tag-counted-again",
            "every occurrence of a tag adds up: repeating tags scores most",
            "text.count(tag) without a comparison with 1",
            "{judges: incremental-format}",
            &[|case, options, _| {
                scored(case, options, |row, template| {
                    let marks = template.marks();
                    let found: usize =
                        marks.iter().map(|mark| row.completion.matches(*mark).count()).sum();
                    (found as f64 / (2 * marks.len()) as f64).min(1.0)
                })
            }],
        ),
        fault(
            "unclosed-tag-punished",
            "an opening tag without its closing one costs more than no tag",
            "penalties for unbalanced tags",
            "{judges: incremental-format}",
            &[|case, options, _| {
                let reference = rewards(case, options).rewards;
                let [lo, hi] = options.range;
                let template = Template::of(options);
                let scores = reference.iter().zip(&case.completions).map(|(score, text)| {
                    let unclosed = template.marks().into_iter().any(|mark| {
                        let closing = mark.replacen('<', "</", 1);
                        let paired = is_tag(mark) && template.count(&closing) > 0;
                        paired && text.contains(mark) && !text.contains(&closing)
                    });
                    if unclosed { (score - 0.5 * (hi - lo)).max(lo) } else { *score }
                });
                scores.collect::<Vec<_>>().into()
            }],
        ),
    ];
    faults.extend(misbehaviours());
    faults
}

/// Whether the answer is the gold answer, as the reference decides it.
fn right(row: &Row<'_>, template: &Template) -> bool {
    let answer = template.answer_in(row.completion).map(str::trim);
    answer.is_some_and(|answer| !answer.is_empty() && answer == row.gold.trim())
}

/// Full score where the answer and the gold answer, both without white space around them, agree.
fn judged(
    case: &RewardFunctionCase,
    options: &Options,
    agree: impl Fn(&str, &str) -> bool,
) -> RewardFunctionOutput {
    scored(case, options, |row, template| {
        let answer = template.answer_in(row.completion).map(str::trim);
        share(answer.is_some_and(|answer| agree(answer, row.gold.trim())))
    })
}

/// Full score where the whole completion has the form.
fn formed(
    case: &RewardFunctionCase,
    options: &Options,
    is_formed: impl Fn(&str, &Template) -> bool,
) -> RewardFunctionOutput {
    scored(case, options, |row, template| share(is_formed(row.completion, template)))
}

/// The right scores for the gold answers of other rows.
fn regolded(
    case: &RewardFunctionCase,
    options: &Options,
    row_of: impl Fn(usize, usize) -> usize,
) -> RewardFunctionOutput {
    let count = case.answers.len();
    let rows: Vec<usize> = (0..count).map(|row| row_of(row, count)).collect();
    let answers = case.answers.select(ndarray::Axis(0), &rows);
    rewards(&RewardFunctionCase { answers, ..case.clone() }, options)
}

/// What stands between the first opening marker and the closing one after it.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let rest = &text[text.find(open)? + open.len()..];
    let end = if close.is_empty() { rest.len() } else { rest.find(close)? };
    Some(&rest[..end])
}

/// The answers of all answer parts, in their order.
fn answers(text: &str, template: &Template) -> Vec<String> {
    let markers = template.markers();
    let [open, close] = &markers.answer;
    if open.is_empty() {
        return template
            .answer_in(text)
            .map(|answer| answer.trim().to_owned())
            .into_iter()
            .collect();
    }
    let parts = text.match_indices(open.as_str()).filter_map(|(at, _)| {
        between(&text[at..], open, close).map(|answer| answer.trim().to_owned())
    });
    parts.filter(|answer| !answer.is_empty()).collect()
}

/// The numbers in a text, signs included.
fn numbers(text: &str) -> Vec<String> {
    let part = |c: char| c.is_ascii_digit() || c == '-' || c == '.';
    let words = text.split(|c| !part(c)).map(|word| word.trim_end_matches(['.', '-']));
    words.filter(|word| word.contains(|c: char| c.is_ascii_digit())).map(str::to_owned).collect()
}
