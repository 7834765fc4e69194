//! Terms of the reference: missing, negated, scaled, divided by another count, through a function,
//! or without their gradient.

use super::counts;
use super::options::closest;
use crate::diagnosis::evidence::{Given, Observed};
use crate::diagnosis::hypothesis::{Hypothesis, Part};
use crate::diagnosis::score::Bench;
use crate::host::function::guarded;
use shakedown_core::numeric::function::Function;
use shakedown_core::numeric::terms::{TermChange, named_in};

/// What people do to a term.
const FACTORS: [f64; 4] = [0.0, -1.0, 2.0, 0.5];

/// Factors between which the best one may lie, where no line leads to it.
const GRID: [f64; 14] = [-2.0, -1.0, -0.5, 0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.5, 2.0, 4.0];

/// Where people clamp a term.
const LIMITS: [f64; 4] = [1.0, 5.0, 10.0, 20.0];

/// Cases that are looked at: for the names of terms, and to fit a factor.
const CASES: usize = 24;

/// Factors are the same within this share.
const SAME: f64 = 1e-2;

pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let mut parts = Vec::new();
    for term in names(bench) {
        let asked = asked(bench, term);
        let mut changes = FACTORS.map(TermChange::Times).to_vec();
        changes.extend(fitted(bench, term, &asked).map(TermChange::Times));
        changes.push(TermChange::Detached);
        changes.extend(acting(bench, term).into_iter().map(TermChange::Through));
        parts.extend(changes.into_iter().map(|change| Part::Term { term, change }));
        parts.extend(divided(bench, term, &asked));
    }
    parts
}

/// The terms that the reference has under the declared options. What is made of others comes first:
/// where a term and all of which it is made do the same, the term is told.
fn names(bench: &Bench<'_>) -> Vec<&'static str> {
    let evidence = bench.evidence;
    let mut names: Vec<&'static str> = Vec::new();
    for observed in bench.chosen().take(CASES) {
        let reference =
            || evidence.contract.on_tape(&*observed.case, &*evidence.options, evidence.place.dtype);
        // A reference may refuse a case.
        for name in named_in(|| guarded(|| Some(reference()))) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.reverse();
    names
}

/// The functions that make a difference: others are the tape alone, whose rounding is of its own.
fn acting(bench: &Bench<'_>, term: &'static str) -> Vec<Function> {
    let Some(whole) = times(bench, term, 1.0) else { return Vec::new() };
    let cells = |hypothesis: &Hypothesis| -> Vec<Option<u64>> {
        let cases = bench.first().iter().map(|at| bench.observed(*at));
        let cells = cases.flat_map(|observed| hypothesis.cells(bench.evidence, observed));
        let bits = |cell| if let Given::Number(x) = cell { Some(x.to_bits()) } else { None };
        cells.map(bits).collect()
    };
    let whole = cells(&whole);
    let limits = LIMITS.into_iter().flat_map(Function::limits);
    let mut functions: Vec<Function> = Function::ALL.into_iter().chain(limits).collect();
    functions.retain(|function| {
        let change = TermChange::Through(*function);
        let through = Hypothesis::of(bench.evidence, Part::Term { term, change });
        through.is_some_and(|through| cells(&through) != whole)
    });
    functions
}

/// What a case asks a term to be multiplied by: the factors of its cells, in order.
type Asked<'a> = (&'a Observed, Vec<f64>);

/// With one term times a number.
fn times(bench: &Bench<'_>, term: &'static str, factor: f64) -> Option<Hypothesis> {
    let change = TermChange::Times(factor);
    Hypothesis::of(bench.evidence, Part::Term { term, change })
}

/// The factor of a term that comes closest to what the component gives, if any.
fn fitted(bench: &Bench<'_>, term: &'static str, asked: &[Asked<'_>]) -> Option<f64> {
    let mut all: Vec<f64> = asked.iter().flat_map(|(_, factors)| factors.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    let near = agreed(&all).map(|x| [0.98, 1.0, 1.02].map(|by| by * x));
    let grid = near.map_or_else(|| GRID.to_vec(), |near| near.to_vec());
    closest(bench, grid, |factor| times(bench, term, factor))
        .filter(|factor| *factor != 1.0 && !FACTORS.contains(factor))
}

/// The term divided by other counts, where each case asks for a factor of its own.
fn divided(bench: &Bench<'_>, term: &'static str, asked: &[Asked<'_>]) -> Vec<Part> {
    let of_cases = asked.iter().filter_map(|(case, factors)| Some((*case, agreed(factors)?)));
    let pairs = counts::pairs(bench, &of_cases.collect::<Vec<_>>()).into_iter();
    pairs.map(|[by, instead_of]| Part::TermDivided { term, by, instead_of }).collect()
}

/// What the cases ask a term to be multiplied by. Of a term of a sum, all outputs and gradients lie
/// on a line through those without the term and those with it.
fn asked<'a>(bench: &Bench<'a>, term: &'static str) -> Vec<Asked<'a>> {
    let (Some(without), Some(whole)) = (times(bench, term, 0.0), times(bench, term, 1.0)) else {
        return Vec::new();
    };
    let wrong = bench.chosen().filter(|one| bench.is_wrong(one)).take(CASES);
    wrong.map(|one| (one, factors_of(bench, one, [&without, &whole]))).collect()
}

/// The factor that most cells ask for, of factors in order.
fn agreed(factors: &[f64]) -> Option<f64> {
    let median = *factors.get(factors.len() / 2)?;
    let near = factors.iter().filter(|factor| (*factor - median).abs() <= SAME * median.abs());
    (2 * near.count() > factors.len()).then_some(median)
}

/// The factors that the cells of a case ask for, each by itself.
fn factors_of(bench: &Bench<'_>, observed: &Observed, ends: [&Hypothesis; 2]) -> Vec<f64> {
    let Some((_, given)) = observed.answered() else { return Vec::new() };
    let [without, whole] = ends.map(|end| end.cells(bench.evidence, observed));
    let ends = without.iter().zip(&whole);
    let of_cell = |(given, (without, whole)): (&Given, (&Given, &Given))| {
        let (Given::Number(given), Given::Number(without), Given::Number(whole)) =
            (given, without, whole)
        else {
            return None;
        };
        // What differs by rounding only says nothing.
        let says = (whole - without).abs() > 1e-3 * (whole.abs() + without.abs());
        let factor = (given - without) / (whole - without);
        (says && factor.is_finite()).then_some(factor)
    };
    let mut factors: Vec<f64> = given.iter().zip(ends).filter_map(of_cell).collect();
    factors.sort_by(f64::total_cmp);
    factors
}
