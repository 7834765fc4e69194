//! Diagnosis of a component: it is called on many cases, what it gives is compared with hypotheses,
//! and findings are told which of them they belong to.
//!
//! What breaks decides (`outcomes.rs`) where no number is wrong: where chance or taste has a part
//! in every output, and where the definition leaves a choice for each number, but not for all
//! together.

use std::mem::take;
use std::sync::Arc;

use crate::diagnosis::evidence::{Evidence, Observed};
use crate::diagnosis::{Explanation, OtherOption, explain, other_words};
use crate::host::builtin::Builtin;
use crate::outcomes;
use crate::patience::Patience;
use crate::report::{Classes, Diagnosis, Strength};
use crate::shrink::{Shrunk, shrink_among};
use crate::subject::{Broken, Budget, Subject};
use shakedown_core::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown_core::contract::cuts::Pair;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::invariant::AnyInvariant;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::outcome::Stop;
use shakedown_core::contract::probe::{AnyProbe, Memo};
use shakedown_core::contract::stream;
use shakedown_core::laws::NOT_OF_OUTPUTS;
use shakedown_core::numeric::tolerance::Tolerance;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::Shared;

/// How many cases a component and the hypotheses are compared on, and how many of them are random
/// at the least, however many corners there are.
const CASES: usize = 160;
const RANDOM: usize = 32;

/// Names that are told where only what breaks is compared.
const FAULTS: usize = 3;

/// A finding that no explanation breaks is of one that explains this share of what is wrong.
const NEARLY_ALL: f64 = 0.98;

/// What is wrong with a component besides its findings.
#[derive(Clone, Copy)]
pub(crate) enum Besides {
    /// What the explanation of this number explains.
    Explained(usize),
    /// What none does.
    Unexplained,
}

/// What explains the findings of one component.
pub struct Diagnoser {
    evidence: Evidence,
    explanations: Vec<Explanation>,
    /// By what breaks.
    alike: Vec<outcomes::Like>,
}

/// What a component gives wrong on the first of all cases, as a fingerprint: where two findings of
/// one invariant have no name, it tells whether the component is still the same. `varies` where it
/// is not the same from call to call.
#[cfg(feature = "fuzz")]
pub fn behaviour(subject: &mut Subject, place: Place, calls: &mut u64) -> String {
    let first = wrong_on_first_cases(subject, place, calls);
    if first == wrong_on_first_cases(subject, place, calls) {
        format!("{:08x}", shakedown_core::value::text::fnv1a(first.bytes()))
    } else {
        "varies".to_owned()
    }
}

#[cfg(feature = "fuzz")]
fn wrong_on_first_cases(subject: &mut Subject, place: Place, calls: &mut u64) -> String {
    use std::fmt::Write as _;

    use crate::diagnosis::evidence::{Given, cells};
    let evidence = observing(subject, Vec::new(), place, 0, false, calls);
    let mut text = String::new();
    for (index, observed) in evidence.observed.iter().enumerate() {
        if let Some(failure) = &observed.failure {
            let _ = writeln!(text, "{index} {}", failure.law());
        }
        let Some((expected, given)) = observed.answered() else { continue };
        for (at, (cell, found)) in cells(expected).zip(given).enumerate() {
            if !evidence.wrong(found, &cell) {
                continue;
            }
            let _ = match found {
                // Another processor rounds otherwise.
                Given::Number(found) => writeln!(text, "{index} {at} {found:.2e}"),
                Given::Text(found) => writeln!(text, "{index} {at} {found:?}"),
            };
        }
    }
    text
}

