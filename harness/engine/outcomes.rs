//! Diagnosis where there are no numbers to compare: a component is like a fault where the same
//! invariants break on the same cases.

use std::sync::Arc;

use crate::diagnosis::{OtherOption, other_words};
use crate::host::builtin::Builtin;
use crate::report::{Diagnosis, Strength};
use crate::subject::Subject;
use shakedown_core::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::fault::AnyFault;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::outcome::Stop;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::Shared;

/// The share of what breaks in either that must break in both.
const ALIKE: f64 = 0.6;

/// Faults that are less like the component than the best one by more than this are not named.
const BESIDE_THE_BEST: f64 = 0.1;

/// Corners on which components and faults are compared, at the most.
const CORNERS: usize = 48;

/// Something known that breaks what a component breaks.
pub(crate) struct Like {
    pub(crate) known: Known,
    pub(crate) diagnosis: Diagnosis,
    alike: f64,
}

/// Something known to be wrong.
pub(crate) enum Known {
    /// A fault, in its variant of a number.
    Fault(&'static AnyFault, usize),
    /// The reference under another word for an option.
    Option(OtherOption),
}

impl Known {
    /// A component that is this where others options are declared.
    pub(crate) fn subject(
        &self,
        contract: &'static dyn AnyContract,
        declared: &Arc<dyn AnyOptions>,
    ) -> Subject {
        let (name, planted): (&str, Box<dyn Component>) = match self {
            Known::Fault(fault, variant) => {
                (fault.id, Box::new(Builtin::fault(contract, fault, *variant)))
            }
            Known::Option(OtherOption { name, options, .. }) => {
                let options = Arc::clone(options);
                (name, Box::new(Under { reference: Builtin::reference(contract), options }))
            }
        };
        let mut subject = Subject::new(contract, name, planted);
        subject.options = Arc::clone(declared);
        subject
    }

    fn told(&self) -> (String, String, String) {
        match self {
            Known::Fault(AnyFault { id, summary, .. }, _) => {
                ((*id).to_owned(), (*summary).to_owned(), String::new())
            }
            Known::Option(OtherOption { name, told, .. }) => {
                (name.clone(), String::new(), told.clone())
            }
        }
    }
}

/// A reference that goes by its own options, whatever is declared.
struct Under {
    reference: Builtin,
    options: Arc<dyn AnyOptions>,
}

impl Component for Under {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        self.reference.call(&Call { options: &self.options, ..*call })
    }

    fn gradients(&self, place: Place) -> Gradients {
        self.reference.gradients(place)
    }
}

/// For each case, whether each invariant is broken on it.
type Outcomes = Vec<Vec<bool>>;

/// What is like a component on some cases, the most alike first, `most` at most.
pub(crate) fn alike(
    subject: &mut Subject,
    minimal: &[Shared],
    corners: &[Shared],
    place: Place,
    most: usize,
    calls: &mut u64,
) -> Vec<Like> {
    let cases = &spread(minimal, corners);
    let own = outcomes(subject, cases, place, calls);
    let (contract, options) = (subject.contract, Arc::clone(&subject.options));
    let like = |known: Known| {
        let mut planted = known.subject(contract, &options);
        // What breaks nothing where the component does is not asked any further.
        let few = cases.len().min(minimal.len());
        let mut outcomes = outcomes(&mut planted, &cases[..few], place, &mut 0);
        if likeness(&own[..few], &outcomes) == 0.0 {
            return None;
        }
        outcomes.extend(self::outcomes(&mut planted, &cases[few..], place, &mut 0));
        let alike = likeness(&own, &outcomes);
        let diagnosis = compare(&own, &outcomes, known.told());
        (alike >= ALIKE).then_some(Like { known, diagnosis, alike })
    };
    let mut found: Vec<Like> = Vec::new();
    for fault in contract.faults() {
        let variants = 0..fault.variants().len();
        let of_fault = variants.filter_map(|variant| like(Known::Fault(fault, variant)));
        found.extend(of_fault.max_by(|a, b| a.alike.total_cmp(&b.alike)));
    }
    found.extend(other_words(contract, &options).into_iter().map(Known::Option).filter_map(like));
    found.sort_by(|a, b| b.alike.total_cmp(&a.alike));
    let best = found.first().map_or(0.0, |best| best.alike);
    found.retain(|like| like.alike >= best - BESIDE_THE_BEST);
    found.truncate(most);
    found
}

