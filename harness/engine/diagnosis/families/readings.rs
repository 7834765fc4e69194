//! Texts that are read otherwise: another answer, another fallback, other blocks, another form.

use std::collections::BTreeMap;

use crate::diagnosis::evidence::{Cell, Given, Observed, cells};
use crate::diagnosis::hypothesis::Part;
use crate::diagnosis::reading::Reading;
use crate::diagnosis::reading::{Begin, Clean, Counts, End, How, Kept, Otherwise, Outside, Pick};
use crate::diagnosis::score::Bench;
use crate::diagnosis::text::Text;
use shakedown_core::contract::reading::Reader;
use shakedown_core::value::record::{Shared, floats};

/// What somebody makes of a text without an answer.
const MADE: [Text; 12] = [
    Text::Null,
    Text::Empty,
    Text::Trimmed,
    Text::FirstLine,
    Text::LastLine,
    Text::FirstWord,
    Text::LastWord,
    Text::FirstNumber,
    Text::LastNumber,
    Text::FirstParagraph,
    Text::AfterThink,
    Text::Lower,
];

/// Marks of a form, of which every subset is asked for.
const MARKS: usize = 6;

pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let evidence = bench.evidence;
    let Some(first) = evidence.observed.first() else { return Vec::new() };
    let reads = |reading: &Reading| {
        Reading::output(&[reading], evidence.contract, &first.case, &*evidence.options).is_some()
    };
    let all = [answers(bench), remains(), forms(bench, &first.case)].concat();
    all.into_iter().filter(reads).map(Part::Read).collect()
}

/// Of contracts in which an answer is looked for.
fn answers(bench: &Bench<'_>) -> Vec<Reading> {
    let spans = Begin::ALL.into_iter().flat_map(|begin| End::ALL.map(|end| (begin, end)));
    let mut all: Vec<Reading> = spans.map(|(begin, end)| Reading::Between(begin, end)).collect();
    all.extend(Pick::ALL.map(Reading::Picked));
    all.extend(Counts::ALL.map(Reading::Counts));
    all.extend(MADE.map(|text| Reading::Otherwise(Otherwise::Made(text))));
    all.extend([Otherwise::Boxed, Otherwise::BehindTheColon].map(Reading::Otherwise));
    all.extend(always(bench).map(|text| Reading::Otherwise(Otherwise::Always(text))));
    all
}

/// The wrong text that is given most often.
fn always(bench: &Bench<'_>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (expected, given) in bench.chosen().filter_map(Observed::answered) {
        for (cell, given) in cells(expected).zip(given) {
            if let (Given::Text(Some(text)), Cell::Text(_)) = (given, &cell)
                && bench.evidence.wrong(given, &cell)
            {
                *counts.entry(text.clone()).or_default() += 1;
            }
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.filter(|(text, count)| *count > 2 && !text.is_empty()).map(|(text, _)| text)
}

/// Of contracts that keep what stays of a text.
fn remains() -> Vec<Reading> {
    let mut all = Clean::ALL.map(Reading::Clean).to_vec();
    all.extend(Outside::ALL.map(Reading::Outside));
    all.extend(Kept::ALL.map(Reading::Kept));
    all
}

/// Of contracts that score a form: which marks are asked for, or what each of them counts.
fn forms(bench: &Bench<'_>, case: &Shared) -> Vec<Reading> {
    let marks = std::cell::RefCell::new(Vec::<String>::new());
    let form = |_: &str, all: &[String]| {
        *marks.borrow_mut() = all.to_vec();
        0.0
    };
    let evidence = bench.evidence;
    evidence.contract.reread(&**case, &*evidence.options, &Reader::Form(&form));
    let marks = marks.into_inner();
    let ordered = Reading::Form { marks: marks.clone(), how: How::InOrder, all: true };
    let mut distinct: Vec<String> = Vec::new();
    for mark in marks {
        if !distinct.contains(&mark) {
            distinct.push(mark);
        }
    }
    if distinct.is_empty() || distinct.len() > MARKS {
        return Vec::new();
    }
    let mut all = Vec::new();
    for subset in 1..1_usize << distinct.len() {
        let chosen = distinct.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1);
        let marks: Vec<String> = chosen.map(|(_, mark)| mark.clone()).collect();
        for how in [How::There, How::Once] {
            all.push(Reading::Form { marks: marks.clone(), how, all: true });
            if marks.len() > 1 {
                all.push(Reading::Form { marks: marks.clone(), how, all: false });
            }
        }
    }
    all.push(ordered);
    all.extend(
        [How::There, How::Once].into_iter().filter_map(|how| weights(bench, &distinct, how)),
    );
    all
}

/// The weights of the marks that explain the scores best, by least squares.
fn weights(bench: &Bench<'_>, marks: &[String], how: How) -> Option<Reading> {
    let mut rows: Vec<(Vec<f64>, f64)> = Vec::new();
    for observed in bench.chosen() {
        let Some((_, given)) = observed.answered() else { continue };
        // Scores of nothing and of everything say which share of the range a score is.
        let of = |form: &dyn Fn(&str, &[String]) -> f64| -> Option<Vec<f64>> {
            let evidence = bench.evidence;
            let reader = Reader::Form(form);
            let output = evidence.contract.reread(&*observed.case, &*evidence.options, &reader)?;
            Some(floats(&*output).first()?.1.iter().copied().collect())
        };
        let (least, full) = (of(&|_, _| 0.0)?, of(&|_, _| 1.0)?);
        let there: Option<Vec<Vec<f64>>> =
            marks.iter().map(|mark| of(&|text, _| f64::from(how.holds(text, mark)))).collect();
        let there = there?;
        for (row, given) in given.iter().enumerate().take(least.len()) {
            let Given::Number(score) = given else { continue };
            let share = |x: f64| (x - least[row]) / (full[row] - least[row]);
            let features = there.iter().map(|scores| share(scores[row])).chain([1.0]).collect();
            rows.push((features, share(*score)));
        }
    }
    let solved = least_squares(&rows, marks.len() + 1)?;
    let rounded = |x: f64| (x * 1e4).round() / 1e4 + 0.0;
    let weights: Vec<f64> = solved.into_iter().map(rounded).collect();
    let each = marks.iter().cloned().zip(weights.iter().copied()).collect();
    Some(Reading::Weights { marks: each, how, base: weights[marks.len()] })
}

/// The solution of a linear system in the sense of least squares; `None` where there are several.
fn least_squares(rows: &[(Vec<f64>, f64)], unknowns: usize) -> Option<Vec<f64>> {
    let mut system = vec![vec![0.0; unknowns + 1]; unknowns];
    for (features, value) in rows.iter().filter(|(_, value)| value.is_finite()) {
        for (line, feature) in system.iter_mut().zip(features) {
            for (sum, other) in line.iter_mut().zip(features.iter().chain([value])) {
                *sum += feature * other;
            }
        }
    }
    for at in 0..unknowns {
        let largest =
            (at..unknowns).max_by(|a, b| system[*a][at].abs().total_cmp(&system[*b][at].abs()))?;
        system.swap(at, largest);
        if system[at][at].abs() < 1e-9 {
            return None;
        }
        let pivot = system[at].clone();
        for (_, other) in system.iter_mut().enumerate().filter(|(line, _)| *line != at) {
            let factor = other[at] / pivot[at];
            other.iter_mut().zip(&pivot).for_each(|(x, of_pivot)| *x -= factor * of_pivot);
        }
    }
    Some((0..unknowns).map(|at| system[at][unknowns] / system[at][at]).collect())
}