/// Calls the component on some cases, on corners and on random cases.
fn observing(
    subject: &mut Subject,
    first: Vec<Shared>,
    place: Place,
    seed: u64,
    by_reference: bool,
    calls: &mut u64,
) -> Evidence {
    let (contract, options) = (subject.contract, Arc::clone(&subject.options));
    let gradients = subject.component.gradients(place);
    let gradient = contract.wants_gradient(&*options) && !matches!(gradients, Gradients::None(_));
    let mut patience = subject.patience();
    let stream = stream::cases(contract, first, seed, &options, place.dtype);
    let tolerance = subject.tolerance_at(place);
    let mut evidence = Evidence::new(contract, &options, place, tolerance);
    evidence.by_reference |= by_reference;
    let least = stream.fixed() as usize + RANDOM;
    let cases = if contract.stage().is_long() { least } else { CASES.max(least) };
    for (_, case) in stream.take(cases) {
        if patience.is_over() {
            break;
        }
        if contract.refuses(&*case, &*options) {
            continue;
        }
        *calls += 1;
        let answer = subject.call(&case, place, gradient);
        answer.as_ref().err().iter().for_each(|failure| patience.spend(failure));
        evidence.observe(case, answer, gradient);
    }
    if evidence.by_reference {
        for (case, answer) in asked(subject, &evidence, place, &mut patience, calls) {
            evidence.observe(case, answer, gradient);
        }
    }
    evidence
}

/// Cases on which the calls of invariants are noted, and how many of these at most.
const ASKED: usize = 12;
const NOTED: usize = 200;

/// What a component gives for the cases that the invariants make of others: where there is no
/// oracle, these are what tells one mistake from another.
fn asked(
    subject: &mut Subject,
    evidence: &Evidence,
    place: Place,
    patience: &mut Patience,
    calls: &mut u64,
) -> Vec<Answer> {
    let (contract, options) = (subject.contract, Arc::clone(&subject.options));
    let tolerance = subject.tolerance_at(place);
    let component = &mut subject.component;
    let mut noted = Noted { component, options: &options, answers: Vec::new() };
    for Observed { case, .. } in evidence.observed.iter().take(ASKED) {
        let mut memo = Memo::default();
        for invariant in contract.invariants() {
            if patience.is_over() || noted.answers.len() >= NOTED {
                break;
            }
            if NOT_OF_OUTPUTS.contains(&invariant.id) || !invariant.applies(&*options, place) {
                continue;
            }
            let probe = AnyProbe::new(
                contract, case, &options, place, tolerance, &mut noted, &mut memo, calls,
            );
            let (_, failed) = invariant.check(probe);
            failed.iter().for_each(|(_, failure)| patience.spend(failure));
        }
    }
    let mut answers: Vec<Answer> = Vec::new();
    for (case, answer) in noted.answers {
        let known = evidence.observed.iter().any(|observed| *observed.case == *case)
            || answers.iter().any(|(known, _)| **known == *case);
        if !known {
            answers.push((case, answer));
        }
    }
    answers
}

/// A case and what a component gave for it.
type Answer = (Shared, Result<Returned, Failure>);

/// A component whose answers are noted.
struct Noted<'a> {
    component: &'a mut dyn Component,
    options: &'a Arc<dyn AnyOptions>,
    answers: Vec<Answer>,
}

impl Component for Noted<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let answer = self.component.call(call);
        if Arc::ptr_eq(call.options, self.options) && self.answers.len() < NOTED {
            let noted = answer.as_ref().map_err(Failure::clone).map(|returned| Returned {
                output: Shared::clone(&returned.output),
                changed: Vec::new(),
                no_gradient: returned.no_gradient.clone(),
            });
            self.answers.push((Shared::clone(call.case), noted));
        }
        answer
    }

    fn gradients(&self, place: Place) -> Gradients {
        self.component.gradients(place)
    }

    fn reads(&self, option: &str) -> bool {
        self.component.reads(option)
    }
}

