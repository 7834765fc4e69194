//! Evidence: what a component gave on many cases, beside what the definition gives.

use std::sync::Arc;

use ndarray::{ArrayBase, Data, Dimension as _, IxDyn};

use shakedown_core::contract::component::{Failure, Returned};
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::probe::gradient_of_first;
use shakedown_core::numeric::tolerance::{
    Expected, ExpectedTexts, Number, Tolerance, Wanted, is_white,
};
use shakedown_core::value::place::Place;
use shakedown_core::value::record::{AnyRecord, Shared, floats, texts};

/// Numbers come from the same mistake when they differ by at most twice this share of what the
/// mistake makes: a wrong formula may amplify rounding, as a division by ε does.
const AMPLIFIED: f64 = 0.01;

/// So many tolerances away a number is not only near what is right.
const CLEARLY: f64 = 4.0;

/// What a component gave on many cases.
pub(crate) struct Evidence {
    pub(crate) contract: &'static dyn AnyContract,
    pub(crate) options: Arc<dyn AnyOptions>,
    pub(crate) place: Place,
    pub(crate) tolerance: Tolerance,
    /// Whether what is expected is only what the reference gives, since there is no oracle.
    pub(crate) by_reference: bool,
    /// Whether what all right outputs have in common is compared in the place of outputs.
    in_common: bool,
    /// The whole numbers that are nowhere left open: as a whole they can be compared.
    closed: Vec<&'static str>,
    pub(crate) observed: Vec<Observed>,
}

/// A case with what the component gave, cell by cell.
pub(crate) struct Observed {
    pub(crate) case: Shared,
    /// The same, as the component settled what the case leaves to it.
    pub(crate) settled: Shared,
    pub(crate) expected: ExpectedCells,
    /// `None` where the call failed, or gave something of another shape.
    pub(crate) given: Option<Vec<Given>>,
    pub(crate) failure: Option<Failure>,
}

/// What an oracle expects of a case: numbers, texts, or both.
pub(crate) struct ExpectedCells {
    pub(crate) numbers: Vec<Expected>,
    pub(crate) texts: Vec<ExpectedTexts>,
    /// Whole numbers where the component gave others in number: each field is one text.
    pub(crate) forms: Vec<(&'static str, Wanted)>,
}

/// One number or text that a component or a hypothesis gave.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Number(f64),
    Text(Option<String>),
}

/// What is expected of it.
pub(crate) enum Cell<'a> {
    Number(Number, usize),
    Text(&'a Wanted),
}

impl Evidence {
    /// None yet.
    pub(crate) fn new(
        contract: &'static dyn AnyContract,
        options: &Arc<dyn AnyOptions>,
        place: Place,
        tolerance: Tolerance,
    ) -> Self {
        let options = Arc::clone(options);
        let corners = contract.corners(&*options, place.dtype);
        let corners = || corners.iter().take(24);
        let oracle = |case: &Shared| contract.oracle(&**case, &*options, place.dtype);
        let by_reference = !corners().any(|case| {
            !oracle(case).is_empty() || !contract.oracle_texts(&**case, &*options).is_empty()
        });
        let in_common = by_reference
            && corners().any(|case| {
                let output = contract.reference(&**case, &*options, place.dtype);
                contract.in_common(&**case, &*options, &*output).is_some()
            });
        let mut closed = contract.whole().to_vec();
        if !closed.is_empty() {
            let is_open = |one: &Expected| one.numbers.iter().any(|one| one.scale.is_infinite());
            let open = corners().flat_map(oracle).filter(is_open);
            open.for_each(|one| closed.retain(|field| *field != one.field));
        }
        let observed = Vec::new();
        Evidence { contract, options, place, tolerance, by_reference, in_common, closed, observed }
    }

    /// Whether an output that is not what the reference gives may be right all the same.
    pub(crate) fn is_open(&self) -> bool {
        self.by_reference && !self.in_common
    }

    /// What is compared of an output.
    pub(crate) fn compared(&self, case: &Shared, output: &Shared) -> Shared {
        let common = || self.contract.in_common(&**case, &*self.options, &**output);
        let common = if self.in_common { common() } else { None };
        common.unwrap_or_else(|| Shared::clone(output))
    }