/// The minimal cases, then corners, evenly spread where there are many.
fn spread<Case: Clone>(minimal: &[Case], corners: &[Case]) -> Vec<Case> {
    let mut cases: Vec<Case> = minimal.to_vec();
    cases.extend(corners.iter().step_by(corners.len().div_ceil(CORNERS).max(1)).cloned());
    cases
}

fn outcomes(subject: &mut Subject, cases: &[Shared], place: Place, calls: &mut u64) -> Outcomes {
    let mut patience = subject.patience();
    let contract = subject.contract;
    let broken = |case: &Shared| {
        let options = Arc::clone(&subject.options);
        let invariants = contract.invariants().iter();
        let applying = invariants.filter(|invariant| invariant.applies(&*options, place));
        let broken = applying.map(|invariant| {
            if patience.is_over() {
                return false;
            }
            let (outcome, failed) = subject.try_case(invariant, case, place, calls);
            failed.iter().for_each(|(_, failure)| patience.spend(failure));
            matches!(outcome, Err(Stop::Broken(_)))
        });
        broken.collect()
    };
    cases.iter().map(broken).collect()
}

/// How much of what breaks in either breaks in both.
fn likeness(own: &[Vec<bool>], planted: &[Vec<bool>]) -> f64 {
    let pairs = || own.iter().flatten().zip(planted.iter().flatten());
    let both = pairs().filter(|(a, b)| **a && **b).count();
    let either = pairs().filter(|(a, b)| **a || **b).count();
    both as f64 / either.max(1) as f64
}

fn compare(
    own: &Outcomes,
    planted: &Outcomes,
    (name, summary, told): (String, String, String),
) -> Diagnosis {
    let pairs = || own.iter().zip(planted).filter(|(_, planted)| planted.contains(&true));
    let cells = || own.iter().flatten().zip(planted.iter().flatten()).filter(|(own, _)| **own);
    let explained = cells().filter(|(_, planted)| **planted).count();
    Diagnosis {
        fault: name,
        matches: pairs().filter(|(own, planted)| own == planted).count() as u64,
        of: pairs().count() as u64,
        explains: explained as f64 / cells().count().max(1) as f64,
        summary,
        told,
        strength: Strength::Partly,
        alike: Vec::new(),
        by_outcomes: true,
        points: Vec::new(),
        texts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_cases_come_first_and_corners_are_spread_evenly() {
        let corners: Vec<usize> = (100..200).collect();
        let cases = spread(&[1, 2], &corners);
        assert_eq!(cases[..5], [1, 2, 100, 103, 106]);
        assert_eq!(cases.len(), 2 + 34, "no more than {CORNERS} corners");
        assert_eq!(spread(&[1], &corners[..CORNERS]).len(), 1 + CORNERS);
        assert_eq!(spread(&[1, 2], &[]), [1, 2]);
    }

    #[test]
    fn likeness_is_the_share_of_what_breaks_in_either_that_breaks_in_both() {
        let own = vec![vec![true, true, false], vec![true, false, false]];
        let planted = vec![vec![true, false, true], vec![true, false, false]];
        assert_eq!(likeness(&own, &planted), 0.5);
        assert_eq!(likeness(&own, &own), 1.0);
        assert_eq!(likeness(&own, &[vec![false; 3], vec![false; 3]]), 0.0);
        assert_eq!(likeness(&[vec![false]], &[vec![false]]), 0.0);
        assert_eq!(likeness(&[vec![true]], &[vec![true]]), 1.0);
    }

    #[test]
    fn a_fault_is_compared_where_it_breaks_something() {
        let own = [[true, true], [true, false], [true, false], [false, true], [false, false]];
        let planted = [[true, true], [true, false], [true, true], [false, false], [false, false]];
        let [own, planted] = [own, planted].map(|cases| cases.map(|case| case.to_vec()).to_vec());
        let told = || ("fault".to_owned(), "what it does".to_owned(), String::new());
        let diagnosis = compare(&own, &planted, told());
        // It breaks something on three cases, the same as the component on the first two of them.
        assert_eq!((diagnosis.matches, diagnosis.of), (2, 3));
        // Of the five that the component breaks the fault breaks four.
        assert_eq!(diagnosis.explains, 0.8);
        assert!(diagnosis.by_outcomes);
        let one = |own: bool| compare(&vec![vec![own]], &vec![vec![true]], told()).explains;
        assert_eq!([one(true), one(false)], [1.0, 0.0]);
    }
}
