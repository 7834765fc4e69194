//! Diagnosis: which known bugs a component behaves like, and on which inputs it fails.
//!
//! The component and every fault of its contract are compared number by number, or text by text, on
//! many cases. A fault is a candidate where the component does what the fault does in most cases in
//! which the fault is wrong, or where it explains all that is wrong with the component (a bug in
//! one branch). Candidates are then taken, the one that explains most wrong numbers first, until
//! nothing new is explained. So two bugs in one component are both named. What breaks decides
//! (`outcomes.rs`) where no number is wrong: where chance or taste has a part in every output, and
//! where the definition leaves a choice for each number, but not for all together.

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::Arc;

use crate::contract::component::{Component as _, Failure, Gradients, Returned};
use crate::contract::cuts::Pair;
use crate::contract::erased::AnyContract;
use crate::contract::fault::{AnyFault, AnyFunction};
use crate::contract::invariant::AnyInvariant;
use crate::contract::options::AnyOptions;
use crate::contract::probe::Stop;
use crate::engine::patience::Patience;
use crate::engine::shrink::Shrunk;
use crate::engine::subject::{Budget, Subject, read_options};
use crate::engine::{outcomes, stream};
use crate::host::builtin::Builtin;
use crate::numeric::tolerance::{Expected, ExpectedTexts, Number, Tolerance, Wanted, is_white};
use crate::report::{Classes, Diagnosis, Point, Real};
use crate::value::place::Place;
use crate::value::record::{Shared, floats, texts};

/// How many cases a component and the faults are compared on.
const CASES: usize = 160;

/// The component must do what a fault does in this share of the cases in which the fault is wrong…
const AGREEMENT: f64 = 0.6;

/// … or the fault must explain this share of the component's wrong numbers.
const EXPLAINED: f64 = 0.9;

/// Numbers come from the same mistake when they differ by at most twice this share of what the
/// mistake makes: a wrong formula may amplify rounding, as a division by ε does.
const AMPLIFIED: f64 = 0.01;

/// Faults named for one component at the most.
const FAULTS: usize = 3;

/// Numbers for a plot of how a component and a fault agree, at the most: wrong, and right ones.
const WRONG_POINTS: usize = 45;
const RIGHT_POINTS: usize = 15;

/// Texts for a table of the same, at the most.
const TEXTS: usize = 5;

/// A case with what the component gave, cell by cell.
struct Observed {
    case: Shared,
    expected: ExpectedCells,
    /// `None` where the call failed.
    given: Option<Vec<Given>>,
    failure: Option<Failure>,
}

/// What an oracle expects of a case: numbers, texts, or both.
struct ExpectedCells {
    numbers: Vec<Expected>,
    texts: Vec<ExpectedTexts>,
}

/// One number or text that a component or a fault gave.
#[derive(Clone)]
enum Given {
    Number(f64),
    Text(Option<String>),
}

/// What is expected of it.
enum Cell<'a> {
    Number(Number, usize),
    Text(&'a Wanted),
}

/// A fault that explains some of a component's wrong numbers.
struct Explanation {
    id: &'static str,
    variant: usize,
    /// How many options differ from those under which the fault is declared to show.
    distance: usize,
    diagnosis: Diagnosis,
}

/// Compares one component with the faults of its contract.
pub(crate) struct Diagnoser {
    contract: &'static dyn AnyContract,
    observed: Vec<Observed>,
    place: Place,
    options: Arc<dyn AnyOptions>,
    tolerance: Tolerance,
    explanations: Vec<Explanation>,
}

/// What a component gives wrong on the first of all cases, as a fingerprint: where two findings of
/// one invariant have no name, it tells whether the component is still the same. `varies` where it
/// is not the same from call to call.
#[cfg(feature = "fuzz")]
pub(crate) fn behaviour(subject: &mut Subject, place: Place, calls: &mut u64) -> String {
    let first = wrong_on_first_cases(subject, place, calls);
    if first == wrong_on_first_cases(subject, place, calls) {
        format!("{:08x}", crate::value::text::fnv1a(first.bytes()))
    } else {
        "varies".to_owned()
    }
}

