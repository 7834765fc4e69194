//! Known wrong behaviours of `completion-decoder`: real bugs, and string handling that loses text.

use super::reference::{clean, text, thought, trimmed};
use super::{CompletionDecoder, CompletionDecoderCase, CompletionDecoderOutput, Options, Think};

type Fault = shakedown_core::contract::fault::Fault<CompletionDecoder>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes =
        [libraries(), artefacts(), markers(), reasoning(), last_segment(), characters(), rows()];
    themes.into_iter().flatten().collect()
}

/// What libraries had wrong, in the order of all: a tag of reasoning, stop strings.
fn libraries() -> Vec<Fault> {
    vec![
        Fault::new(
            "any-think-tag-blanks-the-answer",
            "a completion with a tag of reasoning anywhere gives an empty text",
        )
        .seen("ROLL a0ea3540")
        .under("{think: strip-closed}")
        .gives(&[
            |case, options, _| {
                only_if(case, options, |t| !options.think_tags.iter().any(|tag| t.contains(&**tag)))
            },
            |case, options, _| only_if(case, options, |t| !t.contains(&*options.think_tags[0])),
        ]),
        Fault::new(
            "stop-string-cut-although-absent",
            "the length of the stop string is cut off although it does not stand at the end",
        )
        .seen("vLLM #3016, #3150, #3672")
        .gives(&[|case, options, _| {
            let stop = options.artefacts.last().map_or(0, |stop| stop.chars().count());
            each(case, |t| {
                let t = text(t, options);
                let kept = t.chars().count().saturating_sub(stop);
                t.chars().take(kept).collect()
            })
        }]),
        Fault::new(
            "one-of-several-stops-removed",
            "exactly one special token is removed from the end",
        )
        .seen("AReaL #846 (b06658421)")
        .gives(&[|case, options, _| {
            each(case, |t| {
                let found = options.artefacts.iter().find_map(|a| t.strip_suffix(&**a));
                trimmed(thought(found.unwrap_or(t), options), options)
            })
        }]),
    ]
}

/// Special tokens: not all of them go, or more than they.
fn artefacts() -> Vec<Fault> {
    vec![
        Fault::new(
            "artefacts-removed-at-the-end-only",
            "special tokens are removed from the end, not from the start or the middle",
        )
        .seen("decoding with left padding, pitfall decoding-string-processing")
        .gives(&[|case, options, _| {
            each(case, |mut t| {
                while let Some(rest) = options.artefacts.iter().find_map(|a| t.strip_suffix(&**a)) {
                    t = rest;
                }
                trimmed(thought(t, options), options)
            })
        }]),
        Fault::new(
            "artefacts-removed-once-each",
            "each special token is removed in one pass: one that appears when another goes stays",
        )
        .seen("`str.replace` once for each token: what is left may be a new marker (`<p<pad>ad>`)")
        .gives(&[|case, options, _| {
            each(case, |t| {
                let t = options.artefacts.iter().fold(t.to_owned(), |t, a| t.replace(&**a, ""));
                trimmed(thought(&t, options), options)
            })
        }]),
        Fault::new("only-one-artefact-known", "only the first of the special tokens is removed")
            .seen("trl #7039 (one of several end ids)")
            .as_if(&[|mut options| {
                options.artefacts.truncate(1);
                options
            }]),
        Fault::new(
            "cut-at-the-first-artefact",
            "everything from the first special token on is lost",
        )
        .seen("left padding decoded as if it ended the text")
        .on(&[|case, options| {
            for t in &mut case.completions {
                let first = options.artefacts.iter().filter_map(|a| t.find(&**a)).min();
                t.truncate(first.unwrap_or(t.len()));
            }
        }]),
        Fault::new(
            "artefact-stripped-as-characters",
            "the characters of a special token are stripped from the ends, as Python's strip does",
        )
        .seen("pitfall decoding-string-processing: `text.strip(\"<pad>\")`")
        .gives(&[|case, options, _| {
            each(case, |t| {
                let mut t = text(t, options);
                for artefact in &options.artefacts {
                    t = t.trim_matches(|c| artefact.contains(c)).to_owned();
                }
                t
            })
        }]),
    ]
}