impl Diagnoser {
    /// Calls the component on the minimal cases, on corners and on random cases, and finds what
    /// explains what it does wrong.
    pub fn new(
        subject: &mut Subject,
        findings: &[Shrunk],
        place: Place,
        budget: &Budget,
        calls: &mut u64,
    ) -> Self {
        let contract = subject.contract;
        let mut observed = |by_reference: bool| {
            let minimal = findings.iter().map(|finding| finding.case.clone()).collect();
            let evidence = observing(subject, minimal, place, budget.seed, by_reference, calls);
            let explanations = explain(&evidence);
            Diagnoser { evidence, explanations, alike: Vec::new() }
        };
        let mut diagnoser = observed(false);
        // Each number may be right, but not all of them together.
        let is_together = !diagnoser.evidence.is_wrong_anywhere()
            && findings.iter().any(|one| may_be_a_fault(contract, one.invariant));
        if is_together && !diagnoser.evidence.by_reference {
            let by_reference = observed(true);
            if !by_reference.explanations.is_empty() {
                return by_reference;
            }
        }
        if diagnoser.explanations.is_empty() && (is_together || diagnoser.evidence.is_open()) {
            diagnoser.explain_by_outcomes(subject, findings.len(), calls);
        }
        diagnoser
    }

    /// The same for recorded outputs, of whole batches or of parts of them: there is nothing to
    /// call, so that only numbers and texts are compared.
    pub(crate) fn of_records(
        contract: &'static dyn AnyContract,
        records: Vec<Pair>,
        options: &Arc<dyn AnyOptions>,
        place: Place,
    ) -> Self {
        let gradient = contract.wants_gradient(&**options);
        let tolerance = Tolerance { dtype: place.dtype, factor: 1.0 };
        let mut evidence = Evidence::new(contract, options, place, tolerance);
        for (case, output) in records.into_iter().take(CASES) {
            let answer = Returned { output, changed: Vec::new(), no_gradient: Vec::new() };
            evidence.observe(case, Ok(answer), gradient);
        }
        let mut explanations = explain(&evidence);
        // Of the few wrong numbers of one call, some fault explains each by chance.
        explanations.retain(|explanation| explanation.diagnosis.matches > 0);
        Diagnoser { evidence, explanations, alike: Vec::new() }
    }

    /// Fills in what is known to break the same invariants on the minimal cases and the corners.
    fn explain_by_outcomes(&mut self, subject: &mut Subject, minimal: usize, calls: &mut u64) {
        let Evidence { contract, options, place, .. } = &self.evidence;
        let corners = contract.corners(&**options, place.dtype).len();
        let cases = self.evidence.observed.iter().map(|observed| observed.case.clone());
        let cases: Vec<Shared> = cases.take(minimal + corners).collect();
        let (minimal, corners) = cases.split_at(minimal.min(cases.len()));
        // Several invariants may have the same smallest case.
        let mut different: Vec<Shared> = Vec::new();
        for case in minimal {
            if !different.contains(case) {
                different.push(case.clone());
            }
        }
        self.alike = outcomes::alike(subject, &different, corners, *place, FAULTS, calls);
    }

    /// Whether what explains a diagnosis explains all that is wrong with what the component gave
    /// for another case.
    #[cfg(feature = "fuzz")]
    pub fn explains(&self, diagnosis: &[Diagnosis], case: &Shared, returned: &Returned) -> bool {
        let Some(observed) = self.evidence.observed_again(case, returned) else { return false };
        let (mut any, mut open): (bool, Option<Vec<bool>>) = (false, None);
        for explanation in &self.explanations {
            if diagnosis.iter().any(|diagnosis| diagnosis.fault == explanation.diagnosis.fault)
                && let Some((wrong, explained)) = explanation.on(&self.evidence, &observed)
            {
                any = wrong.contains(&true);
                let open = open.get_or_insert(wrong);
                open.iter_mut().zip(explained).for_each(|(open, explained)| *open &= !explained);
            }
        }
        any && open.is_some_and(|open| !open.contains(&true))
    }

