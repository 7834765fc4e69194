//! Cases of `answer-extractor`: random draws, corners and classes. A text is a completion in one
//! of its shapes, or a form of the marks that implementations trip over, around an answer that
//! they change.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, arr1};

use super::oracle::{Reading, readings};
use super::{AnswerExtractor, AnswerExtractorCase, Format, Options};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::completions;
use shakedown_core::generate::completions::{AnswerFamily, NASTY, Shape};
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::masks;

/// The longest text in bytes, and the most rows.
const LONGEST: usize = 1 << 14;
const ROWS: usize = 64;

pub(super) fn valid(case: &AnswerExtractorCase) -> std::result::Result<(), String> {
    rows::check_axes::<AnswerExtractor>(case)?;
    if case.texts.len() > ROWS {
        return Err(format!("{} texts, expected {ROWS} at the most", case.texts.len()));
    }
    match case.texts.indexed_iter().find(|(_, text)| text.len() > LONGEST) {
        Some((row, text)) => {
            Err(format!("texts[{row}] has {} bytes, expected {LONGEST} at the most", text.len()))
        }
        None => Ok(()),
    }
}

/// Answers that somebody changes on the way: signs, separators, white space, entities, braces.
const ANSWERS: &[&str] = &[
    "-5",
    "+3",
    "1,000",
    "3-5",
    "-5.0",
    "42.",
    "1e3",
    "5%",
    "$5",
    "\\$5",
    "New York",
    "a  b",
    " a ",
    "a < b",
    "a & b",
    "a &lt; b",
    "A",
    "None",
    "",
    " ",
    "\u{a0}a",
    "(1, 2)",
    "[1]",
    "{1}",
    "\\frac{1}{2}",
    "\\frac{\\sqrt{2}}{2}",
    "x^{y^{z}}",
    "\\{1, 2\\}",
    "\\{1",
    "1\\}",
    "1}",
    "{1",
    "1\\\\",
    "a\nb",
    "a\r\nb",
    "\n1\n",
    "\"a\"",
    "*a*",
    "a=b",
    "answer: 1",
    "<b>1</b>",
];

/// Forms of the marks in which `x` is an answer, or almost.
fn forms(options: &Options, x: &str) -> Vec<String> {
    let tag = &options.tag;
    match options.format {
        Format::XmlTag => vec![
            format!("<{tag}>{x}</{tag}>."),
            format!("<{}>{x}</{}>", tag.to_uppercase(), tag.to_uppercase()),
            format!("<{tag} n=\"1\">{x}</{tag}>"),
            format!("<{tag} >{x}</{tag} >"),
            format!("< {tag}>{x}</ {tag}>"),
            format!("<{tag}s>{x}</{tag}s>"),
            format!("<{tag}/>{x}"),
            format!("<{tag}>{x}<{tag}>"),
            format!("</{tag}>{x}<{tag}>"),
            format!("<{tag}>{x}</{tag}"),
            format!("&lt;{tag}&gt;{x}&lt;/{tag}&gt;"),
            format!("`<{tag}>`{x}`</{tag}>`"),
        ],
        Format::Boxed => vec![
            format!("$\\boxed{{{x}}}$."),
            format!("\\boxed {x}$"),
            format!("\\boxed {{{x}}}"),
            format!("\\fbox{{{x}}}"),
            format!("\\boxed{{{{{x}}}"),
            format!("\\boxed{{{x}}}}}"),
            format!("\\boxed{{\\boxed{{{x}}}}}"),
            format!("\\\\boxed{{{x}}}"),
            format!("boxed{{{x}}}"),
            format!("\\boxed{{\\text{{{x}}}}}"),
            format!("\\boxed({x})"),
            format!("{{\\boxed{{{x}}}}}"),
        ],
        Format::Hash => vec![
            format!("#### {x}."),
            format!("####{x}"),
            format!("##### {x}"),
            format!("### {x}"),
            format!("#### {x} ####"),
            format!("#### {x} #### {x}"),
            format!("####\n{x}"),
            format!("####\t{x}\r\n"),
            format!("####  {x}"),
            format!("# # # # {x}"),
            format!("so #### {x}\nwell"),
            format!("#### {x}\u{2028}b"),
        ],
    }
}

fn answer(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.choose_index(4)? {
        0 => one(u, ANSWERS)?.to_owned(),
        1 => one(u, NASTY)?.1.to_owned(),
        _ => one(u, AnswerFamily::ALL)?.draw(u)?,
    })
}

fn text(u: &mut Unstructured<'_>, options: &Options) -> Result<String> {
    let markers = options.markers();
    let answer = answer(u)?;
    if !chance(u, 64)? {
        return completions::completion(u, &markers, &answer);
    }
    let forms = forms(options, &answer);
    let form = forms[u.choose_index(forms.len())?].clone();
    let text = [completions::prose(u)?, form].concat();
    if chance(u, 128)? { completions::damaged(u, &text, &markers) } else { Ok(text) }
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options) -> Result<AnswerExtractorCase> {
    let (rows, _) = masks::shape(u)?;
    let texts = (0..rows).map(|_| text(u, options)).collect::<Result<Vec<_>>>()?;
    Ok(AnswerExtractorCase { texts: Array1::from_vec(texts) })
}