    /// What came of a call on a case, beside what was expected of it.
    pub(crate) fn observe(
        &mut self,
        case: Shared,
        answer: Result<Returned, Failure>,
        gradient: bool,
    ) {
        self.observed.push(match answer {
            Ok(returned) => self.observed_of(&case, &returned, gradient),
            Err(failure) => {
                let expected = self.expected(&case, gradient, None);
                let settled = Shared::clone(&case);
                Observed { case, settled, expected, given: None, failure: Some(failure) }
            }
        });
    }

    /// What a component gave, beside what was expected of it.
    fn observed_of(&self, case: &Shared, returned: &Returned, gradient: bool) -> Observed {
        let returned: &Returned = &Returned {
            output: self.compared(case, &returned.output),
            changed: Vec::new(),
            no_gradient: returned.no_gradient.clone(),
        };
        let settled = self.contract.settled(&**case, &*self.options, &*returned.output);
        let settled = settled.unwrap_or_else(|| Shared::clone(case));
        let mut expected = self.expected(&settled, gradient, Some(&*returned.output));
        expected.numbers.retain(|one| is_given(self.contract, returned, one.field));
        if let Some(forms) = self.forms(&expected.numbers, returned) {
            expected = ExpectedCells { numbers: Vec::new(), texts: Vec::new(), forms };
        }
        let given = given(returned, &expected);
        Observed { case: Shared::clone(case), settled, expected, given, failure: None }
    }

    /// What is expected of whole numbers, where some have another shape in what came back than they
    /// should; `None` where none has.
    pub(crate) fn forms(
        &self,
        expected: &[Expected],
        returned: &Returned,
    ) -> Option<Vec<(&'static str, Wanted)>> {
        let whole = self.contract.whole();
        let found = floats(&*returned.output);
        let is_another = |one: &Expected| {
            let found = found.iter().find(|(name, _)| *name == one.field);
            whole.contains(&one.field)
                && found.is_some_and(|(_, found)| found.shape() != one.numbers.shape())
        };
        let right = |one: &Expected| Wanted::text(form(&one.numbers.map(|number| number.value)));
        let closed = || expected.iter().filter(|one| self.closed.contains(&one.field));
        let forms = || closed().map(|one| (one.field, right(one))).collect();
        expected.iter().any(is_another).then(forms)
    }

    /// The same, of a case that is no part of the evidence; `None` where nothing can be compared.
    pub(crate) fn observed_again(&self, case: &Shared, returned: &Returned) -> Option<Observed> {
        let gradient = self.contract.wants_gradient(&*self.options);
        let observed = self.observed_of(case, returned, gradient);
        observed.given.is_some().then_some(observed)
    }

    /// What is expected of a case; of the gradient, where the component gives these outputs.
    pub(crate) fn expected(
        &self,
        case: &Shared,
        gradient: bool,
        output: Option<&dyn AnyRecord>,
    ) -> ExpectedCells {
        let Evidence { contract, options, place, .. } = self;
        if self.by_reference {
            let output = contract.reference(&**case, &**options, place.dtype);
            return as_the_reference(&*self.compared(case, &output));
        }
        let mut numbers = contract.oracle(&**case, &**options, place.dtype);
        if gradient {
            let (case, options, dtype) = (&**case, &**options, place.dtype);
            numbers.extend(match output {
                Some(output) => gradient_of_first(*contract, case, options, dtype, output),
                None => contract.oracle_gradient(case, options, dtype),
            });
        }
        let texts = contract.oracle_texts(&**case, &**options);
        ExpectedCells { numbers, texts, forms: Vec::new() }
    }

    /// Whether a number or text is not what the definition gives.
    pub(crate) fn wrong(&self, found: &Given, cell: &Cell<'_>) -> bool {
        match (found, cell) {
            (Given::Number(found), Cell::Number(number, terms)) => {
                !self.tolerance.accepts(*found, *number, *terms)
                    || (number.value.is_finite() && !found.is_finite())
            }
            (Given::Text(found), Cell::Text(wanted)) => !wanted.accepts(found.as_deref()),
            _ => true,
        }
    }

    /// Whether it is further off than anything within the tolerance of what it is like.
    pub(crate) fn clearly_wrong(&self, found: &Given, cell: &Cell<'_>) -> bool {
        match (found, cell) {
            (Given::Number(found), Cell::Number(number, terms)) => {
                let distance = (found - number.value).abs();
                distance.is_nan() || distance > CLEARLY * self.tolerance.bound(*number, *terms)
            }
            _ => true,
        }
    }

