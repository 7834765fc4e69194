//! The reference implementation of `reward-function`: reads a completion as its template says.

use super::template::{Template, is_tag};
use shakedown_core::contract::reading::{Find, Marked, Otherwise, Reader};
use shakedown_core::generate::completions::Markers;

use super::{Judges, Options, RewardFunctionCase, RewardFunctionOutput};

/// One row: what was asked, what was said, and what would have been right.
pub(super) struct Row<'a> {
    pub(super) prompt: &'a str,
    pub(super) completion: &'a str,
    pub(super) gold: &'a str,
}

/// The scores of all rows, each a share of the range: 0 is the least score and 1 the largest.
pub(super) fn scored(
    case: &RewardFunctionCase,
    options: &Options,
    share: impl Fn(&Row<'_>, &Template) -> f64,
) -> RewardFunctionOutput {
    let template = Template::of(options);
    let rows = 0..case.completions.len();
    let shares = rows.map(|row| {
        let row = Row {
            prompt: &case.prompts[row],
            completion: &case.completions[row],
            gold: &case.answers[row],
        };
        share(&row, &template)
    });
    let [lo, hi] = options.range;
    shares
        .map(|share| if share == 1.0 { hi } else { lo + (hi - lo) * share })
        .collect::<Vec<_>>()
        .into()
}

pub(super) fn rewards(case: &RewardFunctionCase, options: &Options) -> RewardFunctionOutput {
    scored(case, options, |row, template| match options.judges {
        Judges::Correctness => {
            let answer = template.answer_in(row.completion).map(str::trim);
            share(answer.is_some_and(|answer| !answer.is_empty() && answer == row.gold.trim()))
        }
        Judges::Format => share(template.parts(row.completion).is_some()),
        Judges::IncrementalFormat => tags(row.completion, template),
        Judges::None => {
            let length = row.completion.chars().count() as f64;
            length / (length + 10.0)
        }
    })
}

/// The scores of somebody who reads completions otherwise.
pub(super) fn reread(
    case: &RewardFunctionCase,
    options: &Options,
    reader: &Reader<'_>,
) -> Option<RewardFunctionOutput> {
    match (reader, options.judges) {
        (Reader::Answer { find, otherwise }, Judges::Correctness) => {
            Some(scored(case, options, |row, template| {
                let answer = found(row.completion, template, *find, *otherwise);
                let answer = answer.as_deref().map(str::trim);
                share(answer.is_some_and(|answer| !answer.is_empty() && answer == row.gold.trim()))
            }))
        }
        (Reader::Form(form), Judges::Format | Judges::IncrementalFormat) => {
            let marks: Vec<String> =
                Template::of(options).marks().into_iter().map(str::to_owned).collect();
            Some(scored(case, options, |row, _| form(row.completion, &marks)))
        }
        _ => None,
    }
}

/// The answer of somebody who reads otherwise.
fn found(
    text: &str,
    template: &Template,
    find: Option<Find<'_>>,
    otherwise: Option<Otherwise<'_>>,
) -> Option<String> {
    let Markers { reasoning, answer: [open, close] } = template.markers();
    let open = if open.is_empty() { &reasoning[1] } else { &open };
    let answer = match find {
        Some(find) => {
            let parts = text.split(open.as_str()).skip(usize::from(!open.is_empty()));
            let blocks = match close.is_empty() {
                true => parts.collect(),
                false => parts.filter_map(|part| Some(part.split_once(&*close)?.0)).collect(),
            };
            find(&Marked { text, open, close: &close, blocks, last: true })
        }
        None => template.answer_in(text).map(str::to_owned),
    };
    match (answer, otherwise) {
        (None, Some(otherwise)) => otherwise(text),
        (answer, _) => answer,
    }
}

/// All or nothing.
pub(super) fn share(good: bool) -> f64 {
    if good { 1.0 } else { 0.0 }
}

/// The share of the marks that stand in a text as often as they should.
fn tags(text: &str, template: &Template) -> f64 {
    let marks = template.marks();
    let placed = marks.iter().filter(|mark| {
        let (found, wanted) = (text.matches(**mark).count(), template.count(mark));
        if is_tag(mark) { found == wanted } else { found >= wanted }
    });
    placed.count() as f64 / marks.len() as f64
}

/// Full score where the answer and the gold answer, both without white space around them, agree.
pub(super) fn judged(
    case: &RewardFunctionCase,
    options: &Options,
    agree: impl Fn(&str, &str) -> bool,
) -> RewardFunctionOutput {
    scored(case, options, |row, template| {
        let answer = template.answer_in(row.completion).map(str::trim);
        share(answer.is_some_and(|answer| agree(answer, row.gold.trim())))
    })
}