/// Markers that must stay, and text that has none.
fn markers() -> Vec<Fault> {
    vec![
        Fault::new(
            "kept-markers-removed-as-special",
            "markers that are registered as special tokens go with the others",
        )
        .seen("skip_special_tokens with <answer> among the special tokens")
        .gives(&[|case, options, _| {
            each(case, |t| {
                let t = options.keep.iter().fold(text(t, options), |t, k| t.replace(&**k, ""));
                trimmed(t, options)
            })
        }]),
        Fault::new("all-tags-removed", "everything in angle brackets goes")
            .seen("HTML stripped from completions, pitfall decoding-string-processing")
            .gives(&[|case, options, _| {
                each(case, |t| trimmed(without_tags(&text(t, options)), options))
            }]),
        Fault::new(
            "blank-without-markers",
            "a completion without the kept markers gives an empty text",
        )
        .seen(
            "verifiers' `ThinkParser` gives nothing without its closing tag; here of kept markers",
        )
        .gives(&[
            |case, options, _| {
                only_if(case, options, |t| options.keep.iter().all(|k| t.contains(&**k)))
            },
            |case, options, _| {
                only_if(case, options, |t| options.keep.last().is_none_or(|k| t.contains(&**k)))
            },
        ]),
        Fault::new("answer-part-only", "what stands outside the kept markers is lost")
            .seen("the extractor's work done by the decoder")
            .gives(&[|case, options, _| {
                each(case, |t| {
                    let t = text(t, options);
                    let [open, close, ..] = &options.keep[..] else { return t };
                    let from = t.find(&**open).unwrap_or(0);
                    let to = t.rfind(&**close).map_or(t.len(), |at| at + close.len());
                    t.get(from..to).unwrap_or(&t).to_owned()
                })
            }]),
    ]
}

/// Blocks of reasoning that stay, or take text with them.
fn reasoning() -> Vec<Fault> {
    vec![
        Fault::new(
            "greedy-think-block",
            "one block from the first opening tag to the last closing tag",
        )
        .seen("`<think>.*</think>` without the question mark")
        .under("{think: strip-closed}")
        .gives(&[|case, options, _| {
            let [open, close] = &options.think_tags;
            cleaned(case, options, |t| match (t.find(&**open), t.rfind(&**close)) {
                (Some(from), Some(to)) if from < to => {
                    trimmed([&t[..from], &t[to + close.len()..]].concat(), options)
                }
                _ => text(&t, options),
            })
        }]),
        Fault::new(
            "think-block-without-line-ends",
            "a block of reasoning with a line end inside stays",
        )
        .seen("`<think>.*?</think>` without DOTALL; open-r1 #237 has it in a reward")
        .under("{think: strip-closed}")
        .gives(&[|case, options, _| {
            let close = &options.think_tags[1];
            cleaned(case, options, |t| {
                let inside = t.rsplit_once(&**close).is_some_and(|(r, _)| r.contains('\n'));
                if inside { trimmed(t, options) } else { text(&t, options) }
            })
        }]),
        Fault::new("unclosed-block-kept", "reasoning that does not end is taken for the answer")
            .seen("truncated completions under `re.sub(r'<think>.*?</think>', '')`")
            .under("{think: strip-closed}")
            .gives(&[|case, options, _| {
                let [open, close] = &options.think_tags;
                cleaned(case, options, |t| {
                    let unclosed = t.rfind(&**open) > t.rfind(&**close);
                    if !unclosed {
                        return text(&t, options);
                    }
                    let at = t.rfind(&**open).unwrap_or(t.len());
                    trimmed([&thought(&t[..at], options), &t[at..]].concat(), options)
                })
            }]),
        Fault::new(
            "block-opened-in-the-prompt-kept",
            "a closing tag without an opening one stays, with the reasoning before it",
        )
        .seen("ROLL a0ea3540; templates that end the prompt with the opening tag")
        .under("{think: strip-closed}")
        .gives(&[|case, options, _| {
            let [open, close] = &options.think_tags;
            cleaned(case, options, |t| match t.split_once(&**close) {
                Some((before, after)) if !before.contains(&**open) => {
                    trimmed([before, close, &thought(after, options)].concat(), options)
                }
                _ => text(&t, options),
            })
        }]),
        Fault::new(
            "tags-removed-reasoning-kept",
            "the tags of reasoning go and the reasoning stays",
        )
        .seen("`text.replace('<think>', '')`")
        .under("{think: strip-closed}")
        .gives(&[|case, options, _| {
            cleaned(case, options, |t| {
                let tags = options.think_tags.iter();
                trimmed(tags.fold(t, |t, tag| t.replace(&**tag, "")), options)
            })
        }]),
    ]
}

/// What follows the reasoning: another part, nothing, or all of the text.
fn last_segment() -> Vec<Fault> {
    vec![
        Fault::new(
            "first-closing-tag-taken",
            "what follows the first closing tag stays, not what follows the last",
        )
        .seen("`text.split('</think>')[1]`")
        .under("{think: last-segment}")
        .gives(&[
            |case, options, _| {
                let close = &options.think_tags[1];
                cleaned(case, options, |t| {
                    let rest = t.split_once(&**close).map(|(_, rest)| rest.to_owned());
                    trimmed(rest.unwrap_or_else(|| thought(&t, options)), options)
                })
            },
            |case, options, _| {
                let close = &options.think_tags[1];
                cleaned(case, options, |t| {
                    let rest = t.split(&**close).nth(1).map(str::to_owned);
                    trimmed(rest.unwrap_or_else(|| thought(&t, options)), options)
                })
            },
        ]),
        Fault::new(
            "blank-without-a-closing-tag",
            "plain text without reasoning gives an empty text",
        )
        .seen("`strip-always` where the template does not always think")
        .under("{think: last-segment}")
        .gives(&[|case, options, _| {
            only_if(case, options, |t| t.contains(&*options.think_tags[1]))
        }]),
        Fault::new("reasoning-kept-as-content", "reasoning is not removed at all")
            .seen("an option without effect, pitfall configuration")
            .under("{think: strip-closed}")
            .as_if(&[|options| Options { think: Think::Keep, ..options }]),
    ]
}