    /// Whether a component gives what a hypothesis gives.
    pub(crate) fn alike(&self, given: &Given, planted: &Given, cell: &Cell<'_>) -> bool {
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

    /// For each cell that the component gave, whether it is wrong.
    pub(crate) fn wrong_cells(&self) -> Vec<bool> {
        let answered = self.observed.iter().filter_map(Observed::answered);
        let wrong = |(expected, given): (_, &Vec<Given>)| -> Vec<bool> {
            cells(expected).zip(given).map(|(cell, found)| self.wrong(found, &cell)).collect()
        };
        answered.flat_map(wrong).collect()
    }

    /// Whether any cell is wrong.
    pub(crate) fn is_wrong_anywhere(&self) -> bool {
        self.wrong_cells().contains(&true)
    }
}

impl Observed {
    /// What was expected and given, where anything was.
    pub(crate) fn answered(&self) -> Option<(&ExpectedCells, &Vec<Given>)> {
        Some((&self.expected, self.given.as_ref()?))
    }
}

/// What the reference gives, as if it were the definition: other answers may be right too.
fn as_the_reference(output: &dyn AnyRecord) -> ExpectedCells {
    let numbers = floats(output).into_iter().map(|(field, values)| Expected {
        field,
        numbers: values.mapv(|value| Number::new(value, value.abs())),
        terms: 1,
    });
    let texts = texts(output).into_iter().map(|(field, values)| ExpectedTexts {
        field,
        texts: values.iter().map(|text| Wanted::OneOf(vec![text.clone()])).collect(),
    });
    ExpectedCells { numbers: numbers.collect(), texts: texts.collect(), forms: Vec::new() }
}

/// Whether a component gives a field, or owes it: what it need not give says nothing about it.
fn is_given(contract: &dyn AnyContract, returned: &Returned, field: &str) -> bool {
    let given = || floats(&*returned.output).iter().any(|(name, _)| *name == field);
    let owed = contract.outputs().iter().any(|known| known.name == field && !known.optional);
    let detached = |leaf: &str| returned.no_gradient.iter().any(|no| no == leaf);
    owed || given() || field.strip_prefix("grad_").is_some_and(detached)
}

/// Numbers as one text: their shape, then each of them.
fn form<S: Data<Elem = f64>>(numbers: &ArrayBase<S, IxDyn>) -> String {
    let shape: Vec<String> = numbers.shape().iter().map(usize::to_string).collect();
    let numbers: Vec<String> = numbers.iter().map(|x| (x + 0.0).to_string()).collect();
    format!("[{}]: {}", shape.join(", "), numbers.join(" "))
}

impl Cell<'_> {
    /// Whether the contract leaves a number open.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Cell::Number(number, _) if number.scale.is_infinite())
    }

    /// What the definition gives.
    pub(crate) fn right(&self) -> Given {
        match self {
            Cell::Number(number, _) => Given::Number(number.value),
            Cell::Text(wanted) => Given::Text(wanted.shown()),
        }
    }
}

/// What is expected of all fields in one sequence.
pub(crate) fn cells(expected: &ExpectedCells) -> impl Iterator<Item = Cell<'_>> {
    let numbers = expected
        .numbers
        .iter()
        .flat_map(|field| field.numbers.iter().map(|number| Cell::Number(*number, field.terms)));
    let texts = expected.texts.iter().flat_map(|field| field.texts.iter().map(Cell::Text));
    let forms = expected.forms.iter().map(|(_, form)| Cell::Text(form));
    numbers.chain(texts).chain(forms)
}

/// The field of each cell and its place in it, in the same sequence.
pub(crate) fn places(expected: &ExpectedCells) -> Vec<(&'static str, Vec<usize>)> {
    let mut places = Vec::new();
    for Expected { field, numbers, .. } in &expected.numbers {
        let of_field = numbers.indexed_iter().map(|(at, _)| (*field, at.slice().to_vec()));
        places.extend(of_field);
    }
    for ExpectedTexts { field, texts } in &expected.texts {
        places.extend((0..texts.len()).map(|at| (*field, vec![at])));
    }
    places.extend(expected.forms.iter().map(|(field, _)| (*field, Vec::new())));
    places
}

/// What an output gives, in the same sequence. A gradient that nobody gave is what is expected.
/// `None` where a field is missing or of another shape.
pub(crate) fn given(returned: &Returned, expected: &ExpectedCells) -> Option<Vec<Given>> {
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
    for (field, _) in &expected.forms {
        let (_, found) = numbers.iter().find(|(name, _)| name == field)?;
        given.push(Given::Text(Some(form(found))));
    }
    Some(given)
}
