//! Known wrong behaviours of `reward-function`: readers of completions with one habit each.

mod format;

use ndarray::Axis;

use super::reference::{Row, judged, rewards, scored, share};
use super::template::Template;
use super::{RewardFunction, RewardFunctionCase};

type Fault = shakedown_core::contract::fault::Fault<RewardFunction>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [lenient(), scores(), golds(), reading(), format::format(), format::tags()];
    themes.into_iter().flatten().collect()
}

/// A wrong answer passes, or a right one does not: what is compared.
fn lenient() -> Vec<Fault> {
    vec![
        Fault::new(
            "substring-partial-credit",
            "the gold answer is found inside another one: 10 passes for 1",
        )
        .seen("torchtune shaped_correctness_reward, seen in the code")
        .gives(&[|case, options, _| judged(case, options, |answer, gold| answer.contains(gold))]),
        Fault::new(
            "prefix-is-enough",
            "an answer that begins with the gold answer passes: 10 for 1",
        )
        .seen("startswith and re.match where the whole answer should match")
        .gives(&[|case, options, _| {
            judged(case, options, |answer, gold| answer.starts_with(gold))
        }]),
        Fault::new(
            "one-part-is-enough",
            "the first or the last line, or the first word, of an answer or of the gold answer \
             stands for all of it",
        )
        .seen("`answer.split()[0]`, `splitlines()[-1]`; a pattern whose dot stops at a line end")
        .under("{answer_family: text}")
        .gives(&[
            |case, options, _| {
                judged(case, options, |answer, gold| answer.lines().next() == Some(gold))
            },
            |case, options, _| {
                judged(case, options, |answer, gold| answer.lines().last() == Some(gold))
            },
            |case, options, _| {
                judged(case, options, |answer, gold| {
                    answer == gold || gold.split([' ', ',', '\n']).next() == Some(answer)
                })
            },
            |case, options, _| {
                judged(case, options, |answer, gold| {
                    answer == gold || answer.split(',').next() == Some(gold)
                })
            },
        ]),
        Fault::new(
            "contained-the-wrong-way-round",
            "an answer that stands inside the gold answer passes, the empty one too",
        )
        .seen("open-instruct #1683 (a09e14928)")
        .gives(&[|case, options, _| judged(case, options, |answer, gold| gold.contains(answer))]),
        Fault::new(
            "contained-anywhere",
            "the gold answer is looked for in the whole completion, reasoning included",
        )
        .seen("`gold in completion`; torchtune shaped_correctness_reward")
        .gives(&[|case, options, _| {
            scored(case, options, |row, _| share(row.completion.contains(row.gold)))
        }]),
        Fault::new("any-candidate-counts", "one right answer part among several is enough")
            .seen("torchtune shaped_correctness_reward: some answer equals; any() over findall")
            .gives(&[|case, options, _| {
                scored(case, options, |row, template| {
                    let mut answers = answers(row.completion, template).into_iter();
                    share(answers.any(|answer| answer == row.gold))
                })
            }]),
        Fault::new(
            "score-for-every-answer-part",
            "every answer part adds half a point, right or wrong",
        )
        .seen(
            "tag counts added to a correctness score; verl search_r1_like_qa_em guards against it",
        )
        .gives(&[|case, options, _| {
            scored(case, options, |row, template| {
                let answers = answers(row.completion, template);
                let right = answers.last().is_some_and(|answer| answer == row.gold);
                let parts = 0.1 * answers.len() as f64;
                (parts + if right { 0.9 } else { 0.0 }).min(1.0)
            })
        }]),
        Fault::new("identity-parser", "the gold answer is compared with the whole completion")
            .seen("verifiers #276, #277 (d64d701), #357")
            .gives(&[|case, options, _| {
                scored(case, options, |row, _| share(row.completion.trim() == row.gold))
            }]),
        Fault::new("strips-nothing", "white space around the answer is compared too")
            .seen("exact comparison of what stands between the tags")
            .gives(&[|case, options, _| {
                scored(case, options, |row, template| {
                    let markers = template.markers();
                    let [open, close] = &markers.answer;
                    share(between(row.completion, open, close) == Some(row.gold))
                })
            }]),
        Fault::new(
            "unparsable-gold-scores-full",
            "a gold answer that is no LaTeX is taken for one that cannot be wrong",
        )
        .seen("open-r1 #86, #215, #293, fix #566 (4f5b21e)")
        .gives(&[|case, options, _| {
            scored(case, options, |row, template| {
                let parsed = row.gold.contains(['$', '\\']);
                share(!parsed || right(row, template))
            })
        }]),
    ]
}

/// Scores that are lost, or not given.
fn scores() -> Vec<Fault> {
    vec![
        Fault::new(
            "scores-replaced-by-zeros",
            "every completion gets 0: the function reads another form than `template`, or returns \
             zeros for the scores",
        )
        .seen("ROLL 9c6ce5c0")
        .gives(&[|case, options, _| {
            let zero = 0.0_f64.clamp(options.range[0], options.range[1]);
            vec![zero; case.completions.len()].into()
        }]),
        Fault::new("zero-score-is-falsy", "a score of 0 is taken for no score")
            .seen("OpenRLHF #1219 (33f9d72f)")
            .gives(&[|case, options, _| {
                let scores = rewards(case, options).rewards;
                scores.mapv(|score| if score == 0.0 { f64::NAN } else { score }).into()
            }]),
        Fault::new(
            "no-score-without-tags",
            "a completion without the tags gets None, where every completion needs a score",
        )
        .seen("None from a failed match, returned as it is")
        .gives(&[|case, options, _| {
            scored(case, options, |row, template| match template.answer_in(row.completion) {
                Some(_) => share(right(row, template)),
                None => f64::NAN,
            })
        }]),
        Fault::new("raises-without-tags", "a completion without the tags ends the run")
            .seen("`text.split(\"<answer>\")[1]` and `match.group(1)` without a match")
            .gives(&[|case, options, _| {
                scored(case, options, |row, template| {
                    let answer = template.answer_in(row.completion);
                    share(answer.expect("no answer tags").trim() == row.gold)
                })
            }]),
    ]
}

