//! Scoring: how well a hypothesis agrees with what a component gave.
//!
//! A hypothesis is chosen on one half of the cases, and what is said of it is counted on the other.
//! Where too few cases are wrong for two halves, both are done on all of them.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::diagnosis::evidence::{Evidence, Given, Observed, cells};
use crate::diagnosis::hypothesis::Hypothesis;

/// Cases on which every hypothesis is tried first.
const FIRST: usize = 10;

/// Fewer wrong cases than this are not divided into halves.
const FEW: usize = 8;

/// The evidence laid out for comparing: all cells of all cases in one sequence.
pub(crate) struct Bench<'a> {
    pub(crate) evidence: &'a Evidence,
    answered: Vec<&'a Observed>,
    /// The cells of each case.
    cells: Vec<Range<usize>>,
    /// Whether the component is wrong there.
    pub(crate) wrong: Vec<bool>,
    /// The cases on which a hypothesis is tried first: wrong ones of the first half, small ones.
    first: Vec<usize>,
    halves: bool,
}

/// A half of the cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// Where a hypothesis is chosen.
    Chosen,
    /// Where what is said of it is counted.
    Counted,
    Both,
}

/// How a hypothesis does on every cell.
#[derive(Clone)]
pub(crate) struct Fit {
    /// It is wrong there.
    pub(crate) acts: Vec<bool>,
    /// It is wrong, and the component is the same.
    pub(crate) agrees: Vec<bool>,
}

/// How a hypothesis does on the first wrong cases.
#[derive(Clone, Copy)]
pub(crate) struct First {
    /// As [`Tally::score`].
    pub(crate) score: f64,
    /// How far from the component it is: 0 where it is the same, 1 where the definition is as
    /// close.
    pub(crate) loss: f64,
}

/// How far a hypothesis is from the component, as a share of how far the definition is.
fn apart(given: &Given, planted: &Given, right: &Given) -> f64 {
    match (given, planted, right) {
        (Given::Number(given), Given::Number(planted), Given::Number(right)) => {
            let share = (given - planted).abs() / (given - right).abs();
            if share.is_finite() { share.min(1.0) } else { 1.0 }
        }
        (Given::Text(given), Given::Text(planted), _) if given == planted => 0.0,
        _ => 1.0,
    }
}

/// A fit in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Cells in which the hypothesis is wrong.
    pub(crate) acts: usize,
    /// Those in which the component is the same.
    pub(crate) agrees: usize,
    /// Those of them in which the component is wrong and nothing else explains it.
    pub(crate) explained: usize,
    /// Cells in which the component is wrong and nothing else explains it.
    pub(crate) open: usize,
    /// Cases in which the hypothesis is wrong.
    pub(crate) cases: u64,
    /// Those in which the component is the same wherever it is.
    pub(crate) matches: u64,
    /// Cases with something open, all of which it explains.
    pub(crate) settled: u64,
}

impl Tally {
    /// Agreement and coverage in one: 1 where the component does what the hypothesis does and
    /// nothing else wrong.
    pub(crate) fn score(&self) -> f64 {
        let contradicted = self.acts - self.agrees;
        let all = 2 * self.explained + contradicted + (self.open - self.explained);
        2.0 * self.explained as f64 / all.max(1) as f64
    }

    /// Whether the component is the same on every compared cell.
    pub(crate) fn is_exact(&self) -> bool {
        self.acts == self.agrees && self.explained == self.open
    }

    /// The share of the cells in which the hypothesis is wrong that the component has alike.
    pub(crate) fn agreement(&self) -> f64 {
        self.agrees as f64 / self.acts.max(1) as f64
    }

    /// The share of the wrong cells that it explains.
    pub(crate) fn coverage(&self) -> f64 {
        self.explained as f64 / self.open.max(1) as f64
    }
}

