//! Known wrong behaviours of `completion-decoder`: real bugs, and string handling that loses text.

use super::reference::{clean, text, thought, trimmed};
use super::{CompletionDecoder, CompletionDecoderCase, CompletionDecoderOutput};
use crate::contract::fault::{Behaviour, Fault, Function, misbehaviours};

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault<CompletionDecoder>> {
    let fault = |id, summary, source, options, variants: &'static [Function<CompletionDecoder>]| {
        Fault { id, summary, source, options, behaviour: Behaviour::Gives(variants) }
    };
    let mut faults = vec![
        fault(
            "any-think-tag-blanks-the-answer",
            "a completion with a tag of reasoning anywhere gives an empty text",
            "ROLL a0ea3540",
            "{think: strip-closed}",
            &[
                |case, options, _| {
                    each(case, |t| match options.think_tags.iter().any(|tag| t.contains(&**tag)) {
                        true => String::new(),
                        false => text(t, options),
                    })
                },
                |case, options, _| {
                    each(case, |t| match t.contains(&*options.think_tags[0]) {
                        true => String::new(),
                        false => text(t, options),
                    })
                },
            ],
        ),
        fault(
            "stop-string-cut-although-absent",
            "the length of the stop string is cut off although it does not stand at the end",
            "vLLM #3016, #3150, #3672",
            "{}",
            &[|case, options, _| {
                let stop = options.artefacts.last().map_or(0, |stop| stop.chars().count());
                each(case, |t| {
                    let t = text(t, options);
                    let kept = t.chars().count().saturating_sub(stop);
                    t.chars().take(kept).collect()
                })
            }],
        ),
        fault(
            "one-of-several-stops-removed",
            "exactly one special token is removed from the end",
            "AReaL #846 (b06658421)",
            "{}",
            &[|case, options, _| {
                each(case, |t| {
                    let found = options.artefacts.iter().find_map(|a| t.strip_suffix(&**a));
                    trimmed(thought(found.unwrap_or(t), options), options)
                })
            }],
        ),
        fault(
            "artefacts-removed-at-the-end-only",
            "special tokens are removed from the end, not from the start or the middle",
            "decoding with left padding, pitfall decoding-string-processing",
            "{}",
            &[|case, options, _| {
                each(case, |mut t| {
                    while let Some(rest) =
                        options.artefacts.iter().find_map(|a| t.strip_suffix(&**a))
                    {
                        t = rest;
                    }
                    trimmed(thought(t, options), options)
                })
            }],
        ),
        fault(
            "artefacts-removed-once-each",
            "each special token is removed in one pass: one that appears when another goes stays",
            "`str.replace` once for each token: what is left may be a new marker (`<p<pad>ad>`)",
            "{}",
            &[|case, options, _| {
                each(case, |t| {
                    let t = options.artefacts.iter().fold(t.to_owned(), |t, a| t.replace(&**a, ""));
                    trimmed(thought(&t, options), options)
                })
            }],
        ),
        fault(
            "only-one-artefact-known",
            "only the first of the special tokens is removed",
            "trl #7039 (one of several end ids)",
            "{}",
            &[|case, options, _| {
                each(case, |t| {
                    let known = &options.artefacts[..options.artefacts.len().min(1)];
                    trimmed(thought(&clean(t, known), options), options)
                })
            }],
        ),
        fault(
            "cut-at-the-first-artefact",
            "everything from the first special token on is lost",
            "left padding decoded as if it ended the text",
            "{}",
            &[|case, options, _| {
                each(case, |t| {
                    let first = options.artefacts.iter().filter_map(|a| t.find(&**a)).min();
                    text(&t[..first.unwrap_or(t.len())], options)
                })
            }],
        ),
        fault(
            "artefact-stripped-as-characters",
            "the characters of a special token are stripped from the ends, as Python's strip does",
            "pitfall decoding-string-processing: `text.strip(\"<pad>\")`",
            "{}",
            &[|case, options, _| {
                each(case, |t| {
                    let mut t = text(t, options);
                    for artefact in &options.artefacts {
                        t = t.trim_matches(|c| artefact.contains(c)).to_owned();
                    }
                    t
                })
            }],
        ),
        fault(
            "kept-markers-removed-as-special",
            "markers that are registered as special tokens go with the others",
            "skip_special_tokens with <answer> among the special tokens",
            "{}",
            &[|case, options, _| {
                each(case, |t| {
                    let t = options.keep.iter().fold(text(t, options), |t, k| t.replace(&**k, ""));
                    trimmed(t, options)
                })
            }],
        ),
        fault(
            "all-tags-removed",
            "everything in angle brackets goes",
            "HTML stripped from completions, pitfall decoding-string-processing",
            "{}",
            &[|case, options, _| each(case, |t| trimmed(without_tags(&text(t, options)), options))],
        ),
        fault(
            "blank-without-markers",
            "a completion without the kept markers gives an empty text",
            "verifiers' `ThinkParser` gives nothing without its closing tag; here of kept markers",
            "{}",
            &[
                |case, options, _| {
                    each(case, |t| match options.keep.iter().all(|k| t.contains(&**k)) {
                        true => text(t, options),
                        false => String::new(),
                    })
                },
                |case, options, _| {
                    each(case, |t| match options.keep.last().is_none_or(|k| t.contains(&**k)) {
                        true => text(t, options),
                        false => String::new(),
                    })
                },
            ],
        ),
        fault(
            "answer-part-only",
            "what stands outside the kept markers is lost",
            "the extractor's work done by the decoder",
            "{}",
            &[|case, options, _| {
                each(case, |t| {
                    let t = text(t, options);
                    let [open, close, ..] = &options.keep[..] else { return t };
                    let from = t.find(&**open).unwrap_or(0);
                    let to = t.rfind(&**close).map_or(t.len(), |at| at + close.len());
                    t.get(from..to).unwrap_or(&t).to_owned()
                })
            }],
        ),
        fault(
            "greedy-think-block",
            "one block from the first opening tag to the last closing tag",
            "`<think>.*</think>` without the question mark",
            "{think: strip-closed}",
            &[|case, options, _| {
                let [open, close] = &options.think_tags;
                each(case, |t| {
                    let t = clean(t, &options.artefacts);
                    match (t.find(&**open), t.rfind(&**close)) {
                        (Some(from), Some(to)) if from < to => {
                            trimmed([&t[..from], &t[to + close.len()..]].concat(), options)
                        }
                        _ => text(&t, options),
                    }
                })
            }],
        ),
        fault(
            "think-block-without-line-ends",
            "a block of reasoning with a line end inside stays",
            "`<think>.*?</think>` without DOTALL; open-r1 #237 has it in a reward",
            "{think: strip-closed}",
            &[|case, options, _| {
                let close = &options.think_tags[1];
                each(case, |t| {
                    let t = clean(t, &options.artefacts);
                    let inside = t.rsplit_once(&**close).is_some_and(|(r, _)| r.contains('\n'));
                    if inside { trimmed(t, options) } else { text(&t, options) }
                })
            }],
        ),
        fault(
            "unclosed-block-kept",
            "reasoning that does not end is taken for the answer",
            "truncated completions under `re.sub(r'<think>.*?</think>', '')`",
            "{think: strip-closed}",
            &[|case, options, _| {
                let [open, close] = &options.think_tags;
                each(case, |t| {
                    let t = clean(t, &options.artefacts);
                    let unclosed = t.rfind(&**open) > t.rfind(&**close);
                    if !unclosed {
                        return text(&t, options);
                    }
                    let at = t.rfind(&**open).unwrap_or(t.len());
                    trimmed([&thought(&t[..at], options), &t[at..]].concat(), options)
                })
            }],
        ),
        fault(
            "block-opened-in-the-prompt-kept",
            "a closing tag without an opening one stays, with the reasoning before it",
            "ROLL a0ea3540; templates that end the prompt with the opening tag",
            "{think: strip-closed}",
            &[|case, options, _| {
                let [open, close] = &options.think_tags;
                each(case, |t| {
                    let t = clean(t, &options.artefacts);
                    match t.split_once(&**close) {
                        Some((before, after)) if !before.contains(&**open) => {
                            trimmed([before, close, &thought(after, options)].concat(), options)
                        }
                        _ => text(&t, options),
                    }
                })
            }],
        ),
        fault(
            "tags-removed-reasoning-kept",
            "the tags of reasoning go and the reasoning stays",
            "`text.replace('<think>', '')`",
            "{think: strip-closed}",
            &[|case, options, _| {
                each(case, |t| {
                    let t = clean(t, &options.artefacts);
                    let tags = options.think_tags.iter();
                    trimmed(tags.fold(t, |t, tag| t.replace(&**tag, "")), options)
                })
            }],
        ),
        fault(
            "first-closing-tag-taken",
            "what follows the first closing tag stays, not what follows the last",
            "`text.split('</think>')[1]`",
            "{think: last-segment}",
            &[
                |case, options, _| {
                    let close = &options.think_tags[1];
                    each(case, |t| {
                        let t = clean(t, &options.artefacts);
                        let rest = t.split_once(&**close).map(|(_, rest)| rest.to_owned());
                        trimmed(rest.unwrap_or_else(|| thought(&t, options)), options)
                    })
                },
                |case, options, _| {
                    let close = &options.think_tags[1];
                    each(case, |t| {
                        let t = clean(t, &options.artefacts);
                        let rest = t.split(&**close).nth(1).map(str::to_owned);
                        trimmed(rest.unwrap_or_else(|| thought(&t, options)), options)
                    })
                },
            ],
        ),
        fault(
            "blank-without-a-closing-tag",
            "plain text without reasoning gives an empty text",
            "`strip-always` where the template does not always think",
            "{think: last-segment}",
            &[|case, options, _| {
                let close = &options.think_tags[1];
                each(case, |t| match t.contains(&**close) {
                    true => text(t, options),
                    false => String::new(),
                })
            }],
        ),
        fault(
            "reasoning-kept-as-content",
            "reasoning is not removed at all",
            "an option without effect, pitfall configuration",
            "{think: strip-closed}",
            &[|case, options, _| each(case, |t| trimmed(clean(t, &options.artefacts), options))],
        ),
        fault(
            "beyond-ascii-dropped",
            "characters beyond ASCII are lost",
            "`text.encode('ascii', 'ignore')`",
            "{}",
            &[|case, options, _| {
                each(case, |t| text(t, options).chars().filter(char::is_ascii).collect())
            }],
        ),
        fault(
            "cut-characters-dropped",
            "what is left of a character that was cut in two is lost",
            "`errors='ignore'` for `errors='replace'`",
            "{}",
            &[|case, options, _| each(case, |t| text(t, options).replace('\u{fffd}', ""))],
        ),
        fault(
            "white-space-collapsed",
            "every run of white space becomes one space",
            "`' '.join(text.split())`; clean_up_tokenization_spaces",
            "{}",
            &[|case, options, _| {
                each(case, |t| text(t, options).split_whitespace().collect::<Vec<_>>().join(" "))
            }],
        ),
        fault(
            "line-ends-replaced",
            "carriage returns are lost",
            "text mode and `splitlines`",
            "{}",
            &[
                |case, options, _| each(case, |t| text(t, options).replace("\r\n", "\n")),
                |case, options, _| {
                    each(case, |t| text(t, options).lines().collect::<Vec<_>>().join("\n"))
                },
            ],
        ),
        fault(
            "first-line-only",
            "everything after the first line is lost",
            "TinyZero 1c17832 has its like in an extractor",
            "{}",
            &[|case, options, _| {
                each(case, |t| text(t, options).split('\n').next().unwrap_or("").to_owned())
            }],
        ),
        fault(
            "lower-case",
            "letters are made small",
            "a normaliser of answers applied to the whole text",
            "{}",
            &[|case, options, _| each(case, |t| text(t, options).to_lowercase())],
        ),
        fault(
            "truncated-to-a-length",
            "long texts are cut",
            "verl #2568 searches the last 300 characters only",
            "{}",
            &[
                |case, options, _| each(case, |t| text(t, options).chars().take(1000).collect()),
                |case, options, _| each(case, |t| text(t, options).chars().take(200).collect()),
            ],
        ),
        fault(
            "outer-white-space-lost",
            "outer white space goes although it must stay",
            "`strip()` where the text is compared byte for byte",
            "{trim: false}",
            &[
                |case, options, _| each(case, |t| text(t, options).trim().to_owned()),
                |case, options, _| each(case, |t| text(t, options).trim_end().to_owned()),
            ],
        ),
        fault(
            "first-row-for-all",
            "every completion gets the text of the first",
            "a loop that decodes `ids[0]`",
            "{}",
            &[|case, options, _| {
                let first = case.completions.first().map_or("", |t| t);
                each(case, |_| text(first, options))
            }],
        ),
        fault(
            "rows-without-text-left-out-of-place",
            "texts move up over the empty ones, which come last",
            "trl #3491 has rows zipped with other rows",
            "{}",
            &[|case, options, _| {
                let texts: Vec<String> =
                    case.completions.iter().map(|t| text(t, options)).collect();
                let (full, empty): (Vec<_>, Vec<_>) =
                    texts.into_iter().partition(|t| !t.is_empty());
                [full, empty].concat().into()
            }],
        ),
    ];
    faults.extend(misbehaviours());
    faults
}

fn each(case: &CompletionDecoderCase, decode: impl Fn(&str) -> String) -> CompletionDecoderOutput {
    case.completions.iter().map(|text| decode(text)).collect::<Vec<String>>().into()
}

/// The text without what stands in angle brackets.
fn without_tags(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        let Some((_, after)) = tag.split_once('>') else { break };
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    kept
}