    /// What explains a finding: what breaks its invariant on its smallest case too; else what
    /// explains nearly all that is wrong, where nothing there is wrong that it does not explain.
    pub fn faults(&mut self, finding: &Shrunk) -> Vec<Diagnosis> {
        let mut named: Vec<bool> =
            self.explanations.iter().map(|one| self.may_explain(one, finding)).collect();
        let is_of_outputs = !NOT_OF_OUTPUTS.contains(&finding.invariant.id);
        if !named.contains(&true) && is_of_outputs && !self.is_unexplained(&finding.case) {
            let explains = |one: &Explanation| one.diagnosis.explains >= NEARLY_ALL;
            if let Some(at) = self.explanations.iter().position(explains) {
                named[at] = true;
            }
        }
        let named = self.explanations.iter_mut().zip(named).filter(|(_, named)| *named);
        let mut found: Vec<Diagnosis> = named
            .map(|(Explanation { diagnosis, .. }, _)| {
                // Points are given once: findings of one component often have the same diagnosis.
                let (points, texts) = (take(&mut diagnosis.points), take(&mut diagnosis.texts));
                Diagnosis { points, texts, ..diagnosis.clone() }
            })
            .collect();
        found.sort_by(|a, b| b.explains.total_cmp(&a.explains));
        let Evidence { contract, options, place, .. } = &self.evidence;
        found.extend(self.alike.iter().filter_map(|like| {
            let mut subject = like.known.subject(*contract, options);
            let (outcome, _) = subject.try_case(finding.invariant, &finding.case, *place, &mut 0);
            matches!(outcome, Err(Stop::Broken(_))).then(|| like.diagnosis.clone())
        }));
        if found.is_empty() && finding.invariant.id == "does-not-raise" {
            found.extend(self.refusing());
        }
        found
    }

    /// The word of an option under which all is refused on which the component raises, and nothing
    /// else.
    fn refusing(&self) -> Option<Diagnosis> {
        let Evidence { contract, options, observed, .. } = &self.evidence;
        let raises = |one: &Observed| matches!(one.failure, Some(Failure::Raised { .. }));
        let refuses =
            |one: &Observed, other: &OtherOption| contract.refuses(&*one.case, &*other.options);
        let raised = observed.iter().filter(|one| raises(one)).count() as u64;
        let mut others = other_words(*contract, options).into_iter();
        let is_same =
            |other: &OtherOption| observed.iter().all(|one| refuses(one, other) == raises(one));
        let OtherOption { name, told, .. } = others.find(is_same).filter(|_| raised > 1)?;
        let is_all = !self.evidence.is_wrong_anywhere();
        Some(Diagnosis {
            fault: name,
            matches: raised,
            of: raised,
            explains: 1.0,
            summary: String::new(),
            told,
            strength: if is_all { Strength::Exactly } else { Strength::Partly },
            alike: Vec::new(),
            by_outcomes: false,
            points: Vec::new(),
            texts: Vec::new(),
        })
    }

    /// What is wrong with the component besides what some findings are about: for each explanation
    /// that is the first of none of them, and for what nothing explains, the simplest case that was
    /// compared.
    pub(crate) fn overlooked(&self, told: &[Vec<Diagnosis>]) -> Vec<(Besides, Shared)> {
        if self.explanations.is_empty() || self.evidence.by_reference {
            return Vec::new();
        }
        let is_told = |explanation: &Explanation| {
            let fault = &explanation.diagnosis.fault;
            told.iter().any(|told| told.first().is_some_and(|first| first.fault == *fault))
        };
        let all = 0..self.explanations.len();
        let untold = all.filter(|at| !is_told(&self.explanations[*at])).map(Besides::Explained);
        let without_name = told.iter().any(Vec::is_empty);
        let unexplained = (!without_name).then_some(Besides::Unexplained);
        let simplest = |besides: Besides| {
            let cases = self.evidence.observed.iter();
            let showing = cases.filter(|observed| self.shows(besides, observed));
            let measure = |observed: &&Observed| self.evidence.contract.measure(&*observed.case);
            Some((besides, Shared::clone(&showing.min_by_key(measure)?.case)))
        };
        untold.chain(unexplained).filter_map(simplest).collect()
    }