impl<'a> Bench<'a> {
    pub(crate) fn new(evidence: &'a Evidence) -> Self {
        let is_answered = |observed: &&Observed| observed.given.is_some();
        let answered: Vec<&Observed> = evidence.observed.iter().filter(is_answered).collect();
        let mut ranges = Vec::new();
        let mut from = 0;
        for observed in &answered {
            let count = cells(&observed.expected).count();
            ranges.push(from..from + count);
            from += count;
        }
        let wrong = evidence.wrong_cells();
        let is_wrong = |at: &usize| wrong[ranges[*at].clone()].contains(&true);
        let wrong_cases: Vec<usize> = (0..answered.len()).filter(is_wrong).collect();
        let halves = wrong_cases.len() >= FEW;
        let first = wrong_cases.into_iter().filter(|at| !halves || at.is_multiple_of(2)).collect();
        let mut bench =
            Bench { evidence, answered, cells: ranges, wrong, first: Vec::new(), halves };
        bench.first = bench.spread(first);
        bench
    }

    /// A few of some cases. The simplest say least: a few of them, and a few of the others.
    fn spread(&self, mut cases: Vec<usize>) -> Vec<usize> {
        let cells = |at: &usize| self.cells[*at].len();
        cases.sort_by_key(|at| (cells(at) > 64, cells(at) < 3, *at));
        let step = cases.len().div_ceil(FIRST).max(1);
        cases.into_iter().step_by(step).collect()
    }