/// A case of one text.
fn alone(text: impl Into<String>) -> AnswerExtractorCase {
    AnswerExtractorCase { texts: arr1(&[text.into()]) }
}

pub(super) fn corners(options: &Options) -> Vec<AnswerExtractorCase> {
    let markers = options.markers();
    let render = |answer: &str| options.rendered(answer);
    let mut cases = vec![alone("")];
    cases.extend(Shape::ALL.iter().map(|shape| alone(shape.render(&markers, "so 1", "2"))));
    cases.extend(forms(options, "1").into_iter().map(alone));
    let changed =
        ["-5", "+3", "1,000", "A", "", " a ", "\\frac{\\sqrt{2}}{2}", "\\{1", "a\nb", "é"];
    // The answer extended by each separator, at either end and in the middle.
    for separator in [" ", ",", "\n"] {
        for answer in [["a", ""], ["", "a"], ["a", "b"]] {
            cases.push(alone(render(&answer.join(separator))));
        }
    }
    cases.extend(changed.map(|answer| alone(render(answer))));
    // What somebody strips off, each around several answers.
    let quoted = ["\"a\"", "\"b\"", "'a'", "*a*", "**a**"];
    cases.extend(quoted.map(|answer| alone(render(answer))));
    cases.push(alone(["1", "2", "3"].map(render).join("\n")));
    cases.push(alone(format!("a < b & c\n{}", render("1"))));
    cases.push(alone(format!("{}\n{}", render("1"), "a".repeat(300))));
    cases.push(alone(render("1").replace('1', "1\r\n") + "\r\n"));
    for texts in [
        vec![render("1"), render("2")],
        vec![render("1"), String::new()],
        vec![String::new(), render("1")],
    ] {
        cases.push(AnswerExtractorCase { texts: Array1::from_vec(texts) });
    }
    let many =
        (0..12).map(|row| if row % 5 == 4 { "so".to_owned() } else { render(&row.to_string()) });
    cases.push(AnswerExtractorCase { texts: many.collect() });
    cases.sort_by_cached_key(AnswerExtractor::measure);
    cases
}

/// Every short answer in its marks, alone, with a little before and after it and beside another;
/// marks without their other half; long texts around an answer.
pub(super) fn small(options: &Options) -> Vec<AnswerExtractorCase> {
    let [open, close] = options.marks();
    let render = |answer: &str| options.rendered(answer);
    let mut texts: Vec<String> =
        ["a", "1", " ", "\n", "<", "&", "#", "{", "a b"].map(str::to_owned).to_vec();
    let short = [
        "a", "b", "1", "2", "A", "é", "-1", "+1", "1,", ",1", "1,1", "-a", "a.", ".", "1.", "",
        " ", " a", "a ", "a\n", "\na", "a\nb", "a\na", "\n", "a b", "a a", "a  a", "a\n\na", "<",
        "&", "&lt;", "&gt;", "&amp;", "{}", "{a}", "{{}}", "{{a}}", "{}{}", "{}a", "a{}", "\\",
        "\\a", "'a'", "\"", "*", "$", "1-1", "-1.1", "+", "%", "(", "=", ":", "a,b", "a=b",
    ];
    for answer in short {
        let answer = render(answer);
        for before in ["", "a", "\n", "a\n", " ", "<", "&", "<think>", "1 "] {
            for after in ["", "a", "\n", "\na", ".", " ", "\n\n", "}", "<"] {
                if before.is_empty() || after.is_empty() {
                    texts.push([before, &answer, after].concat());
                }
            }
        }
    }
    for [first, second] in [["a", "b"], ["b", "a"], ["a", "a"], ["", "a"], ["a", ""], ["1", "2"]] {
        for between in ["", "a", "\n", " "] {
            texts.push([&render(first), between, &render(second)].concat());
        }
    }
    for mark in [&open, &close] {
        for (before, after) in
            [("", ""), ("a", ""), ("", "a"), ("a", "b"), ("", "\na"), ("a\n", "")]
        {
            texts.push([before, mark, after].concat());
        }
    }
    texts.push([&close, "a", open.as_str()].concat());
    for count in [100, 300] {
        // One character more than a reader of the last ones sees.
        let run = "a".repeat(count - render("a").len());
        texts.push(format!("{}\n{run}", render("a")));
        texts.push(format!("{run}{}", render("a")));
    }
    let mut cases: Vec<AnswerExtractorCase> = texts.into_iter().map(alone).collect();
    for rows in [["a", "b"], ["b", "a"], ["a", "a"]] {
        let rows = rows.map(render);
        cases.push(AnswerExtractorCase { texts: arr1(&rows) });
        for row in rows {
            for other in ["", "a"].map(str::to_owned) {
                cases.push(AnswerExtractorCase { texts: arr1(&[row.clone(), other.clone()]) });
                cases.push(AnswerExtractorCase { texts: arr1(&[other, row.clone()]) });
            }
        }
    }
    cases
}

