//! Cases of `reward-function`: random draws, corners, small ones and classes.

use arbitrary::{Result, Unstructured};
use ndarray::Array1;

use super::probes::{PLAIN, mentions, wrong_answers};
use super::template::Template;
use super::{Options, RewardFunction, RewardFunctionCase};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::completions::{AnswerFamily, NASTY, Shape, completion, prose};
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::measure::Measure;
use shakedown_core::generate::texts;

/// Gold answers of words that are patterns or punctuation to careless readers.
const AWKWARD: &[&str] = &["C++", "a.b", "(b)", "x*", "[b]", "1 + 1 = 2", "50%", "b\\d"];

/// A row: prompt, completion, gold answer.
type Row<'a> = (&'a str, &'a str, &'a str);

pub(super) fn valid(
    case: &RewardFunctionCase,
    options: &Options,
) -> std::result::Result<(), String> {
    let lengths = [&case.prompts, &case.completions, &case.answers].map(Array1::len);
    if lengths[0] == 0 || lengths.iter().any(|length| *length != lengths[0]) {
        return Err(format!("expected 1 text or more in each field, found {lengths:?}"));
    }
    let family = options.answer_family;
    let odd = case.answers.iter().find(|gold| !gold.trim().is_empty() && !fits(family, gold));
    let many = case.answers.iter().find(|gold| gold.contains('\n'));
    if let (Some(gold), false) = (many, Template::of(options).closes()) {
        let gold = shakedown_core::value::text::quoted(gold);
        return Err(format!("the answer {gold} has lines, and no mark of the template ends it"));
    }
    match odd {
        Some(gold) => {
            let gold = shakedown_core::value::text::quoted(gold);
            Err(format!("the answer {gold} is none of the declared `answer_family`"))
        }
        None => Ok(()),
    }
}

/// Whether a text is an answer of a family, as one would write it.
fn fits(family: AnswerFamily, gold: &str) -> bool {
    match family {
        AnswerFamily::Integer => gold.parse::<i64>().is_ok_and(|n| n.to_string() == gold),
        AnswerFamily::Decimal => {
            let digits = gold.strip_prefix('-').unwrap_or(gold);
            let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            digits.split_once('.').is_some_and(|(whole, rest)| {
                let leading = whole.len() > 1 && whole.starts_with('0');
                plain(whole) && plain(rest) && !leading && gold.len() < 16
            })
        }
        AnswerFamily::Text => {
            let lower = gold.to_lowercase();
            let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
            // An article alone is nothing to readers that leave articles out.
            let says = words.any(|word| !["a", "an", "the"].contains(&word));
            says && gold.trim() == gold
                && !gold.chars().any(|c| c.is_control() && c != '\n')
                && !gold.contains('<')
        }
        AnswerFamily::Latex => {
            let fraction = gold.strip_prefix("\\frac{").and_then(|rest| rest.strip_suffix('}'));
            let parts = fraction.and_then(|rest| rest.split_once("}{"));
            let number = |text: &str| text.parse::<u32>().is_ok_and(|n| n.to_string() == text);
            let letter = gold.len() == 1 && gold.bytes().all(|b| b.is_ascii_lowercase());
            let fraction =
                parts.is_some_and(|(over, under)| number(over) && number(under) && under != "0");
            letter || fraction || family.answers().contains(&gold)
        }
    }
}

/// Gold answers of a family, the plainest first.
fn golds(options: &Options) -> Vec<&'static str> {
    let family = options.answer_family;
    let mut golds = family.answers().to_vec();
    if family == AnswerFamily::Text {
        golds.extend(AWKWARD);
        golds.extend(Template::of(options).closes().then_some("one\ntwo"));
    }
    golds.retain(|gold| fits(family, gold));
    golds
}

fn gold(u: &mut Unstructured<'_>, options: &Options) -> Result<String> {
    let (golds, family) = (golds(options), options.answer_family);
    let drawn = match chance(u, 128)? {
        true => one(u, &golds)?.to_owned(),
        false => family.draw(u)?,
    };
    Ok(if fits(family, &drawn) { drawn } else { golds[0].to_owned() })
}