    /// Whether a case shows it, and nothing else.
    fn shows(&self, besides: Besides, observed: &Observed) -> bool {
        let on = |one: &Explanation| one.on(&self.evidence, observed);
        match besides {
            Besides::Explained(at) => on(&self.explanations[at])
                .is_some_and(|(wrong, explained)| explained.contains(&true) && wrong == explained),
            Besides::Unexplained => self
                .explanations
                .iter()
                .filter_map(on)
                .all(|(wrong, explained)| wrong.contains(&true) && !explained.contains(&true)),
        }
    }

    /// Makes its case as small as it gets while it shows it; `None` where no invariant says so.
    pub(crate) fn shrink_besides(
        &self,
        subject: &mut Subject,
        (besides, case): (Besides, Shared),
        place: Place,
        at_case: u64,
        calls: &mut u64,
    ) -> Option<(Shrunk, Vec<Diagnosis>)> {
        let contract = subject.contract;
        for id in ["oracle", "gradient"] {
            let Some(invariant) = contract.invariant(id) else { continue };
            if !subject.tells_of(id) {
                continue;
            }
            let (outcome, _) = subject.try_case(invariant, &case, place, calls);
            let Err(Stop::Broken(found)) = outcome else { continue };
            let broken = Broken { case, found, at_case };
            let gradient = contract.wants_gradient(&*subject.options)
                && !matches!(subject.component.gradients(place), Gradients::None(_));
            let shows = |subject: &mut Subject, case: &Shared| {
                let returned = subject.call(case, place, gradient);
                let observed =
                    returned.ok().and_then(|one| self.evidence.observed_again(case, &one));
                observed.is_some_and(|observed| self.shows(besides, &observed))
            };
            let shrunk = shrink_among(subject, invariant, broken, place, calls, shows);
            let diagnosis = match besides {
                Besides::Explained(at) => vec![self.explanations[at].diagnosis.clone()],
                Besides::Unexplained => Vec::new(),
            };
            return Some((shrunk, diagnosis));
        }
        None
    }

    /// Where the component is wrong that nothing explains, in words.
    pub(crate) fn where_wrong(&self) -> Option<String> {
        crate::diagnosis::where_wrong(&self.evidence, &self.explanations)
    }

    /// What the laws that break, beside those that hold, imply.
    pub(crate) fn signature(&self, broken: &[&str], held: &[&str]) -> Option<String> {
        crate::diagnosis::signature::told(&self.evidence, broken, held)
    }

    /// Whether something is wrong in a case that nothing explains.
    fn is_unexplained(&self, case: &Shared) -> bool {
        let observed = self.evidence.observed.iter().find(|observed| *observed.case == **case);
        observed.is_some_and(|observed| self.unexplained_in(observed))
    }

    fn unexplained_in(&self, observed: &Observed) -> bool {
        let on = self.explanations.iter().filter_map(|one| one.on(&self.evidence, observed));
        let mut open: Option<Vec<bool>> = None;
        for (wrong, explained) in on {
            let open = open.get_or_insert(wrong);
            open.iter_mut().zip(explained).for_each(|(open, explained)| *open &= !explained);
        }
        open.is_some_and(|open| open.contains(&true))
    }

    /// Whether an explanation has to do with a finding: it breaks the invariant on the smallest
    /// case too, and explains something of what is wrong there, if anything is.
    fn may_explain(&self, explanation: &Explanation, finding: &Shrunk) -> bool {
        let evidence = &self.evidence;
        let mut planted = Planted { explanation, evidence };
        let (mut memo, mut calls) = (Memo::default(), 0);
        let probe = AnyProbe::new(
            evidence.contract,
            &finding.case,
            &evidence.options,
            evidence.place,
            evidence.tolerance,
            &mut planted,
            &mut memo,
            &mut calls,
        );
        if !matches!(finding.invariant.check(probe).0, Err(Stop::Broken(_))) {
            return false;
        }
        let on_case = |observed: &&Observed| *observed.case == *finding.case;
        let Some(observed) = evidence.observed.iter().find(on_case) else { return true };
        let Some((wrong, explained)) = explanation.on(evidence, observed) else { return true };
        explained.contains(&true) || !wrong.contains(&true)
    }