pub(super) fn classes() -> Vec<Class<AnswerExtractor>> {
    /// Whether any text and what the strictest reader sees in it have a property.
    fn any(
        case: &AnswerExtractorCase,
        options: &Options,
        is: impl Fn(&str, &Reading<'_>) -> bool,
    ) -> bool {
        case.texts.iter().any(|text| is(text, &readings(text, options)[0]))
    }
    /// Whether any answer has a property.
    fn answer(case: &AnswerExtractorCase, options: &Options, is: impl Fn(&str) -> bool) -> bool {
        any(case, options, |_, reading| match reading {
            Reading::Answers(answers) => answers.iter().any(|answer| is(answer)),
            _ => false,
        })
    }
    let always: fn(&Options, shakedown_core::value::place::Dtype) -> bool = |_, _| true;
    let marked: fn(&Options, shakedown_core::value::place::Dtype) -> bool =
        |options, _| options.format != Format::Hash;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "one-answer",
            "a text with one answer",
            |case: &AnswerExtractorCase, options: &Options| {
                any(
                    case,
                    options,
                    |_, reading| matches!(reading, Reading::Answers(a) if a.len() == 1),
                )
            },
            always,
        ),
        class(
            "several-answers",
            "a text with more than one",
            |case, options| {
                any(
                    case,
                    options,
                    |_, reading| matches!(reading, Reading::Answers(a) if a.len() > 1),
                )
            },
            always,
        ),
        class(
            "no-mark",
            "a text without an opening or closing mark",
            |case, options| {
                let [open, close] = options.marks().map(|mark| mark.trim().to_owned());
                any(case, options, |text, _| {
                    !text.contains(&open) && (close.is_empty() || !text.contains(&close))
                })
            },
            always,
        ),
        class(
            "unbalanced",
            "a text with marks, none of which is balanced",
            |case, options| {
                let open = &options.marks()[0];
                any(case, options, |text, reading| {
                    *reading == Reading::Missing && text.contains(open)
                })
            },
            marked,
        ),
        class(
            "left-open",
            "a text whose answer no convention settles",
            |case, options| any(case, options, |_, reading| *reading == Reading::Open),
            always,
        ),
        class(
            "empty-answer",
            "marks with nothing or white space in them",
            |case, options| answer(case, options, |answer| answer.trim().is_empty()),
            always,
        ),
        class(
            "white-space-around",
            "an answer with white space around it",
            |case, options| {
                answer(case, options, |answer| answer.trim() != answer && !answer.trim().is_empty())
            },
            always,
        ),
        class(
            "several-lines",
            "an answer over several lines",
            |case, options| answer(case, options, |answer| answer.trim().contains('\n')),
            marked,
        ),
        class(
            "sign",
            "an answer that begins with a sign",
            |case, options| answer(case, options, |answer| answer.trim().starts_with(['-', '+'])),
            always,
        ),
        class(
            "nested-braces",
            "an answer with braces in braces",
            |case, options| {
                answer(case, options, |answer| {
                    let depths = answer.chars().scan(0, |depth, c| {
                        *depth += i32::from(c == '{') - i32::from(c == '}');
                        Some(*depth)
                    });
                    depths.max().is_some_and(|depth| depth > 1)
                })
            },
            always,
        ),
        class(
            "not-ascii",
            "an answer beyond ASCII",
            |case, options| answer(case, options, |answer| !answer.is_ascii()),
            always,
        ),
        class(
            "carriage-return",
            "a text with lines that end as on Windows",
            |case, options| any(case, options, |text, _| text.contains("\r\n")),
            always,
        ),
        class(
            "newline-before",
            "an answer after a line end",
            |case, options| {
                let open = &options.marks()[0];
                any(case, options, |text, reading| {
                    let before = text.split(open.as_str()).next().unwrap_or("");
                    matches!(reading, Reading::Answers(_)) && before.contains('\n')
                })
            },
            always,
        ),
        class(
            "less-than-or-ampersand",
            "an answer in a text with `<` or `&` besides the marks",
            |case, options| {
                any(case, options, |text, reading| {
                    matches!(reading, Reading::Answers(_))
                        && (text.contains("< ") || text.contains('&'))
                })
            },
            always,
        ),
        class(
            "far-from-the-end",
            "an answer more than 300 characters before the end of its text",
            |case, options| {
                let open = &options.marks()[0];
                any(case, options, |text, reading| {
                    let at = text.rfind(open.as_str()).unwrap_or(text.len());
                    matches!(reading, Reading::Answers(_)) && text.len() - at > 300
                })
            },
            always,
        ),
        class("one-row", "N = 1", |case, _| case.texts.len() == 1, always),
        class(
            "several-rows",
            "two texts with different answers",
            |case, options| {
                let answers: Vec<_> = case.texts.iter().map(|t| readings(t, options)).collect();
                let found = |of: &&Vec<Reading<'_>>| matches!(of[0], Reading::Answers(_));
                let found: Vec<_> = answers.iter().filter(found).map(|of| &of[0]).collect();
                found.iter().any(|answer| *answer != found[0])
            },
            always,
        ),
        class("many-rows", "N ≥ 12", |case, _| case.texts.len() >= 12, always),
    ]
}