fn case<'a>(rows: impl IntoIterator<Item = Row<'a>>) -> RewardFunctionCase {
    let rows: Vec<Row<'_>> = rows.into_iter().collect();
    let texts = |part: fn(&Row<'_>) -> String| rows.iter().map(part).collect::<Array1<String>>();
    RewardFunctionCase {
        prompts: texts(|(prompt, ..)| (*prompt).to_owned()),
        completions: texts(|(_, completion, _)| (*completion).to_owned()),
        answers: texts(|(.., gold)| (*gold).to_owned()),
    }
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options) -> Result<RewardFunctionCase> {
    let template = Template::of(options);
    let markers = template.markers();
    let count = one(u, &[1, 1, 1, 2, 2, 3, 4])?;
    let mut rows = Vec::new();
    for _ in 0..count {
        let gold = gold(u, options)?;
        let answer = match u.choose_index(4)? {
            0 => one(u, &wrong_answers(options, &gold).iter().collect::<Vec<_>>())?.clone(),
            _ => gold.clone(),
        };
        let text = match u.choose_index(4)? {
            0 => template.render(PLAIN, &answer),
            1 => template.render(&prose(u)?, &answer),
            _ => completion(u, &markers, &answer)?,
        };
        let prompt = match u.choose_index(6)? {
            0 => String::new(),
            1 => format!("Is it {gold}?"),
            2 => format!("Answer like this: {}", template.render("why", &gold)),
            3 => one(u, NASTY)?.1.to_owned(),
            _ => prose(u)?,
        };
        rows.push((prompt, text, gold));
    }
    Ok(case(rows.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str()))))
}

pub(super) fn corners(options: &Options) -> Vec<RewardFunctionCase> {
    let template = Template::of(options);
    let markers = template.markers();
    let golds = golds(options);
    let wrong = wrong_answers(options, golds[0]);
    let right = |gold: &str| template.render(PLAIN, gold);
    let mut cases: Vec<RewardFunctionCase> = Vec::new();
    for gold in &golds {
        cases.push(case([("", "", *gold)]));
    }
    for gold in golds.iter().filter(|gold| gold.contains('\n')) {
        cases.push(case([("", right(gold).as_str(), *gold)]));
    }
    for shape in Shape::ALL {
        cases.push(case([("", shape.render(&markers, "so", golds[0]).as_str(), golds[0])]));
    }
    let first = golds[0];
    for text in [
        right(first),
        right(&wrong[0]),
        template.render("so\nit is", first),
        right(first).replace('\n', "\r\n"),
        right(""),
        right(" "),
        right("\n"),
        right(&format!("{first}\n{}", wrong[0])),
        right(&format!("{first}, {}", wrong[0])),
        right(&format!("{} {first}", wrong[0])),
        format!("{}\nI hope this helps!", right(first)),
        format!("\u{feff}{}", right(first)),
        template.render("\u{7b54}\u{6848} a < b && c", first),
        template.render(PLAIN, &format!("{first}.")),
        format!("{}{}", right(first), "ha ".repeat(110)),
        first.chars().take(1).collect(),
        "\0".to_owned(),
    ] {
        cases.push(case([("", text.as_str(), first)]));
    }
    for prompt in [format!("Is it {first}?"), right(first)] {
        cases.push(case([(prompt.as_str(), "", first)]));
    }
    let other = golds[1];
    let (a, b, c) = (right(first), right(other), right(golds[2]));
    cases.push(case([("", &*a, first), ("", &*b, other)]));
    cases.push(case([("", &*a, first), ("", &*a, other)]));
    cases.push(case([("", &*a, first), ("", &*b, other), ("", &*c, golds[2])]));
    cases.push(case([("", &*a, first), ("", &*right(&wrong[0]), first), ("", "", first)]));
    cases.retain(|case| valid(case, options).is_ok());
    cases.sort_by_cached_key(RewardFunction::measure);
    cases.dedup();
    cases
}

/// The smallest batches over a few texts, so that the minimum of a bug is always the same.
pub(super) fn small(options: &Options) -> Vec<RewardFunctionCase> {
    let template = Template::of(options);
    let mut golds = golds(options);
    golds.extend(match options.answer_family {
        AnswerFamily::Integer => &["0", "1", "-1"][..],
        AnswerFamily::Decimal => &["0.0", "0.1"],
        AnswerFamily::Text => &["b"],
        AnswerFamily::Latex => &["a"],
    });
    golds.retain(|gold| fits(options.answer_family, gold));
    golds.sort_by_key(|gold| texts::complexity(gold));
    golds.dedup();
    let texts = |gold: &str| {
        let mut texts = vec![String::new(), gold.to_owned(), template.answer_part(gold)];
        texts.extend(["", "a"].map(|reasoning| template.render(reasoning, gold)));
        texts
    };
    let mut cases = Vec::new();
    for gold in &golds {
        cases.push(case([("", "", *gold)]));
        cases.extend(texts(gold).iter().map(|text| case([("", text.as_str(), *gold)])));
    }
    let few = &golds[..3.min(golds.len())];
    for first in few {
        for second in few {
            for [one, other] in [[first, second], [second, first]] {
                for (one, other) in texts(one).iter().zip(texts(other)) {
                    cases.push(case([("", one.as_str(), *first), ("", other.as_str(), *second)]));
                    cases.push(case([("", one.as_str(), *first), ("", "", *second)]));
                    cases.push(case([("", "", *first), ("", one.as_str(), *second)]));
                }
            }
        }
    }
    cases
}