    /// On which input classes a finding's invariant is broken, and on which it holds: a class
    /// fails when most of its cases do, or when the smallest case belongs to it. And where it is
    /// broken, in words.
    pub fn classes(
        &self,
        subject: &mut Subject,
        finding: &Shrunk,
        patience: &mut Patience,
        calls: &mut u64,
    ) -> (Classes, Option<String>) {
        let mut outcomes: Vec<(&Shared, bool)> = Vec::new();
        for Observed { case, failure, .. } in &self.evidence.observed {
            if let Some(failure) = failure {
                // What is known to fail is not called again, as it may hang.
                outcomes.extend((failure.law() == finding.invariant.id).then_some((case, true)));
                continue;
            }
            if patience.is_over() {
                break;
            }
            let (outcome, failed) =
                subject.try_case(finding.invariant, case, self.evidence.place, calls);
            failed.iter().for_each(|(_, failure)| patience.spend(failure));
            match outcome {
                Ok(()) => outcomes.push((case, false)),
                Err(Stop::Broken(_)) => outcomes.push((case, true)),
                Err(Stop::Vacuous | Stop::Failed) => {}
            }
        }
        let Evidence { contract, options, .. } = &self.evidence;
        let classes = classes(*contract, &finding.case, &outcomes, &**options);
        (classes, crate::diagnosis::where_broken(&self.evidence, &outcomes))
    }
}

/// The classes of a smallest case, and those of others, of which it is said whether they break too.
pub(crate) fn classes(
    contract: &dyn AnyContract,
    smallest: &Shared,
    outcomes: &[(&Shared, bool)],
    options: &dyn AnyOptions,
) -> Classes {
    let mut classes = Classes::default();
    for class in contract.classes() {
        let within = |case: &Shared| class.contains(&**case, options);
        let of_class = || outcomes.iter().filter(|(case, _)| within(case));
        let (all, broken) = (of_class().count(), of_class().filter(|(_, broken)| *broken).count());
        if within(smallest) || (broken > 0 && 2 * broken >= all) {
            classes.fails.push(class.id.to_owned());
        } else if all > 0 && broken == 0 {
            classes.holds.push(class.id.to_owned());
        }
    }
    classes
}

/// Whether an invariant catches faults that give wrong numbers.
fn may_be_a_fault(contract: &dyn AnyContract, invariant: &AnyInvariant) -> bool {
    let mut faults = contract.faults().iter();
    faults.any(|fault| !fault.variants().is_empty() && invariant.catches.contains(&fault.id))
}

/// A component that does what an explanation says.
struct Planted<'a> {
    explanation: &'a Explanation,
    evidence: &'a Evidence,
}

impl Component for Planted<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let hypothesis = &self.explanation.hypothesis;
        let is_whole = hypothesis.only.is_none() && !self.explanation.is_of_a_region();
        if let ([_], Some((fault, variant)), true) =
            (&hypothesis.parts[..], hypothesis.fault(), is_whole)
        {
            return Builtin::fault(self.evidence.contract, fault, variant).call(call);
        }
        let mut returned = Builtin::reference(self.evidence.contract).call(call)?;
        if let Some(output) = hypothesis.output(self.evidence, call.case) {
            let right = &returned.output;
            returned.output = self.explanation.acting(self.evidence, call.case, right, &output);
        }
        Ok(returned)
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }

    fn reads(&self, _: &str) -> bool {
        true
    }
}