#[cfg(feature = "fuzz")]
fn wrong_on_first_cases(subject: &mut Subject, place: Place, calls: &mut u64) -> String {
    use std::fmt::Write as _;
    let diagnoser = Diagnoser::observing(subject, Vec::new(), place, 0, calls);
    let mut text = String::new();
    for (index, observed) in diagnoser.observed.iter().enumerate() {
        if let Some(failure) = &observed.failure {
            let _ = writeln!(text, "{index} {}", failure.law());
        }
        let Some(given) = &observed.given else { continue };
        for (at, (cell, found)) in cells(&observed.expected).zip(given).enumerate() {
            if !diagnoser.wrong(found, &cell) {
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

impl Diagnoser {
    /// Calls the component on the minimal cases, on corners and on random cases, and finds the
    /// faults that explain what it does wrong.
    pub(crate) fn new(
        subject: &mut Subject,
        findings: &[Shrunk],
        place: Place,
        budget: &Budget,
        calls: &mut u64,
    ) -> Self {
        let minimal = findings.iter().map(|finding| finding.case.clone()).collect();
        let mut diagnoser = Self::observing(subject, minimal, place, budget.seed, calls);
        let contract = subject.contract;
        let has_oracle =
            diagnoser.observed.iter().any(|observed| cells(&observed.expected).next().is_some());
        if diagnoser.is_wrong_anywhere() {
            diagnoser.explain();
        } else if !has_oracle
            || findings.iter().any(|finding| may_be_a_fault(contract, finding.invariant))
        {
            // Without an oracle, or where each number may be right but not all of them together.
            diagnoser.explain_by_outcomes(subject, findings.len(), calls);
        }
        diagnoser
    }

    /// Calls the component on some cases, on corners and on random cases.
    fn observing(
        subject: &mut Subject,
        first: Vec<Shared>,
        place: Place,
        seed: u64,
        calls: &mut u64,
    ) -> Self {
        let (contract, options) = (subject.contract, Arc::clone(&subject.options));
        let gradients = subject.component.gradients(place);
        let gradient =
            contract.wants_gradient(&*options) && !matches!(gradients, Gradients::None(_));
        let mut patience = subject.patience();
        let mut observed = Vec::new();
        let stream = stream::cases(contract, first, seed, &options, place.dtype);
        for (_, case) in stream.take(CASES) {
            if patience.is_over() {
                break;
            }
            if contract.refuses(&*case, &*options) {
                continue;
            }
            *calls += 1;
            let answer = subject.call(&case, place, gradient);
            answer.as_ref().err().iter().for_each(|failure| patience.spend(failure));
            observed.push(observe(contract, case, answer, &*options, place, gradient));
        }
        let tolerance = subject.tolerance_at(place);
        let explanations = Vec::new();
        Diagnoser { contract, observed, place, options, tolerance, explanations }
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
        let answered = |(case, output)| {
            let answer = Returned { output, changed: Vec::new(), no_gradient: Vec::new() };
            observe(contract, case, Ok(answer), &**options, place, gradient)
        };
        let observed = records.into_iter().take(CASES).map(answered).collect();
        let tolerance = Tolerance { dtype: place.dtype, factor: 1.0 };
        let (options, explanations) = (Arc::clone(options), Vec::new());
        let mut diagnoser =
            Diagnoser { contract, observed, place, options, tolerance, explanations };
        if diagnoser.is_wrong_anywhere() {
            diagnoser.explain();
            // Of the few wrong numbers of one call, some fault explains each by chance.
            diagnoser.explanations.retain(|explanation| explanation.diagnosis.matches > 0);
        }
        diagnoser
    }

    /// Fills in the faults that break the same invariants on the minimal cases and the corners.
    fn explain_by_outcomes(&mut self, subject: &mut Subject, minimal: usize, calls: &mut u64) {
        let corners = self.contract.corners(&*self.options, self.place.dtype).len();
        let cases = self.observed.iter().map(|observed| observed.case.clone());
        let cases: Vec<Shared> = cases.take(minimal + corners).collect();
        let (minimal, corners) = cases.split_at(minimal.min(cases.len()));
        // Several invariants may have the same smallest case.
        let mut different: Vec<Shared> = Vec::new();
        for case in minimal {
            if !different.contains(case) {
                different.push(case.clone());
            }
        }
        let found = outcomes::alike(subject, &different, corners, self.place, FAULTS, calls);
        self.explanations.extend(found.into_iter().map(|like| Explanation {
            id: like.fault,
            variant: like.variant,
            distance: 0,
            diagnosis: like.diagnosis,
        }));
    }

    /// What a fault gives in one of its variants.
    fn function(&self, fault: &str, variant: usize) -> Option<&'static AnyFunction> {
        self.contract.fault(fault)?.variants().get(variant)
    }

    /// In how many options these differ from those that some YAML declares.
    fn options_apart(&self, declared: &str) -> usize {
        let declared = read_options(self.contract, declared).expect("a fault's options are valid");
        let both = declared.json().into_iter().zip(self.options.json());
        both.filter(|(a, b)| a != b).count()
    }

    /// Whether a number or text is not what the definition gives.
    fn wrong(&self, found: &Given, cell: &Cell<'_>) -> bool {
        match (found, cell) {
            (Given::Number(found), Cell::Number(number, terms)) => {
                !self.tolerance.accepts(*found, *number, *terms)
                    || (number.value.is_finite() && !found.is_finite())
            }
            (Given::Text(found), Cell::Text(wanted)) => !wanted.accepts(found.as_deref()),
            _ => true,
        }
    }

    /// Whether a component gives what a fault gives.
    fn alike(&self, given: &Given, planted: &Given, cell: &Cell<'_>) -> bool {
        match (given, planted, cell) {
            (Given::Number(given), Given::Number(planted), Cell::Number(number, terms)) => {
                self.numbers_alike(*given, *planted, *number, *terms)
            }
            // Outer white space is not what makes the mistake where it may go.
            (
                Given::Text(Some(given)),
                Given::Text(Some(planted)),
                Cell::Text(Wanted::Pieces(_)),
            ) => given.trim_matches(is_white) == planted.trim_matches(is_white),
            (Given::Text(given), Given::Text(planted), _) => given == planted,
            _ => false,
        }
    }

    /// Whether two numbers are the same within the rounding that both may have.
    fn numbers_alike(&self, given: f64, planted: f64, number: Number, terms: usize) -> bool {
        if !planted.is_finite() || !number.value.is_finite() {
            return given == planted || (given.is_nan() && planted.is_nan());
        }
        let scale = if number.scale.is_finite() { number.scale } else { 1.0 };
        let amplified = AMPLIFIED * (planted - number.value).abs();
        let number = Number { value: planted, scale: scale + planted.abs(), slack: amplified };
        (given - planted).abs() <= 2.0 * self.tolerance.bound(number, terms)
    }

    /// For each number that the component gave, whether it is wrong.
    fn wrong_numbers(&self) -> Vec<bool> {
        self.observed
            .iter()
            .filter_map(|observed| Some((observed.given.as_ref()?, &observed.expected)))
            .flat_map(|(given, expected)| {
                let cells = cells(expected).zip(given);
                cells.map(|(cell, found)| self.wrong(found, &cell))
            })
            .collect()
    }

    /// Whether any number is wrong.
    fn is_wrong_anywhere(&self) -> bool {
        self.wrong_numbers().contains(&true)
    }

    /// Fills in the faults that explain the component's wrong numbers.
    fn explain(&mut self) {
        let wrong = self.wrong_numbers();
        let total = wrong.iter().filter(|wrong| **wrong).count();
        let mut candidates: Vec<(Explanation, Vec<bool>)> = Vec::new();
        for fault in self.contract.faults() {
            let AnyFault { id, summary, options, .. } = *fault;
            let distance = self.options_apart(options);
            for (variant, function) in fault.variants().iter().enumerate() {
                let (matches, of, explained) = self.agreement(function);
                let all = explained.iter().filter(|explained| **explained).count() as f64;
                let agrees = matches as f64 >= AGREEMENT * of as f64;
                if all > 0.0 && (agrees || all >= EXPLAINED * total as f64) {
                    let diagnosis = Diagnosis {
                        fault: id.to_owned(),
                        matches,
                        of,
                        explains: 0.0,
                        summary: summary.to_owned(),
                        by_outcomes: false,
                        points: Vec::new(),
                        texts: Vec::new(),
                    };
                    let explanation = Explanation { id, variant, distance, diagnosis };
                    candidates.push((explanation, explained));
                }
            }
        }
        let mut open = wrong;
        while self.explanations.len() < FAULTS {
            let news = |explained: &[bool]| {
                let both = explained.iter().zip(&open).filter(|(new, open)| **new && **open);
                both.count()
            };
            // What a fault explains counts less the more it does that the component does not.
            let worth = |(explanation, explained): &(Explanation, Vec<bool>)| {
                let Diagnosis { matches, of, .. } = explanation.diagnosis;
                news(explained) as f64 * (0.5 + 0.5 * matches as f64 / of as f64)
            };
            // A fault that agrees on no whole case may be right about a branch, or alike by chance:
            // it is named only for what no other explains. Among equals comes the one that shows
            // under options most like these, then the first.
            let best = [true, false].into_iter().find_map(|whole| {
                let usable = (0..candidates.len()).rev().filter(|index| {
                    let (explanation, explained) = &candidates[*index];
                    let enough = news(explained) * 100 >= total.max(1);
                    enough && whole == (explanation.diagnosis.matches > 0)
                });
                usable.max_by(|a, b| {
                    let [a, b] = [*a, *b].map(|index| &candidates[index]);
                    worth(a).total_cmp(&worth(b)).then(b.0.distance.cmp(&a.0.distance))
                })
            });
            let Some(best) = best else { break };
            let (mut explanation, explained) = candidates.remove(best);
            let all = explained.iter().filter(|explained| **explained).count();
            explanation.diagnosis.explains = all as f64 / total as f64;
            for (open, explained) in open.iter_mut().zip(explained) {
                *open &= !explained;
            }
            self.explanations.push(explanation);
        }
        let mut explanations = take(&mut self.explanations);
        for Explanation { id, variant, diagnosis, .. } in &mut explanations {
            if let Some(function) = self.function(id, *variant) {
                self.points(function, diagnosis);
            }
        }
        self.explanations = explanations;
    }

    /// In how many cases the component does what a fault does wherever the fault is wrong, out of
    /// those in which it is wrong anywhere; and which of the component's wrong numbers it explains.
    fn agreement(&self, fault: &AnyFunction) -> (u64, u64, Vec<bool>) {
        let (mut matches, mut of) = (0, 0);
        let mut explained = Vec::new();
        for Observed { case, expected, given, .. } in &self.observed {
            let Some(given) = given else { continue };
            let (acts, agrees) = self.compare(fault, case, expected, given, &mut explained);
            of += u64::from(acts);
            matches += u64::from(acts && agrees);
        }
        (matches, of, explained)
    }

    /// Whether a fault is wrong anywhere in a case, and whether the component does the same there;
    /// which of the component's wrong numbers it explains is added to a list.
    fn compare(
        &self,
        fault: &AnyFunction,
        case: &Shared,
        expected: &ExpectedCells,
        given: &[Given],
        explained: &mut Vec<bool>,
    ) -> (bool, bool) {
        let planted = self.planted(fault, case, expected);
        let (mut acts, mut agrees) = (false, true);
        for ((found, planted), cell) in given.iter().zip(&planted).zip(cells(expected)) {
            let fault_acts = self.wrong(planted, &cell);
            let alike = self.alike(found, planted, &cell);
            acts |= fault_acts;
            agrees &= !fault_acts || alike;
            explained.push(fault_acts && alike && self.wrong(found, &cell));
        }
        (acts, agrees)
    }

    /// Whether the faults of a diagnosis explain all that is wrong with what the component gave for
    /// another case.
    #[cfg(feature = "fuzz")]
    pub(crate) fn explains(
        &self,
        diagnosis: &[Diagnosis],
        case: &Shared,
        returned: &Returned,
    ) -> bool {
        let mut numbers = self.contract.oracle(&**case, &*self.options, self.place.dtype);
        numbers.retain(|expected| is_given(self.contract, returned, expected.field));
        let texts = self.contract.oracle_texts(&**case, &*self.options);
        let expected = ExpectedCells { numbers, texts };
        let Some(given) = given(returned, &expected) else { return false };
        let wrong = cells(&expected).zip(&given).map(|(cell, found)| self.wrong(found, &cell));
        let wrong: Vec<bool> = wrong.collect();
        let mut open = wrong.clone();
        for explanation in &self.explanations {
            if !diagnosis.iter().any(|diagnosis| diagnosis.fault == explanation.id) {
                continue;
            }
            let Some(function) = self.function(explanation.id, explanation.variant) else {
                continue;
            };
            let mut explained = Vec::new();
            self.compare(function, case, &expected, &given, &mut explained);
            open.iter_mut().zip(explained).for_each(|(open, explained)| *open &= !explained);
        }
        wrong.contains(&true) && !open.contains(&true)
    }

    /// What a fault gives for a case.
    fn planted(&self, fault: &AnyFunction, case: &Shared, expected: &ExpectedCells) -> Vec<Given> {
        let output = fault.output(&**case, &*self.options, self.place.dtype);
        let output = Returned { output, changed: Vec::new(), no_gradient: Vec::new() };
        given(&output, expected)
            .unwrap_or_else(|| cells(expected).map(|cell| cell.right()).collect())
    }

    /// Some of the numbers and texts on which the component and a fault were compared: those that
    /// either has wrong, and among the numbers a few that both have right.
    fn points(&self, fault: &AnyFunction, to: &mut Diagnosis) {
        let (mut wrong, mut right, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for Observed { case, expected, given, .. } in &self.observed {
            let Some(given) = given else { continue };
            let planted = self.planted(fault, case, expected);
            for ((found, planted), cell) in given.iter().zip(planted).zip(cells(expected)) {
                let is_wrong = self.wrong(found, &cell) || self.wrong(&planted, &cell);
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

    /// The explanations that have to do with a finding: those whose faults break its invariant on
    /// its smallest case too.
    pub(crate) fn faults(&mut self, finding: &Shrunk) -> Vec<Diagnosis> {
        let breaks = |explanation: &Explanation| {
            let fault = self.contract.fault(explanation.id);
            let fault = fault.expect("explanations are made of faults");
            let planted = Builtin::fault(self.contract, fault, explanation.variant);
            let mut subject = Subject::new(self.contract, explanation.id, Box::new(planted));
            subject.options = Arc::clone(&self.options);
            let (outcome, _) =
                subject.try_case(finding.invariant, &finding.case, self.place, &mut 0);
            matches!(outcome, Err(Stop::Broken(_))) && self.may_explain(explanation, &finding.case)
        };
        let named: Vec<bool> = self.explanations.iter().map(breaks).collect();
        let named = self.explanations.iter_mut().zip(named).filter(|(_, named)| *named);
        let mut found: Vec<Diagnosis> = named
            .map(|(Explanation { diagnosis, .. }, _)| {
                // Points are given once: findings of one component often have the same diagnosis.
                let (points, texts) = (take(&mut diagnosis.points), take(&mut diagnosis.texts));
                Diagnosis { points, texts, ..diagnosis.clone() }
            })
            .collect();
        found.sort_by(|a, b| b.explains.total_cmp(&a.explains));
        found
    }

    /// Whether a fault explains something of what is wrong in a case, if anything is: of two bugs
    /// in one component each has its own faults.
    fn may_explain(&self, explanation: &Explanation, case: &Shared) -> bool {
        let observed = self.observed.iter().find(|observed| *observed.case == **case);
        let Some(Observed { expected, given: Some(given), .. }) = observed else { return true };
        let mut wrong = cells(expected).zip(given).map(|(cell, found)| self.wrong(found, &cell));
        let Some(function) = self.function(explanation.id, explanation.variant) else {
            return true;
        };
        let mut explained = Vec::new();
        self.compare(function, case, expected, given, &mut explained);
        explained.contains(&true) || !wrong.any(|wrong| wrong)
    }

    /// On which input classes a finding's invariant is broken, and on which it holds: a class
    /// fails when most of its cases do, or when the smallest case belongs to it.
    pub(crate) fn classes(
        &self,
        subject: &mut Subject,
        finding: &Shrunk,
        patience: &mut Patience,
        calls: &mut u64,
    ) -> Classes {
        let mut outcomes: Vec<(&Shared, bool)> = Vec::new();
        for Observed { case, failure, .. } in &self.observed {
            if let Some(failure) = failure {
                // What is known to fail is not called again, as it may hang.
                outcomes.extend((failure.law() == finding.invariant.id).then_some((case, true)));
                continue;
            }
            if patience.is_over() {
                break;
            }
            let (outcome, failed) = subject.try_case(finding.invariant, case, self.place, calls);
            failed.iter().for_each(|(_, failure)| patience.spend(failure));
            match outcome {
                Ok(()) => outcomes.push((case, false)),
                Err(Stop::Broken(_)) => outcomes.push((case, true)),
                Err(Stop::Vacuous | Stop::Failed) => {}
            }
        }
        classes(self.contract, &finding.case, &outcomes, &*self.options)
    }
}

/// What came of a call on a case, beside what was expected of it.
fn observe(
    contract: &dyn AnyContract,
    case: Shared,
    answer: Result<Returned, Failure>,
    options: &dyn AnyOptions,
    place: Place,
    gradient: bool,
) -> Observed {
    let mut numbers = contract.oracle(&*case, options, place.dtype);
    if gradient {
        numbers.extend(contract.oracle_gradient(&*case, options, place.dtype));
    }
    let mut expected = ExpectedCells { numbers, texts: contract.oracle_texts(&*case, options) };
    let (given, failure) = match answer {
        Ok(returned) => {
            expected.numbers.retain(|expected| is_given(contract, &returned, expected.field));
            (given(&returned, &expected), None)
        }
        Err(failure) => (None, Some(failure)),
    };
    Observed { case, expected, given, failure }
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

/// Whether a component gives a field, or owes it: what it need not give says nothing about it.
fn is_given(contract: &dyn AnyContract, returned: &Returned, field: &str) -> bool {
    let given = || floats(&*returned.output).iter().any(|(name, _)| *name == field);
    let owed = contract.outputs().iter().any(|known| known.name == field && !known.optional);
    let detached = |leaf: &str| returned.no_gradient.iter().any(|no| no == leaf);
    owed || given() || field.strip_prefix("grad_").is_some_and(detached)
}

impl Cell<'_> {
    /// Whether the contract leaves a number open.
    fn is_open(&self) -> bool {
        matches!(self, Cell::Number(number, _) if number.scale.is_infinite())
    }

    /// What the definition gives.
    fn right(&self) -> Given {
        match self {
            Cell::Number(number, _) => Given::Number(number.value),
            Cell::Text(wanted) => Given::Text(wanted.shown()),
        }
    }
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

/// What is expected of all fields in one sequence.
fn cells(expected: &ExpectedCells) -> impl Iterator<Item = Cell<'_>> {
    let numbers = expected
        .numbers
        .iter()
        .flat_map(|field| field.numbers.iter().map(|number| Cell::Number(*number, field.terms)));
    numbers.chain(expected.texts.iter().flat_map(|field| field.texts.iter().map(Cell::Text)))
}

/// What an output gives, in the same sequence. A gradient that nobody gave is what is expected.
/// `None` where a field is missing or of another shape.
fn given(returned: &Returned, expected: &ExpectedCells) -> Option<Vec<Given>> {
    let (numbers, texts) = (floats(&*returned.output), texts(&*returned.output));
    let mut given = Vec::new();
    for expected in &expected.numbers {
        match numbers.iter().find(|(name, _)| *name == expected.field) {
            Some((_, found)) if found.shape() == expected.numbers.shape() => {
                given.extend(found.iter().copied().map(Given::Number));
            }
            None if expected.field.starts_with("grad_") => {
                given.extend(expected.numbers.iter().map(|number| Given::Number(number.value)));
            }
            _ => return None,
        }
    }
    for expected in &expected.texts {
        let (_, found) = texts.iter().find(|(name, _)| *name == expected.field)?;
        if found.len() != expected.texts.len() {
            return None;
        }
        given.extend(found.iter().cloned().map(Given::Text));
    }
    Some(given)
}