/// Simpler cases; gold answers stay answers.
pub(super) fn simpler(case: &RewardFunctionCase) -> Vec<RewardFunctionCase> {
    let blank = |case: &RewardFunctionCase| case.answers.iter().any(|gold| gold.trim().is_empty());
    let mut cases = rows::fewer_rows_or_words::<RewardFunction>(case);
    for field in [texts_of::<0>, texts_of::<1>, texts_of::<2>] {
        for row in 0..case.completions.len() {
            let texts = field(&mut case.clone())[row].clone();
            cases.extend(texts::simpler(&texts).into_iter().map(|simpler| {
                let mut case = case.clone();
                field(&mut case)[row] = simpler;
                case
            }));
        }
    }
    if !blank(case) {
        cases.retain(|case| !blank(case));
    }
    cases
}

/// The prompts, the completions or the answers.
fn texts_of<const FIELD: usize>(case: &mut RewardFunctionCase) -> &mut Array1<String> {
    match FIELD {
        0 => &mut case.prompts,
        1 => &mut case.completions,
        _ => &mut case.answers,
    }
}

/// Rows, then how complex the texts are, then how early the complex ones stand.
pub(super) fn measure(case: &RewardFunctionCase) -> Measure {
    let count = case.completions.len();
    let (mut all, mut early) = (0, 0);
    for texts in [&case.prompts, &case.completions, &case.answers] {
        for (row, text) in texts.iter().enumerate() {
            let cost = texts::complexity(text);
            all += cost;
            early += cost * (count - row) as u64;
        }
    }
    Measure(vec![count as u64, all, early])
}

/// Whether a row's texts have something in common.
fn any(case: &RewardFunctionCase, of: impl Fn(Row<'_>) -> bool) -> bool {
    (0..case.completions.len())
        .any(|row| of((&case.prompts[row], &case.completions[row], &case.answers[row])))
}

pub(super) fn classes() -> Vec<Class<RewardFunction>> {
    type Contains = fn(&RewardFunctionCase, &Options) -> bool;
    let class =
        |id, meaning, contains: Contains| Class { id, meaning, contains, generated: |_, _| true };
    vec![
        class(
            "gold-completion",
            "a well-formed completion with the gold answer",
            |case, options| {
                let template = Template::of(options);
                (0..case.completions.len()).any(|row| template.is_gold(case, row))
            },
        ),
        class(
            "wrong-completion",
            "a well-formed completion with another answer",
            |case, options| {
                let template = Template::of(options);
                (0..case.completions.len()).any(|row| {
                    template.parts(&case.completions[row]).is_some() && !template.is_gold(case, row)
                })
            },
        ),
        class("empty-completion", "a completion without a character", |case, _| {
            any(case, |(_, text, _)| text.is_empty())
        }),
        class(
            "no-marker",
            "a completion without a tag or word of the template",
            |case, options| {
                let template = Template::of(options);
                any(case, |(_, text, _)| {
                    !text.is_empty() && !template.marks().iter().any(|mark| text.contains(*mark))
                })
            },
        ),
        class("malformed", "some of the template, and not all of it", |case, options| {
            let template = Template::of(options);
            any(case, |(_, text, _)| {
                let some = template.marks().is_empty()
                    || template.marks().iter().any(|mark| text.contains(*mark));
                some && (template.parts(text).is_none() || template.marks().is_empty())
            })
        }),
        class("gold-in-the-prompt", "a prompt that mentions the gold answer", |case, _| {
            any(case, |(prompt, _, gold)| mentions(prompt, gold))
        }),
        class("several-lines", "a completion with a line break in it", |case, _| {
            any(case, |(_, text, _)| text.trim().contains('\n'))
        }),
        class("windows-lines", "a completion with a carriage return", |case, _| {
            any(case, |(_, text, _)| text.contains('\r'))
        }),
        class("not-ascii", "a completion with characters outside ASCII", |case, _| {
            any(case, |(_, text, _)| !text.is_ascii())
        }),
        class("long-tail", "more than 300 characters after the gold answer", |case, _| {
            any(case, |(_, text, gold)| {
                text.rfind(gold).is_some_and(|at| text[at..].chars().count() > 300)
            })
        }),
        class("several-rows", "two completions or more with different gold answers", |case, _| {
            case.answers.iter().any(|gold| *gold != case.answers[0])
        }),
        Class {
            id: "blank-answer",
            meaning: "a well-formed completion whose answer is blank",
            contains: |case, options| {
                let template = Template::of(options);
                any(case, |(_, text, _)| {
                    let blank = |answer: &str| answer.trim().is_empty();
                    template.parts(text).is_some() && template.answer_in(text).is_some_and(blank)
                })
            },
            generated: |options, _| Template::of(options).closes(),
        },
    ]
}
