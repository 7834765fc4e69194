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

use crate::engine::subject::{Budget, Subject};
use crate::contract::component::{Failure, Gradients, Returned};
use crate::contract::Contract;
use crate::value::record::round;
use crate::contract::cuts::Pair;
use crate::contract::fault::{Behaviour, Fault, Function};
use crate::host::builtin::Builtin;
use crate::engine::shrink::Shrunk;
use crate::contract::invariant::Invariant;
use crate::contract::probe::Stop;
use crate::value::record::{floats, texts};
use crate::engine::outcomes;
use crate::engine::patience::Patience;
use crate::value::place::Place;
use crate::value::record::Record as _;
use crate::report::{Classes, Diagnosis, Point, Real};
use crate::engine::stream;
use crate::numeric::tolerance::{Expected, ExpectedTexts, Number, Tolerance, Wanted, is_white};

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
struct Observed<C: Contract> {
    case: C::Case,
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
pub(crate) struct Diagnoser<C: Contract> {
    observed: Vec<Observed<C>>,
    place: Place,
    options: C::Options,
    tolerance: Tolerance,
    explanations: Vec<Explanation>,
}

impl<C: Contract> Diagnoser<C> {
    /// Calls the component on the minimal cases, on corners and on random cases, and finds the
    /// faults that explain what it does wrong.
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
        let mut patience = Patience::default();
        let mut observed = Vec::new();
        let stream = stream::cases::<C>(minimal, budget.seed, &options, place.dtype);
        for (_, case) in stream.take(CASES) {
            if patience.is_over() {
                break;
            }
            if C::refuses(&case, &options) {
                continue;
            }
            *calls += 1;
            let answer = subject.call(&case, place, gradient);
            answer.as_ref().err().iter().for_each(|failure| patience.spend(failure));
            observed.push(observe(case, answer, &options, place, gradient));
        }
        let tolerance = subject.tolerance_at(place);
        let mut diagnoser =
            Diagnoser { observed, place, options, tolerance, explanations: Vec::new() };
        let has_oracle =
            diagnoser.observed.iter().any(|observed| cells(&observed.expected).next().is_some());
        if diagnoser.is_wrong_anywhere() {
            diagnoser.explain();
        } else if !has_oracle || findings.iter().any(|finding| may_be_a_fault(&finding.invariant)) {
            // Without an oracle, or where each number may be right but not all of them together.
            diagnoser.explain_by_outcomes(subject, findings.len(), calls);
        }
        diagnoser
    }

    /// The same for recorded outputs, of whole batches or of parts of them: there is nothing to
    /// call, so that only numbers and texts are compared.
    pub(crate) fn of_records(records: Vec<Pair<C>>, options: &C::Options, place: Place) -> Self {
        let gradient = C::wants_gradient(options);
        let answered = |(case, output)| {
            let answer = Returned { output, changed: Vec::new(), no_gradient: Vec::new() };
            observe(case, Ok(answer), options, place, gradient)
        };
        let observed = records.into_iter().take(CASES).map(answered).collect();
        let tolerance = Tolerance { dtype: place.dtype, factor: 1.0 };
        let options = options.clone();
        let mut diagnoser =
            Diagnoser { observed, place, options, tolerance, explanations: Vec::new() };
        if diagnoser.is_wrong_anywhere() {
            diagnoser.explain();
            // Of the few wrong numbers of one call, some fault explains each by chance.
            diagnoser.explanations.retain(|explanation| explanation.diagnosis.matches > 0);
        }
        diagnoser
    }