    /// The cases on which hypotheses are chosen.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = &'a Observed> {
        let cases = self.answered.iter().enumerate();
        cases.filter(|(at, _)| self.is_in(*at, Half::Chosen)).map(|(_, observed)| *observed)
    }

    /// Whether the component is wrong about a case.
    pub(crate) fn is_wrong(&self, observed: &Observed) -> bool {
        let Some((expected, given)) = observed.answered() else { return false };
        cells(expected).zip(given).any(|(cell, given)| self.evidence.wrong(given, &cell))
    }

    /// All cases, each with the places of its cells in the sequence.
    pub(crate) fn cases(&self) -> impl Iterator<Item = (&'a Observed, Range<usize>)> {
        self.answered.iter().copied().zip(self.cells.iter().cloned())
    }

    fn is_in(&self, case: usize, half: Half) -> bool {
        !self.halves
            || match half {
                Half::Chosen => case.is_multiple_of(2),
                Half::Counted => !case.is_multiple_of(2),
                Half::Both => true,
            }
    }

    /// How a hypothesis does on all cases.
    pub(crate) fn fit(&self, hypothesis: &Hypothesis) -> Fit {
        let mut fit =
            Fit { acts: vec![false; self.wrong.len()], agrees: vec![false; self.wrong.len()] };
        for case in 0..self.answered.len() {
            self.fit_case(hypothesis, case, &mut fit);
        }
        fit
    }

    fn fit_case(&self, hypothesis: &Hypothesis, case: usize, fit: &mut Fit) {
        let observed = self.answered[case];
        let Some(given) = &observed.given else { return };
        let planted = hypothesis.cells(self.evidence, observed);
        let compared = cells(&observed.expected).zip(given.iter().zip(&planted));
        for (at, (cell, (given, planted))) in self.cells[case].clone().zip(compared) {
            let acts = self.evidence.wrong(planted, &cell);
            fit.acts[at] = acts;
            fit.agrees[at] = acts && self.evidence.alike(given, planted, &cell);
        }
    }

    /// The cases on which every hypothesis is tried first.
    pub(crate) fn first(&self) -> &[usize] {
        &self.first
    }

    /// One of the cases.
    pub(crate) fn observed(&self, at: usize) -> &'a Observed {
        self.answered[at]
    }

    /// The first cases on which a component is not as a hypothesis.
    pub(crate) fn unlike(&self, fit: &Fit) -> Vec<usize> {
        let differs = |at: usize| (self.wrong[at] || fit.acts[at]) && !fit.agrees[at];
        let cases = (0..self.answered.len()).filter(|case| self.is_in(*case, Half::Chosen));
        self.spread(cases.filter(|case| self.cells[*case].clone().any(differs)).collect())
    }

    /// How it does on some cases. One of many pairs is left after a few on which it is nothing;
    /// what is single may be right in a region.
    pub(crate) fn score_on(&self, cases: &[usize], hypothesis: &Hypothesis) -> First {
        let is_pair = hypothesis.parts.len() > 1;
        let mut tally = Tally::default();
        let (mut loss, mut compared) = (0.0, 0);
        for (tried, case) in cases.iter().enumerate() {
            let observed = self.answered[*case];
            let Some(given) = &observed.given else { continue };
            let planted = hypothesis.cells(self.evidence, observed);
            let all = cells(&observed.expected).zip(given.iter().zip(&planted));
            for (at, (cell, (given, planted))) in self.cells[*case].clone().zip(all) {
                let acts = self.evidence.wrong(planted, &cell);
                let agrees = acts && self.evidence.alike(given, planted, &cell);
                tally.acts += usize::from(acts);
                tally.agrees += usize::from(agrees);
                if self.wrong[at] {
                    tally.open += 1;
                    tally.explained += usize::from(agrees);
                    compared += 1;
                    loss += apart(given, planted, &cell.right());
                }
            }
            if is_pair && tried == 3 && tally.explained == 0 {
                break;
            }
        }
        First { score: tally.score(), loss: loss / f64::from(compared.max(1)) }
    }

    /// How far from the component a hypothesis is on the first wrong cases: 0 where it is the same,
    /// 1 where the definition is as close.
    pub(crate) fn loss(&self, hypothesis: &Hypothesis) -> f64 {
        self.score_on(&self.first, hypothesis).loss
    }

    /// The factor that all that a hypothesis gives on the first wrong cases must be multiplied by
    /// to be what the component gives, where it is one factor and not 1.
    pub(crate) fn factor(&self, hypothesis: &Hypothesis) -> Option<f64> {
        let mut factors = Vec::new();
        for case in &self.first {
            let observed = self.answered[*case];
            let Some(given) = &observed.given else { continue };
            let planted = hypothesis.cells(self.evidence, observed);
            for (given, planted) in given.iter().zip(&planted) {
                let (Given::Number(given), Given::Number(planted)) = (given, planted) else {
                    return None;
                };
                let factor = given / planted;
                if *planted != 0.0 && factor.is_finite() && factor != 0.0 {
                    factors.push(factor);
                }
            }
            if factors.len() > 64 {
                break;
            }
        }
        factors.sort_by(f64::total_cmp);
        let median = *factors.get(factors.len() / 2)?;
        let near = |factor: &&f64| (**factor - median).abs() <= 1e-3 * median.abs();
        let agree = factors.iter().filter(near).count();
        let is_one = (median - 1.0).abs() < 1e-2;
        (factors.len() >= 4 && agree * 10 >= 9 * factors.len() && !is_one).then_some(median)
    }

    /// A fit in numbers: of the cells of one half, those that are open to be explained. What is
    /// wrong there and explained already says nothing against it.
    pub(crate) fn tally(&self, fit: &Fit, open: &[bool], half: Half) -> Tally {
        let mut tally = Tally::default();
        for (case, range) in self.cells.iter().enumerate() {
            if !self.is_in(case, half) {
                continue;
            }
            let (mut acts, mut agrees) = (false, true);
            let before = (tally.open, tally.explained);
            for at in range.clone() {
                if self.wrong[at] && !open[at] && !fit.agrees[at] {
                    continue;
                }
                let explained = fit.agrees[at] && self.wrong[at];
                tally.open += usize::from(open[at]);
                tally.explained += usize::from(explained && open[at]);
                tally.acts += usize::from(fit.acts[at]);
                tally.agrees += usize::from(fit.agrees[at]);
                acts |= fit.acts[at];
                agrees &= !fit.acts[at] || fit.agrees[at];
            }
            tally.cases += u64::from(acts);
            tally.matches += u64::from(acts && agrees);
            let (open, explained) = (tally.open - before.0, tally.explained - before.1);
            tally.settled += u64::from(open > 0 && open == explained);
        }
        tally
    }

    /// How many different wrong outputs a fit explains, up to a few: one constant says little.
    /// Those that are further off than any rounding, where they must be so `clearly`.
    pub(crate) fn different(&self, fit: &Fit, clearly: bool) -> usize {
        let mut different = BTreeSet::new();
        for (observed, range) in self.cases() {
            let Some(given) = &observed.given else { continue };
            for (at, (cell, given)) in range.zip(cells(&observed.expected).zip(given)) {
                let counts = !clearly || self.evidence.clearly_wrong(given, &cell);
                if fit.agrees[at] && self.wrong[at] && counts && different.len() < 16 {
                    different.insert(format!("{given:?} {:?}", cell.right()));
                }
            }
        }
        different.len()
    }
}
