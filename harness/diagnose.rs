//! Diagnosis: which known bug a component behaves like, and on which inputs.

use crate::check::{Budget, Subject};
use crate::component::{Call, Gradients};
use crate::contract::Contract;
use crate::fault::{Behaviour, Fault};
use crate::finding::Shrunk;
use crate::invariant::Stop;
use crate::laws::floats;
use crate::place::Place;
use crate::report::{Classes, Diagnosis};
use crate::stream;
use crate::tolerance::{Expected, Number, Tolerance};

/// How many cases a component and the faults are compared on.
const CASES: usize = 160;

/// A fault is reported when it agrees with the component on this share of the cases.
const SHARE: f64 = 0.9;

/// A case with what the component gave.
struct Observed<C: Contract> {
    case: C::Case,
    given: Option<C::Output>,
    expected: Vec<Expected>,
}

/// Compares one component with the faults of its contract.
pub(crate) struct Diagnoser<C: Contract> {
    observed: Vec<Observed<C>>,
    place: Place,
    options: C::Options,
    tolerance: Tolerance,
}

impl<C: Contract> Diagnoser<C> {
    /// Calls the component on the minimal cases, on corners and on random cases.
    pub(crate) fn new(
        subject: &mut Subject<C>,
        findings: &[Shrunk<C>],
        place: Place,
        budget: &Budget,
        calls: &mut u64,
    ) -> Self {
        let options = subject.options.clone();
        let gradients = subject.component.gradients(place);
        let gradient = C::wants_gradient(&options) && !matches!(gradients, Gradients::None(_));
        let minimal = findings.iter().map(|finding| finding.case.clone()).collect();
        let mut failures = 0;
        let observed = stream::cases::<C>(minimal, budget.seed, &options, place.dtype)
            .take(CASES)
            .map(|(_, case)| {
                // A component that keeps failing has been called often enough.
                let given = (failures < 3).then(|| {
                    *calls += 1;
                    let call = Call { case: &case, options: &options, place, gradient };
                    subject.component.call(&call).ok().map(|returned| returned.output)
                });
                let given = given.flatten();
                failures += u64::from(given.is_none());
                let mut expected = C::oracle(&case, &options, place.dtype);
                if gradient {
                    expected.extend(C::oracle_gradient(&case, &options, place.dtype));
                }
                Observed { case, given, expected }
            })
            .collect();
        let tolerance = subject.tolerance_at(place);
        Diagnoser { observed, place, options, tolerance }
    }

    /// The faults that the component behaves like, the best first.
    pub(crate) fn faults(&mut self) -> Vec<Diagnosis> {
        let mut candidates: Vec<Diagnosis> = Vec::new();
        for fault in C::faults() {
            let Behaviour::Gives(variants) = fault.behaviour else { continue };
            let best = variants
                .iter()
                .map(|variant| self.agreement(*variant))
                .filter(|(_, of)| *of > 0)
                .max_by(|a, b| share(*a).total_cmp(&share(*b)));
            if let Some((matches, of)) = best {
                let Fault { id, summary, .. } = fault;
                candidates.push(Diagnosis { fault: id, matches, of, summary });
            }
        }
        candidates.retain(|diagnosis| share((diagnosis.matches, diagnosis.of)) >= SHARE);
        candidates.sort_by(|a, b| {
            share((b.matches, b.of)).total_cmp(&share((a.matches, a.of))).then(b.of.cmp(&a.of))
        });
        candidates.truncate(3);
        candidates
    }

    /// On how many cases the component gives what the fault gives, out of those on which one of
    /// them departs from the definition.
    fn agreement(
        &self,
        fault: fn(&C::Case, &C::Options, crate::place::Dtype) -> C::Output,
    ) -> (u64, u64) {
        let (mut matches, mut of) = (0, 0);
        for Observed { case, given, expected } in &self.observed {
            let Some(given) = given else { continue };
            let mut planted = fault(case, &self.options, self.place.dtype);
            crate::contract::round(&mut planted, self.place.dtype);
            if self.keeps(given, expected) && self.keeps(&planted, expected) {
                continue;
            }
            of += 1;
            matches += u64::from(self.alike(given, &planted, expected));
        }
        (matches, of)
    }

    /// Whether an output is what the definition gives.
    fn keeps(&self, output: &C::Output, expected: &[Expected]) -> bool {
        self.every_number(output, expected, |found, number, terms| {
            self.tolerance.accepts(found, number, terms)
        })
    }

    /// Whether two outputs are the same, within the rounding that both may have.
    fn alike(&self, given: &C::Output, planted: &C::Output, expected: &[Expected]) -> bool {
        let planted = floats(planted);
        floats(given).iter().all(|(name, given)| {
            let Some((_, planted)) = planted.iter().find(|(other, _)| other == name) else {
                return true;
            };
            let Some(expected) = expected.iter().find(|expected| expected.field == *name) else {
                return true;
            };
            given.shape() == planted.shape()
                && given.iter().zip(planted).zip(&expected.numbers).all(|((a, b), number)| {
                    let scale = if number.scale.is_finite() { number.scale } else { 1.0 };
                    let number = Number { value: *b, scale: scale + b.abs(), slack: 0.0 };
                    let near = 2.0 * self.tolerance.bound(number, expected.terms);
                    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= near
                })
        })
    }

    fn every_number(
        &self,
        output: &C::Output,
        expected: &[Expected],
        accepts: impl Fn(f64, Number, usize) -> bool,
    ) -> bool {
        let fields = floats(output);
        expected.iter().all(|expected| {
            let field = fields.iter().find(|(name, _)| *name == expected.field);
            field.is_none_or(|(_, found)| {
                found.shape() == expected.numbers.shape()
                    && found
                        .iter()
                        .zip(&expected.numbers)
                        .all(|(found, number)| accepts(*found, *number, expected.terms))
            })
        })
    }

    /// On which input classes a finding's invariant is broken, and on which it holds.
    pub(crate) fn classes(
        &self,
        subject: &mut Subject<C>,
        finding: &Shrunk<C>,
        calls: &mut u64,
    ) -> Classes {
        let mut counts: Vec<(u64, u64)> = vec![(0, 0); C::classes().len()];
        for Observed { case, given, .. } in &self.observed {
            if given.is_none() && finding.invariant.id != "total" {
                continue;
            }
            let outcome = match (given, finding.invariant.id) {
                (None, _) => Err(Stop::Failed),
                _ => subject.try_case(&finding.invariant, case, self.place, calls).0,
            };
            let breaks = match outcome {
                Ok(()) => false,
                Err(Stop::Vacuous) => continue,
                Err(Stop::Broken(_) | Stop::Failed) => true,
            };
            for (class, (fails, holds)) in C::classes().iter().zip(&mut counts) {
                if (class.contains)(case, &self.options) {
                    *(if breaks { &mut *fails } else { &mut *holds }) += 1;
                }
            }
        }
        let mut classes = Classes::default();
        for (class, (fails, holds)) in C::classes().iter().zip(counts) {
            if fails > 0 {
                classes.fails.push(class.id);
            } else if holds > 0 {
                classes.holds.push(class.id);
            }
        }
        classes
    }
}

fn share((matches, of): (u64, u64)) -> f64 {
    matches as f64 / of as f64
}
