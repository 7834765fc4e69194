//! Faults of scores for the form of a completion.

use super::right;
use crate::reward_function::reference::{rewards, scored, share};
use crate::reward_function::template::{Template, is_tag};
use crate::reward_function::{Options, RewardFunction, RewardFunctionCase, RewardFunctionOutput};

type Fault = shakedown_core::contract::fault::Fault<RewardFunction>;

/// The form of the completion, accepted where it is wrong.
pub(super) fn format() -> Vec<Fault> {
    vec![
        Fault::new(
            "format-regex-without-dotall",
            "a dot of the pattern stops at line ends: reasoning of two lines has no form",
        )
        .seen("open-r1 #237, #238 (d12886d)")
        .under("{judges: format}")
        .gives(&[|case, options, _| {
            scored(case, options, |row, template| {
                let parts = template.parts(row.completion);
                share(parts.is_some_and(|parts| parts.iter().all(|part| !part.contains('\n'))))
            })
        }]),
        Fault::new(
            "multiline-dollar-accepts-a-tail",
            "`$` matches before any line end: what follows on the next line is not looked at",
        )
        .seen("open-r1 #359, #616, #418; the pattern also in torchtune")
        .under("{judges: format}")
        .gives(&[|case, options, _| {
            formed(case, options, |text, template| {
                let ends = text.match_indices('\n').map(|(at, _)| &text[..at]);
                template.parts(text).is_some()
                    || ends.into_iter().any(|text| template.parts(text).is_some())
            })
        }]),
        Fault::new(
            "tail-accepted",
            "the pattern is matched from the start and need not reach the end",
        )
        .seen("re.match without `$`: the soft format reward of the GRPO tutorial")
        .under("{judges: format}")
        .gives(&[|case, options, _| {
            formed(case, options, |text, template| {
                let closing = template.closing().unwrap_or_default();
                let end = text.find(closing).map_or(text.len(), |at| at + closing.len());
                template.parts(&text[..end]).is_some()
            })
        }]),
        Fault::new(
            "duplicate-tags-accepted",
            "a lazy pattern takes repeated tags in: their number is not looked at",
        )
        .seen("open-r1 #359, #616")
        .under("{judges: format}")
        .gives(&[|case, options, _| {
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
        }]),
    ]
}

/// Tags without the rest of the form.
pub(super) fn tags() -> Vec<Fault> {
    vec![
        Fault::new("cross-closed-tags-accepted", "any closing tag closes any part")
            .seen("verifiers #116, #207")
            .under("{judges: format}")
            .gives(&[|case, options, _| {
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
            }]),
        Fault::new("opening-tags-are-enough", "only the opening tags are asked for")
            .seen("counters of `<think>` and `<answer>`; verifiers #207")
            .under("{judges: format}")
            .gives(&[|case, options, _| {
                formed(case, options, |text, template| {
                    let marks = template.marks();
                    let mut opening = marks.iter().filter(|mark| !mark.starts_with("</"));
                    opening.all(|mark| text.matches(*mark).count() == template.count(mark))
                })
            }]),
        Fault::new(
            "form-needs-the-gold",
            "a score for form that is only given for the right answer",
        )
        .seen("a format reward that calls the correctness check")
        .under("{judges: format}")
        .gives(&[|case, options, _| {
            scored(case, options, |row, template| {
                let formed = template.parts(row.completion).is_some();
                share(formed && right(row, template))
            })
        }]),
        Fault::new(
            "every-tag-counted-again",
            "every occurrence of a tag adds up: repeating tags scores most",
        )
        .seen("text.count(tag) without a comparison with 1")
        .under("{judges: incremental-format}")
        .gives(&[|case, options, _| {
            scored(case, options, |row, template| {
                let marks = template.marks();
                let found: usize =
                    marks.iter().map(|mark| row.completion.matches(*mark).count()).sum();
                (found as f64 / (2 * marks.len()) as f64).min(1.0)
            })
        }]),
        Fault::new(
            "unclosed-tag-punished",
            "an opening tag without its closing one costs more than no tag",
        )
        .seen("penalties for unbalanced tags")
        .under("{judges: incremental-format}")
        .gives(&[|case, options, _| {
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
        }]),
    ]
}

/// Full score where the whole completion has the form.
fn formed(
    case: &RewardFunctionCase,
    options: &Options,
    is_formed: impl Fn(&str, &Template) -> bool,
) -> RewardFunctionOutput {
    scored(case, options, |row, template| share(is_formed(row.completion, template)))
}
