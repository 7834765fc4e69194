//! Points of a plot: some of the numbers and texts that a component and a hypothesis gave.

use std::collections::BTreeSet;

use crate::diagnosis::evidence::{Evidence, Given, cells};
use crate::diagnosis::hypothesis::Hypothesis;
use crate::report::{Diagnosis, Point, Real};

/// Numbers for a plot of how a component and a hypothesis agree, at the most: wrong, and right.
const WRONG_POINTS: usize = 45;
const RIGHT_POINTS: usize = 15;

/// Texts for a table of the same, at the most.
const TEXTS: usize = 5;

/// Some of the numbers and texts on which the component and a hypothesis were compared: those that
/// either has wrong, and among the numbers a few that both have right.
pub(super) fn fill(evidence: &Evidence, hypothesis: &Hypothesis, to: &mut Diagnosis) {
    let (mut wrong, mut right, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for observed in &evidence.observed {
        let Some((expected, given)) = observed.answered() else { continue };
        let planted = hypothesis.cells(evidence, observed);
        for ((found, planted), cell) in given.iter().zip(planted).zip(cells(expected)) {
            let is_wrong = evidence.wrong(found, &cell) || evidence.wrong(&planted, &cell);
            match (cell.right(), found.clone(), planted) {
                (Given::Number(expected), Given::Number(component), Given::Number(fault)) => {
                    if cell.is_open() {
                        continue;
                    }
                    let [expected, component, fault] = [expected, component, fault].map(Real);
                    let points = if is_wrong { &mut wrong } else { &mut right };
                    points.push(Point { expected, component, fault });
                }
                (Given::Text(expected), Given::Text(component), Given::Text(fault)) => {
                    let point = Point { expected, component, fault };
                    if is_wrong && !texts.contains(&point) {
                        texts.push(point);
                    }
                }
                _ => {}
            }
        }
    }
    to.points = spread(distinct(wrong), WRONG_POINTS);
    to.points.extend(spread(distinct(right), RIGHT_POINTS));
    to.texts = spread(texts, TEXTS);
}

/// Points without those that were there before.
fn distinct(points: Vec<Point<Real>>) -> Vec<Point<Real>> {
    let bits = |point: &Point<Real>| {
        [point.expected, point.component, point.fault].map(|Real(x)| x.to_bits())
    };
    let mut seen = BTreeSet::new();
    points.into_iter().filter(|point| seen.insert(bits(point))).collect()
}

/// At most so many of them, evenly spread.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let count = all.len().max(most);
    let is_kept = |index: usize| index == 0 || index * most / count > (index - 1) * most / count;
    all.into_iter().enumerate().filter(|(at, _)| is_kept(*at)).map(|(_, one)| one).collect()
}