/// Characters, white space and lines that are lost or changed.
fn characters() -> Vec<Fault> {
    vec![
        Fault::new("beyond-ascii-dropped", "characters beyond ASCII are lost")
            .seen("`text.encode('ascii', 'ignore')`")
            .gives(&[|case, options, _| {
                each(case, |t| text(t, options).chars().filter(char::is_ascii).collect())
            }]),
        Fault::new(
            "cut-characters-dropped",
            "what is left of a character that was cut in two is lost",
        )
        .seen("`errors='ignore'` for `errors='replace'`")
        .gives(&[|case, options, _| each(case, |t| text(t, options).replace('\u{fffd}', ""))]),
        Fault::new("white-space-collapsed", "every run of white space becomes one space")
            .seen("`' '.join(text.split())`; clean_up_tokenization_spaces")
            .gives(&[|case, options, _| {
                each(case, |t| text(t, options).split_whitespace().collect::<Vec<_>>().join(" "))
            }]),
        Fault::new("line-ends-replaced", "carriage returns are lost")
            .seen("text mode and `splitlines`")
            .gives(&[
                |case, options, _| each(case, |t| text(t, options).replace("\r\n", "\n")),
                |case, options, _| {
                    each(case, |t| text(t, options).lines().collect::<Vec<_>>().join("\n"))
                },
            ]),
        Fault::new("first-line-only", "everything after the first line is lost")
            .seen("TinyZero 1c17832 has its like in an extractor")
            .gives(&[|case, options, _| {
                each(case, |t| text(t, options).split('\n').next().unwrap_or("").to_owned())
            }]),
        Fault::new("lower-case", "letters are made small")
            .seen("a normaliser of answers applied to the whole text")
            .gives(&[|case, options, _| each(case, |t| text(t, options).to_lowercase())]),
        Fault::new("truncated-to-a-length", "long texts are cut")
            .seen("verl #2568 searches the last 300 characters only")
            .gives(&[
                |case, options, _| each(case, |t| text(t, options).chars().take(1000).collect()),
                |case, options, _| each(case, |t| text(t, options).chars().take(200).collect()),
            ]),
        Fault::new("outer-white-space-lost", "outer white space goes although it must stay")
            .seen("`strip()` where the text is compared byte for byte")
            .under("{trim: false}")
            .gives(&[
                |case, options, _| each(case, |t| text(t, options).trim().to_owned()),
                |case, options, _| each(case, |t| text(t, options).trim_end().to_owned()),
            ]),
    ]
}

/// Texts of other rows.
fn rows() -> Vec<Fault> {
    vec![
        Fault::new("first-row-for-all", "every completion gets the text of the first")
            .seen("a loop that decodes `ids[0]`")
            .on(&[|case, _| {
                if let Some(first) = case.completions.first().cloned() {
                    case.completions.fill(first);
                }
            }]),
        Fault::new(
            "rows-without-text-left-out-of-place",
            "texts move up over the empty ones, which come last",
        )
        .seen("trl #3491 has rows zipped with other rows")
        .gives(&[|case, options, _| {
            let texts: Vec<String> = case.completions.iter().map(|t| text(t, options)).collect();
            let (full, empty): (Vec<_>, Vec<_>) = texts.into_iter().partition(|t| !t.is_empty());
            [full, empty].concat().into()
        }]),
    ]
}

/// What each completion gives.
fn each(case: &CompletionDecoderCase, decode: impl Fn(&str) -> String) -> CompletionDecoderOutput {
    case.completions.iter().map(|text| decode(text)).collect::<Vec<String>>().into()
}

/// What each completion gives once it is free of artefacts.
fn cleaned(
    case: &CompletionDecoderCase,
    options: &Options,
    decode: impl Fn(String) -> String,
) -> CompletionDecoderOutput {
    each(case, |text| decode(clean(text, &options.artefacts)))
}

/// The right text where the completion may have one, and an empty text elsewhere.
fn only_if(
    case: &CompletionDecoderCase,
    options: &Options,
    may: impl Fn(&str) -> bool,
) -> CompletionDecoderOutput {
    each(case, |t| if may(t) { text(t, options) } else { String::new() })
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
