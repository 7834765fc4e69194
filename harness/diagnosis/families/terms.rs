//! Terms of the reference: missing, negated, scaled, or without their gradient.

use super::outputs::shortest;
use crate::diagnosis::evidence::{Given, Observed};
use crate::diagnosis::hypothesis::{Hypothesis, Part};
use crate::diagnosis::score::Bench;
use crate::host::function::guarded;
use crate::numeric::terms::{TermChange, named_in};

/// What people do to a term.
const FACTORS: [f64; 4] = [0.0, -1.0, 2.0, 0.5];

/// Cases that are looked at: for the names of terms, and to fit a factor.
const CASES: usize = 24;

/// Factors are the same within this share.
const SAME: f64 = 1e-2;

pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let mut parts = Vec::new();
    for term in names(bench) {
        let mut changes = FACTORS.map(TermChange::Times).to_vec();
        changes.extend(fitted(bench, term).map(TermChange::Times));
        changes.push(TermChange::Detached);
        parts.extend(changes.into_iter().map(|change| Part::Term { term, change }));
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

/// The factor of a term that makes of what the reference gives what the component gives. Of a sum,
/// all outputs and gradients lie on a line through those without the term and those with it.
fn fitted(bench: &Bench<'_>, term: &'static str) -> Option<f64> {
    let with = |factor| {
        let change = TermChange::Times(factor);
        Hypothesis::of(bench.evidence, Part::Term { term, change })
    };
    let (without, whole) = (with(0.0)?, with(1.0)?);
    let mut factors = Vec::new();
    for observed in bench.chosen().filter(|one| bench.is_wrong(one)).take(CASES) {
        factors.extend(factors_of(bench, observed, [&without, &whole]));
    }
    factors.sort_by(f64::total_cmp);
    let median = *factors.get(factors.len() / 2)?;
    let near = factors.iter().filter(|factor| (*factor - median).abs() <= SAME * median.abs());
    let is_tried = FACTORS.iter().chain(&[1.0]).any(|tried| (tried - median).abs() <= 1e-3);
    (2 * near.count() > factors.len() && !is_tried).then(|| shortest(median))
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
    given.iter().zip(ends).filter_map(of_cell).collect()
}
