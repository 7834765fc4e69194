//! Faults of the formats that have no tags: boxes and hashes.

use super::{answers, each, only_if};
use crate::answer_extractor::reference::{self, braced, finished};
use crate::answer_extractor::{
    AnswerExtractor, AnswerExtractorCase, AnswerExtractorOutput, Format, Options, Which,
};

type Fault = shakedown_core::contract::fault::Fault<AnswerExtractor>;

/// Boxes that end elsewhere, or do not count.
pub(super) fn boxes() -> Vec<Fault> {
    vec![
        Fault::new("first-closing-brace", "a box ends at the first closing brace")
            .seen("trl #5026, ai-agent-book #173: `\\\\boxed\\{([^}]*)\\}`")
            .under("{format: boxed}")
            .gives(&[|case, options, _| {
                boxed(case, options, |rest| rest.split_once('}')?.0.strip_prefix('{'))
            }]),
        Fault::new("last-closing-brace", "a box ends at the last closing brace of the text")
            .seen("lmms-eval #1512: `oxed{(.*)}`")
            .under("{format: boxed}")
            .gives(&[|case, options, _| {
                boxed(case, options, |rest| rest.rsplit_once('}')?.0.strip_prefix('{'))
            }]),
        Fault::new("one-level-of-braces", "a box with braces inside braces is none")
            .seen("plausible: `\\\\boxed\\{((?:[^{}]|\\{[^{}]*\\})*)\\}`")
            .under("{format: boxed}")
            .gives(&[|case, options, _| {
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
            }]),
        Fault::new("no-braces-in-a-box", "a box with braces in it is none")
            .seen("plausible: `\\\\boxed\\{([^{}]*)\\}`")
            .under("{format: boxed}")
            .gives(&[|case, options, _| {
                boxed(case, options, |rest| braced(rest).filter(|answer| !answer.contains('{')))
            }]),
        Fault::new("unclosed-box-taken", "a box that is never closed goes to the end of the text")
            .seen("plausible: a loop over braces that runs off the end")
            .under("{format: boxed}")
            .gives(&[|case, options, _| {
                boxed(case, options, |rest| braced(rest).or_else(|| rest.strip_prefix('{')))
            }]),
        Fault::new("braces-lost", "the braces in a box are lost")
            .seen("plausible: `.strip(\"{}\")` and its relatives")
            .under("{format: boxed}")
            .gives(&[
                |case, options, _| answers(case, options, |a| a.replace(['{', '}'], "")),
                |case, options, _| {
                    answers(case, options, |a| a.trim_matches(['{', '}']).to_owned())
                },
            ]),
        Fault::new("box-needs-dollars", "a box counts only between dollars")
            .seen("plausible: `\\$\\\\boxed\\{…\\}\\$`")
            .under("{format: boxed}")
            .gives(&[|case, options, _| {
                only_if(case, options, |text| {
                    options.format != Format::Boxed || text.contains("$\\boxed{")
                })
            }]),
    ]
}

/// What follows the hashes: too much, too little, or nothing.
pub(super) fn hashes() -> Vec<Fault> {
    vec![
        Fault::new("numbers-only", "only the number behind the hashes is taken: words are none")
            .seen("verl gsm8k: `#### (-?[0-9.,]+)`, where the rest of the line is declared")
            .under("{format: hash}")
            .gives(&[|case, options, _| {
                hashed(case, options, |rest| {
                    let rest = rest.trim_start_matches(' ');
                    let number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
                    let end = rest.find(|c| !number(c)).unwrap_or(rest.len());
                    Some(&rest[..end]).filter(|number| !number.is_empty())
                })
            }]),
        Fault::new("rest-of-the-text", "all that follows the hashes is taken, not only their line")
            .seen("plausible: `split(\"####\")[-1]`")
            .under("{format: hash}")
            .gives(&[|case, options, _| hashed(case, options, |rest| rest.get(..))]),
        Fault::new("first-word-of-the-line", "only the first word behind the hashes is taken")
            .seen("plausible: `split(\"####\")[-1].split()[0]`")
            .under("{format: hash}")
            .gives(&[|case, options, _| {
                hashed(case, options, |rest| {
                    let line = rest.split('\n').next().unwrap_or("");
                    line.split_whitespace().next()
                })
            }]),
        Fault::new(
            "hashes-at-the-start-of-a-line",
            "hashes after other words on their line do not count",
        )
        .seen("plausible: `^####` with MULTILINE")
        .under("{format: hash}")
        .gives(&[|case, options, _| {
            only_if(case, options, |text| {
                let starts = |(at, _): (usize, &str)| at == 0 || text[..at].ends_with('\n');
                text.match_indices("####").last().is_none_or(starts)
            })
        }]),
    ]
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