    /// Fills in the faults that break the same invariants on the minimal cases and the corners.
    fn explain_by_outcomes(&mut self, subject: &mut Subject<C>, minimal: usize, calls: &mut u64) {
        let corners = C::corners(&self.options, self.place.dtype).len();
        let cases = self.observed.iter().map(|observed| observed.case.clone());
        let cases: Vec<C::Case> = cases.take(minimal + corners).collect();
        let (minimal, corners) = cases.split_at(minimal.min(cases.len()));
        // Several invariants may have the same smallest case.
        let mut different: Vec<C::Case> = Vec::new();
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
        for fault in C::faults() {
            let Fault { id, summary, options, behaviour: Behaviour::Gives(variants), .. } = fault
            else {
                continue;
            };
            let distance = options_apart::<C>(options, &self.options);
            for (variant, function) in variants.iter().enumerate() {
                let (matches, of, explained) = self.agreement(*function);
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
            let fault = C::faults().into_iter().find(|fault| fault.id == *id);
            if let Some(Fault { behaviour: Behaviour::Gives(variants), .. }) = fault {
                self.points(variants[*variant], diagnosis);
            }
        }
        self.explanations = explanations;
    }

    /// In how many cases the component does what a fault does wherever the fault is wrong, out of
    /// those in which it is wrong anywhere; and which of the component's wrong numbers it explains.
    fn agreement(&self, fault: Function<C>) -> (u64, u64, Vec<bool>) {
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
        fault: Function<C>,
        case: &C::Case,
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
        case: &C::Case,
        returned: &Returned<C>,
    ) -> bool {
        let mut numbers = C::oracle(case, &self.options, self.place.dtype);
        numbers.retain(|expected| is_given::<C>(returned, expected.field));
        let expected = ExpectedCells { numbers, texts: C::oracle_texts(case, &self.options) };
        let Some(given) = given::<C>(returned, &expected) else { return false };
        let wrong = cells(&expected).zip(&given).map(|(cell, found)| self.wrong(found, &cell));
        let wrong: Vec<bool> = wrong.collect();
        let mut open = wrong.clone();
        for explanation in &self.explanations {
            if !diagnosis.iter().any(|diagnosis| diagnosis.fault == explanation.id) {
                continue;
            }
            let fault = C::faults().into_iter().find(|fault| fault.id == explanation.id);
            let Some(Behaviour::Gives(variants)) = fault.map(|fault| fault.behaviour) else {
                continue;
            };
            let mut explained = Vec::new();
            self.compare(variants[explanation.variant], case, &expected, &given, &mut explained);
            open.iter_mut().zip(explained).for_each(|(open, explained)| *open &= !explained);
        }
        wrong.contains(&true) && !open.contains(&true)
    }

    /// What a fault gives for a case.
    fn planted(&self, fault: Function<C>, case: &C::Case, expected: &ExpectedCells) -> Vec<Given> {
        let mut output = fault(case, &self.options, self.place.dtype);
        round(&mut output, self.place.dtype);
        let output = Returned { output, changed: Vec::new(), no_gradient: Vec::new() };
        given::<C>(&output, expected)
            .unwrap_or_else(|| cells(expected).map(|cell| cell.right()).collect())
    }

    /// Some of the numbers and texts on which the component and a fault were compared: those that
    /// either has wrong, and among the numbers a few that both have right.
    fn points(&self, fault: Function<C>, to: &mut Diagnosis) {
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
    pub(crate) fn faults(&mut self, finding: &Shrunk<C>) -> Vec<Diagnosis> {
        let breaks = |explanation: &Explanation| {
            let fault = C::faults().into_iter().find(|fault| fault.id == explanation.id);
            let fault = fault.expect("explanations are made of faults");
            let mut subject =
                Subject::new(explanation.id, Builtin::fault(fault, explanation.variant));
            subject.options = self.options.clone();
            let (outcome, _) =
                subject.try_case(&finding.invariant, &finding.case, self.place, &mut 0);
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
    fn may_explain(&self, explanation: &Explanation, case: &C::Case) -> bool {
        let observed = self.observed.iter().find(|observed| observed.case == *case);
        let Some(Observed { expected, given: Some(given), .. }) = observed else { return true };
        let mut wrong = cells(expected).zip(given).map(|(cell, found)| self.wrong(found, &cell));
        let fault = C::faults().into_iter().find(|fault| fault.id == explanation.id);
        let Some(Behaviour::Gives(variants)) = fault.map(|fault| fault.behaviour) else {
            return true;
        };
        let mut explained = Vec::new();
        self.compare(variants[explanation.variant], case, expected, given, &mut explained);
        explained.contains(&true) || !wrong.any(|wrong| wrong)
    }

    /// On which input classes a finding's invariant is broken, and on which it holds: a class
    /// fails when most of its cases do, or when the smallest case belongs to it.
    pub(crate) fn classes(
        &self,
        subject: &mut Subject<C>,
        finding: &Shrunk<C>,
        patience: &mut Patience,
        calls: &mut u64,
    ) -> Classes {
        let mut outcomes: Vec<(&C::Case, bool)> = Vec::new();
        for Observed { case, failure, .. } in &self.observed {
            if let Some(failure) = failure {
                // What is known to fail is not called again, as it may hang.
                outcomes.extend((failure.law() == finding.invariant.id).then_some((case, true)));
                continue;
            }
            if patience.is_over() {
                break;
            }
            let (outcome, failed) = subject.try_case(&finding.invariant, case, self.place, calls);
            failed.iter().for_each(|(_, failure)| patience.spend(failure));
            match outcome {
                Ok(()) => outcomes.push((case, false)),
                Err(Stop::Broken(_)) => outcomes.push((case, true)),
                Err(Stop::Vacuous | Stop::Failed) => {}
            }
        }
        classes::<C>(&finding.case, &outcomes, &self.options)
    }
}

/// What came of a call on a case, beside what was expected of it.
fn observe<C: Contract>(
    case: C::Case,
    answer: Result<Returned<C>, Failure>,
    options: &C::Options,
    place: Place,
    gradient: bool,
) -> Observed<C> {
    let mut numbers = C::oracle(&case, options, place.dtype);
    if gradient {
        numbers.extend(C::oracle_gradient(&case, options, place.dtype));
    }
    let mut expected = ExpectedCells { numbers, texts: C::oracle_texts(&case, options) };
    let (given, failure) = match answer {
        Ok(returned) => {
            expected.numbers.retain(|expected| is_given::<C>(&returned, expected.field));
            (given::<C>(&returned, &expected), None)
        }
        Err(failure) => (None, Some(failure)),
    };
    Observed { case, expected, given, failure }
}

/// The classes of a smallest case, and those of others, of which it is said whether they break too.
pub(crate) fn classes<C: Contract>(
    smallest: &C::Case,
    outcomes: &[(&C::Case, bool)],
    options: &C::Options,
) -> Classes {
    let mut classes = Classes::default();
    for class in C::classes() {
        let within = |case: &C::Case| (class.contains)(case, options);
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
fn may_be_a_fault<C: Contract>(invariant: &Invariant<C>) -> bool {
    let mut faults = C::faults().into_iter();
    faults.any(|fault| {
        matches!(fault.behaviour, Behaviour::Gives(_)) && invariant.catches.contains(&fault.id)
    })
}

/// In how many values two sets of options differ, the first of them written as YAML.
fn options_apart<C: Contract>(declared: &str, options: &C::Options) -> usize {
    let declared: C::Options = crate::value::yaml::parse(declared).expect("a fault's options are valid");
    let values = |options: &C::Options| {
        serde_json::to_value(options).ok().and_then(|json| json.as_object().cloned())
    };
    let (declared, options) = (values(&declared), values(options));
    let both = declared.into_iter().flatten().zip(options.into_iter().flatten());
    both.filter(|(a, b)| a != b).count()
}

/// Whether a component gives a field, or owes it: what it need not give says nothing about it.
fn is_given<C: Contract>(returned: &Returned<C>, field: &str) -> bool {
    let given = || floats(&returned.output).iter().any(|(name, _)| *name == field);
    let owed = C::Output::fields().iter().any(|known| known.name == field && !known.optional);
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
fn given<C: Contract>(returned: &Returned<C>, expected: &ExpectedCells) -> Option<Vec<Given>> {
    let (numbers, texts) = (floats(&returned.output), texts(&returned.output));
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