/// What the answer and the gold answer are taken for.
fn golds() -> Vec<Fault> {
    vec![
        Fault::new(
            "blank-gold-matches-a-blank-answer",
            "an empty answer is right where the gold answer was lost",
        )
        .seen("open-r1 #566; `extracted == answer` without a look at either")
        .gives(&[|case, options, _| judged(case, options, |answer, gold| answer == gold)]),
        Fault::new(
            "gold-taken-for-a-pattern",
            "the gold answer is a pattern in which a dot stands for anything",
        )
        .seen("re.fullmatch(answer, text) without re.escape")
        .under("{answer_family: decimal}")
        .gives(&[|case, options, _| {
            judged(case, options, |answer, gold| {
                let same = |(a, g)| g == '.' || a == g;
                let count = answer.chars().count();
                !gold.is_empty()
                    && count == gold.chars().count()
                    && answer.chars().zip(gold.chars()).all(same)
            })
        }]),
        Fault::new(
            "first-number-wins",
            "the first number of the completion is its answer, wherever it stands",
        )
        .seen("re.search for a number over the whole completion")
        .gives(&[|case, options, _| {
            scored(case, options, |row, _| {
                share(numbers(row.completion).first().is_some_and(|found| found == row.gold))
            })
        }]),
        Fault::new(
            "sign-lost",
            "the sign of the answer is not read: a negative gold answer cannot be met",
        )
        .seen("`\\d+` for a number; golds of MATH and of arithmetic sets are negative too")
        .gives(&[|case, options, _| {
            judged(case, options, |answer, gold| {
                !gold.is_empty() && answer.trim_start_matches('-') == gold
            })
        }]),
    ]
}

/// Too much is read, of another row, or for another score.
fn reading() -> Vec<Fault> {
    vec![
        Fault::new("length-rewarded", "a longer completion scores more")
            .seen("a bonus for length that was meant for the reasoning of right answers")
            .gives(&[|case, options, _| {
                scored(case, options, |row, template| {
                    let length = (row.completion.chars().count() as f64 / 1000.0).min(0.5);
                    if right(row, template) { 0.5 + length } else { 0.0 }
                })
            }]),
        Fault::new(
            "markup-breaks-the-parser",
            "a parser of XML gives up at `<` or `&` in the reasoning",
        )
        .seen("ElementTree.fromstring on completions")
        .gives(&[|case, options, _| {
            scored(case, options, |row, template| {
                let text = template
                    .marks()
                    .iter()
                    .fold(row.completion.to_owned(), |text, mark| text.replace(mark, ""));
                share(!text.contains(['<', '&']) && right(row, template))
            })
        }]),
        Fault::new(
            "prompt-read-too",
            "the first answer part of prompt and completion together counts",
        )
        .seen("decoding whole sequences, prompt included; trl #6802, #6805 for stop tokens")
        .gives(&[|case, options, _| {
            scored(case, options, |row, template| {
                let text = [row.prompt, "\n", row.completion].concat();
                let answers = answers(&text, template);
                share(answers.first().is_some_and(|answer| answer == row.gold))
            })
        }]),
        Fault::new(
            "prompts-of-other-rows",
            "the columns of other rows: each completion meets the gold answer of the next row",
        )
        .seen("trl #3491 (9ac614fb0)")
        .on(&[|case, _| move_golds(case, |row, count| (row + 1) % count)]),
        Fault::new(
            "mini-batch-slices-the-mapping",
            "every mini-batch, of one row or of two, is scored with the columns of the first one",
        )
        .seen("LLaMA-Factory #7576 (7b9deb941), #2382")
        .on(&[|case, _| move_golds(case, |_, _| 0), |case, _| move_golds(case, |row, _| row % 2)]),
        Fault::new("score-doubled", "the score is twice what was declared")
            .seen("the 2.0 of the GRPO tutorial where [0, 1] is declared")
            .gives(&[|case, options, _| {
                rewards(case, options).rewards.mapv(|score| 2.0 * score).into()
            }]),
    ]
}

/// Whether the answer is the gold answer, as the reference decides it.
fn right(row: &Row<'_>, template: &Template) -> bool {
    let answer = template.answer_in(row.completion).map(str::trim);
    answer.is_some_and(|answer| !answer.is_empty() && answer == row.gold.trim())
}

/// Each row gets the gold answer of the row that is named, given the number of rows.
fn move_golds(case: &mut RewardFunctionCase, row_of: impl Fn(usize, usize) -> usize) {
    let count = case.answers.len();
    let rows: Vec<usize> = (0..count).map(|row| row_of(row, count)).collect();
    case.answers = case.answers.select(Axis(0), &rows);
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
