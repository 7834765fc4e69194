//! Probes: what an invariant gets to see of a component.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use ndarray::{ArrayD, IxDyn};

use crate::contract::cause::{Cause, Found};
use crate::contract::component::{Call, Component, Failure, Gradients, Returned};
use crate::contract::definition::{AnyDefinition, Definition};
use crate::contract::options::AnyOptions;
use crate::contract::outcome::{Outcome, Stop};
use crate::generate::pick::Pick;
use crate::numeric::tolerance::{Expected, Number, Tolerance};
use crate::value::place::{Dtype, Place};
use crate::value::record::{self, AnyRecord, Shared, ValueRef, floats, is_exact};
use crate::value::text;

/// What the engine keeps of one case, so that invariants share the component's first answer and
/// the oracle's.
#[derive(Default)]
pub struct Memo {
    pub output: Option<Result<Arc<Returned>, Failure>>,
    with_gradient: Option<Result<Arc<Returned>, Failure>>,
    pick: Option<Pick>,
    pub expected: Option<Arc<Vec<Expected>>>,
    /// How many calls were made to compare them with the answer for the case.
    pub relations: u64,
}

/// What a law gets to see: a case, the options in force, and the component itself, of any
/// contract.
pub struct AnyProbe<'a> {
    /// What the contract defines.
    pub contract: &'static dyn AnyDefinition,
    /// The inputs, rounded to the place's dtype.
    pub case: &'a Shared,
    /// The options in force.
    pub options: &'a Arc<dyn AnyOptions>,
    /// Where the component runs, and in which format.
    pub place: Place,
    /// How close is close.
    pub tolerance: Tolerance,
    /// Deterministic choices: permutations, factors, positions.
    pub pick: Pick,
    /// The case and the failure behind [`Stop::Failed`].
    pub failed: Option<(Shared, Failure)>,
    /// When the time for calls is over: from then on the case is judged no further.
    pub until: Option<Instant>,
    /// What the component gave for the case, where this probe asked.
    given: Vec<Arc<Returned>>,
    /// How many other cases it was called on, and the last few of them with their outputs.
    others: (u64, Vec<(Shared, Shared)>),
    component: &'a mut dyn Component,
    memo: &'a mut Memo,
    calls: &'a mut u64,
}

impl<'a> AnyProbe<'a> {
    /// A probe of a component on one case. Calls are counted in `calls`.
    #[expect(clippy::too_many_arguments, reason = "all that an invariant may look at")]
    pub fn new(
        contract: &'static dyn AnyDefinition,
        case: &'a Shared,
        options: &'a Arc<dyn AnyOptions>,
        place: Place,
        tolerance: Tolerance,
        component: &'a mut dyn Component,
        memo: &'a mut Memo,
        calls: &'a mut u64,
    ) -> Self {
        let pick = memo.pick.get_or_insert_with(|| Pick::of(&**case)).clone();
        let (failed, until, given, others) = (None, None, Vec::new(), (0, Vec::new()));
        AnyProbe {
            contract,
            case,
            options,
            place,
            tolerance,
            pick,
            failed,
            until,
            given,
            others,
            component,
            memo,
            calls,
        }
    }

    /// What the component gives for the case. One call serves all invariants.
    ///
    /// # Errors
    /// The call failed.
    pub fn output(&mut self) -> Result<Arc<Returned>, Stop> {
        self.not_refused()?;
        if self.memo.output.is_none() {
            self.in_time()?;
            let answer = self.answer(self.case, self.options, false).map(Arc::new);
            if let Ok(returned) = &answer
                && let Some(case) = self.settled(&*returned.output)
            {
                self.memo.expected = Some(Arc::new(self.expected_of(&*case)));
            }
            self.memo.output = Some(answer);
        }
        let answer = self.memo.output.clone().expect("it was just filled");
        self.given.extend(answer.iter().cloned());
        self.kept(self.case, answer)
    }

    /// What the component gives for the case when its gradients are asked for.
    ///
    /// # Errors
    /// The call failed.
    pub fn gradient_output(&mut self) -> Result<Arc<Returned>, Stop> {
        self.not_refused()?;
        if self.memo.with_gradient.is_none() {
            self.in_time()?;
            self.memo.with_gradient =
                Some(self.answer(self.case, self.options, true).map(Arc::new));
        }
        let answer = self.memo.with_gradient.clone().expect("it was just filled");
        self.given.extend(answer.iter().cloned());
        self.kept(self.case, answer)
    }

    /// Whether the component raises for the case, which it must have promised.
    ///
    /// # Errors
    /// The case is not one that it refuses; or the call failed in another way.
    pub fn raises(&mut self) -> Result<bool, Stop> {
        if self.not_refused().is_ok() {
            return Err(Stop::Vacuous);
        }
        self.in_time()?;
        match self.answer(self.case, self.options, false) {
            Err(Failure::Raised { .. }) => Ok(true),
            answer => self.kept(self.case, answer).map(|_| false),
        }
    }

    fn not_refused(&self) -> Outcome {
        let refused = self.contract.refuses(&**self.case, &**self.options);
        if refused { Err(Stop::Vacuous) } else { Ok(()) }
    }

    fn in_time(&self) -> Outcome {
        let is_over = self.until.is_some_and(|end| Instant::now() >= end);
        if is_over { Err(Stop::Vacuous) } else { Ok(()) }
    }

    fn kept<T>(&mut self, case: &Shared, answer: Result<T, Failure>) -> Result<T, Stop> {
        answer.map_err(|failure| {
            self.failed = Some((Arc::clone(case), failure));
            Stop::Failed
        })
    }

    /// The same as [`output`](Self::output), for relations that say nothing about NaN and
    /// infinities: those are the business of the law `finite`. Where NaN is an answer, it is one
    /// like any other.
    ///
    /// # Errors
    /// The call failed, or its output is not finite.
    pub fn finite_output(&mut self) -> Result<Arc<Returned>, Stop> {
        let returned = self.output()?;
        let comparable =
            is_finite(&*returned.output) || self.contract.may_give_nan(&**self.options);
        if comparable { Ok(returned) } else { Err(Stop::Vacuous) }
    }

    /// What the component gives for another case, which must be exact in the place's dtype.
    ///
    /// # Errors
    /// The case is outside the contract, or changed by rounding; or the call failed.
    pub fn call(&mut self, case: &dyn AnyRecord) -> Result<Returned, Stop> {
        self.call_with(case, false)
    }

    /// As [`call`](Self::call), with gradients where asked for.
    ///
    /// # Errors
    /// The case is outside the contract, or changed by rounding; or the call failed.
    pub fn call_with(&mut self, case: &dyn AnyRecord, gradient: bool) -> Result<Returned, Stop> {
        let case = self.exact(case, self.options)?;
        self.memo.relations += 1;
        let answer = self.answer(&case, self.options, gradient);
        if let Ok(returned) = &answer
            && !Arc::ptr_eq(&case, self.case)
        {
            let (count, others) = &mut self.others;
            *count += 1;
            if *count > FEW_CALLS {
                others.remove(0);
            }
            others.push((Shared::clone(&case), Shared::clone(&returned.output)));
        }
        self.kept(&case, answer)
    }

    /// What the component gives for another case under other options: for relations between two
    /// values of an option that the component [reads](Self::reads). A call that fails says
    /// nothing, as a finding is of the declared options.
    ///
    /// # Errors
    /// The case is outside the contract, or changed by rounding; or the call failed.
    pub fn call_under(
        &mut self,
        case: &dyn AnyRecord,
        options: &Arc<dyn AnyOptions>,
    ) -> Result<Returned, Stop> {
        let case = self.exact(case, options)?;
        self.memo.relations += 1;
        self.answer(&case, options, false).map_err(|_| Stop::Vacuous)
    }

    /// A case of the contract under these options that is exact in the place's dtype.
    fn exact(&self, case: &dyn AnyRecord, options: &Arc<dyn AnyOptions>) -> Result<Shared, Stop> {
        self.in_time()?;
        let is_own = std::ptr::addr_eq(case, &raw const **self.case);
        if is_own && Arc::ptr_eq(options, self.options) {
            return self.not_refused().map(|()| Arc::clone(self.case));
        }
        let dtype = self.place.dtype;
        let of_contract = is_exact(case, dtype)
            && self.contract.valid(case, &**options, dtype).is_ok()
            && !self.contract.refuses(case, &**options);
        if of_contract { Ok(case.rounded(dtype)) } else { Err(Stop::Vacuous) }
    }

    /// Whether the component asks for the value of an option, and does not only declare it.
    pub fn reads(&self, option: &str) -> bool {
        self.component.reads(option)
    }

    fn answer(
        &mut self,
        case: &Shared,
        options: &Arc<dyn AnyOptions>,
        gradient: bool,
    ) -> Result<Returned, Failure> {
        *self.calls += 1;
        let call = Call { case, options, place: self.place, gradient };
        let returned = self.component.call(&call)?;
        check_shapes(self.contract, &**case, &**options, &*returned.output)?;
        Ok(returned)
    }

    /// What was found, with its cause, and below its message the call that it tells of. Where
    /// nobody said in what way the invariant is broken, the outputs tell.
    pub fn told(&mut self, found: Found) -> Found {
        let Found { message, cause } = found;
        let cause = cause.or_else(|| Some(self.cause()));
        Found { message: self.with_the_call(message), cause }
    }

    /// In what way the outputs of the case are wrong, as a whole: the first number that is not
    /// finite where the definition is.
    fn cause(&mut self) -> Cause {
        let finite = self.given.iter().all(|returned| is_finite(&*returned.output));
        if finite || self.contract.may_give_nan(&**self.options) {
            return Cause::Differs;
        }
        let expected = self.expected();
        let is_open = |name: &str, at: &IxDyn| {
            let field = expected.iter().find(|expected| expected.field == name);
            let number = field.and_then(|field| field.numbers.get(at));
            number.is_some_and(|number| !number.value.is_finite())
        };
        let fields = self.given.iter().flat_map(|returned| floats(&*returned.output));
        let wrong = fields.into_iter().find_map(|(name, array)| {
            let mut numbers = array.indexed_iter();
            let wrong = numbers.find(|(at, x)| !x.is_finite() && !is_open(name, at));
            wrong.map(|(_, x)| *x)
        });
        Cause::of_number(wrong.unwrap_or(0.0))
    }

    /// A message, and below it the call that it tells of where that is not the one of the case:
    /// the inputs that are others there, and what came back.
    fn with_the_call(&self, message: String) -> String {
        let (count, others) = &self.others;
        let Some((case, output)) = others.last() else { return message };
        if *count > FEW_CALLS {
            return message;
        }
        let mut inputs = String::new();
        let before = self.case.values();
        for ((name, value), (_, own)) in case.values().into_iter().zip(before) {
            let Some(value) = value else { continue };
            if own.is_none_or(|own| own.shape() != value.shape() || !own.same_bits(&value)) {
                inputs.push_str(&format!("{name} {}  ", text::value(&value)));
            }
        }
        let line = format!("{inputs}→  {}", text::one_line(&**output));
        match line.chars().count() > LONGEST_CALL {
            true => message,
            false => format!("{message}\nin the call with {line}"),
        }
    }

    /// How far the numbers of a field may move between two outputs of the component: as
    /// [`bounds`](Self::bounds), and any way where the oracle expects nothing but rounding of 0 and
    /// the component gives something else. Right or wrong is for the oracle to say.
    pub fn related(&mut self, field: &str) -> ArrayD<f64> {
        let bounds = self.bounds(field);
        let open = self.is_only_rounding(field);
        bounds.mapv(|bound| if open { f64::INFINITY } else { bound })
    }

    /// Whether the definition gives nothing but the rounding of 0 in a field, and the component
    /// something else: how far that may move nobody can say.
    fn is_only_rounding(&mut self, field: &str) -> bool {
        let expected = self.expected();
        let Some(expected) = expected.iter().find(|expected| expected.field == field) else {
            return false;
        };
        let bound = |number: &Number| self.tolerance.bound(*number, expected.terms);
        let mut known = expected.numbers.iter().filter(|number| number.scale.is_finite());
        let largest = known.clone().map(bound).fold(0.0, f64::max);
        known.clone().all(|number| number.value.abs() <= bound(number))
            && known.any(|number| number.scale > 0.0)
            && self.largest(expected).iter().any(|(given, _)| *given > largest)
    }

    /// How the component's gradients come about here.
    pub fn gradients(&self) -> Gradients {
        self.component.gradients(self.place)
    }

    /// What the oracle expects for the case.
    pub fn expected(&mut self) -> Arc<Vec<Expected>> {
        if self.memo.expected.is_none() {
            self.memo.expected = Some(Arc::new(self.expected_of(&**self.case)));
        }
        Arc::clone(self.memo.expected.as_ref().expect("it was just filled"))
    }

    /// Whether the definition is beyond what f64 can compute for the case: such a case is none.
    pub fn is_beyond_f64(&mut self) -> bool {
        if self.contract.refuses(&**self.case, &**self.options) {
            return false;
        }
        let beyond = |number: &Number| number.scale.is_nan();
        self.expected().iter().any(|expected| expected.numbers.iter().any(beyond))
    }

    /// The case as the component settled it, where this answer says so.
    fn settled(&self, output: &dyn AnyRecord) -> Option<Shared> {
        self.contract.settled(&**self.case, &**self.options, output)
    }

    /// What the oracle expects for another case.
    pub fn expected_of(&self, case: &dyn AnyRecord) -> Vec<Expected> {
        self.contract.oracle(case, &**self.options, self.place.dtype)
    }

    /// What the oracle expects of the gradient for the case: of that of the output that is
    /// differentiated where the component returns these.
    pub fn expected_gradient(&self, returned: &dyn AnyRecord) -> Vec<Expected> {
        let (case, options, dtype) = (&**self.case, &**self.options, self.place.dtype);
        gradient_of_first(self.contract, case, options, dtype, returned)
    }

    /// The rounding bound of every number of the output field `field`: infinite where the
    /// contract leaves the number open. What is larger than the oracle expects rounds as much more
    /// as it is larger: that it is wrong is for the oracle to say, not for relations between
    /// outputs.
    pub fn bounds(&mut self, field: &str) -> ArrayD<f64> {
        let expected = self.expected();
        self.bounds_in(&expected, field)
    }

    /// The same, in what [`expected_of`](Self::expected_of) gave. A field of which the oracle says
    /// nothing has numbers of no known size: the rounding of 1.
    ///
    /// # Panics
    /// If the contract has no such field.
    pub fn bounds_in(&self, expected: &[Expected], field: &str) -> ArrayD<f64> {
        match expected.iter().find(|expected| expected.field == field) {
            Some(expected) => self.bounds_of(expected),
            None => {
                let shapes = self.contract.shapes(&**self.case, &**self.options);
                let shape = shapes.into_iter().find(|(name, _)| *name == field);
                let id = self.contract.id();
                let (_, shape) = shape.unwrap_or_else(|| panic!("{id} has no `{field}`"));
                ArrayD::from_elem(shape, self.tolerance.bound(Number::new(0.0, 1.0), 1))
            }
        }
    }
}

impl AnyProbe<'_> {
    /// The bounds of what an oracle expects, as wide as what the component gave asks for.
    fn bounds_of(&self, expected: &Expected) -> ArrayD<f64> {
        if let Some(noise) = self.contract.noise(self.place.dtype) {
            return self.noise_of(expected, noise);
        }
        let whole = self.contract.whole().contains(&expected.field);
        let tolerance = if whole { Tolerance::WHOLE } else { self.tolerance };
        let bounds = expected.numbers.mapv(|number| tolerance.bound(number, expected.terms));
        if whole {
            return bounds;
        }
        let known = expected.numbers.iter().zip(&bounds).filter(|(_, bound)| bound.is_finite());
        let rounding = known.fold(0.0, |most: f64, (number, bound)| most.max(bound - number.slack));
        let (mut times, mut most) = (1.0_f64, 0.0_f64);
        for (largest, wanted) in self.largest(expected) {
            if largest > wanted {
                times = times.max((largest / wanted).min(f64::MAX));
                // What is made of rounding errors alone is as much larger than these as it wants:
                // some of its own rounding is all that is allowed.
                let own = self.tolerance.bound(Number::new(largest, largest), expected.terms);
                let part = largest / PARTS;
                most = most.max(if wanted > rounding { part } else { part.min(AMPLIFIED * own) });
            }
        }
        if times == 1.0 {
            return bounds;
        }
        let mut wider = bounds;
        wider.zip_mut_with(&expected.numbers, |bound, number| {
            let rounding = (times * (*bound - number.slack)).min(most);
            // What the contract allows besides rounding is as much larger, whatever it is.
            *bound = bound.max(rounding + times * number.slack);
        });
        wider
    }

    /// The same where only the numbers of the component say how large they are.
    fn noise_of(&self, expected: &Expected, noise: f64) -> ArrayD<f64> {
        let is_any = |number: &Number| number.value.is_nan();
        let given = self.given.iter().filter_map(|it| record::float(&*it.output, expected.field));
        let of_case = given.filter(|given| given.shape() == expected.numbers.shape());
        let numbers = of_case.flat_map(|given| given.into_iter().zip(&expected.numbers));
        let numbers = numbers.filter(|(x, number)| x.is_finite() && !is_any(number));
        let largest = numbers.fold(0.0, |most: f64, (x, _)| most.max(x.abs()));
        let bound = self.tolerance.factor * noise * largest;
        expected.numbers.map(|number| if is_any(number) { f64::INFINITY } else { bound })
    }

    /// The largest number in a field of what the component gave, and the largest that the oracle
    /// expects there: for the case, where this probe asked, and for the few other cases that it
    /// asked about.
    fn largest(&self, expected: &Expected) -> Vec<(f64, f64)> {
        let name = expected.field;
        let mut largest = Vec::new();
        if !self.given.is_empty() {
            let of_case;
            let own = match (&self.memo.expected, name.starts_with("grad_")) {
                (_, true) => Some(expected),
                (Some(memo), false) => memo.iter().find(|own| own.field == name),
                (None, false) => {
                    of_case = self.expected_of(&**self.case);
                    of_case.iter().find(|own| own.field == name)
                }
            };
            let outputs = self.given.iter().map(|returned| &*returned.output);
            largest.extend(outputs.filter_map(|output| largest_two(output, own?)));
        }
        let known = expected.numbers.iter().filter(|number| number.scale.is_finite());
        let known = known.fold(0.0, |most: f64, number| most.max(number.value.abs()));
        let known = largest.iter().fold(known, |most, (_, wanted)| most.max(*wanted));
        for (case, output) in &self.others.1 {
            // The oracle is asked only where it may have something to say.
            let given = record::float(&**output, name);
            let numbers = given.iter().flatten().filter(|x| x.is_finite());
            let given = numbers.fold(0.0, |most: f64, x| most.max(x.abs()));
            if given <= 2.0 * known || name.starts_with("grad_") {
                continue;
            }
            let of_other = self.expected_of(&**case);
            let own = of_other.iter().find(|own| own.field == name);
            largest.extend(own.and_then(|own| largest_two(&**output, own)));
        }
        largest
    }
}

/// The largest number in a field of an output, and the largest that the oracle expects of those
/// that it does not leave open.
fn largest_two(output: &dyn AnyRecord, expected: &Expected) -> Option<(f64, f64)> {
    let field = record::float(output, expected.field)?;
    if field.shape() != expected.numbers.shape() {
        return None;
    }
    let pairs = field.iter().zip(&expected.numbers).filter(|(_, number)| number.scale.is_finite());
    Some(pairs.fold((0.0, 0.0), |(given, wanted): (f64, f64), (x, number)| {
        (if x.is_finite() { given.max(x.abs()) } else { given }, wanted.max(number.value.abs()))
    }))
}

/// So many other calls at most are kept, of which the last one is shown with a message: of more the
/// message sums up.
const FEW_CALLS: u64 = 4;

/// A longer line of inputs and outputs is not shown with a message.
const LONGEST_CALL: usize = 400;

/// However far off it is, what a component gives is not allowed to differ by more than so small a
/// part of its largest number, …
const PARTS: f64 = 64.0;

/// … nor, where 0 is expected, by more than so many times the rounding of that number.
const AMPLIFIED: f64 = 16.0;

/// What a typed call gave: as [`Returned`], shared with the other invariants.
pub struct Answer<D: Definition> {
    /// The outputs, as f64.
    pub output: Arc<D::Output>,
    returned: Arc<Returned>,
}

impl<D: Definition> Deref for Answer<D> {
    type Target = Returned;

    fn deref(&self) -> &Returned {
        &self.returned
    }
}

/// What an invariant of a contract's own gets to see: a case, the options in force, and the
/// component itself.
pub struct Probe<'a, D: Definition> {
    /// The inputs, rounded to the place's dtype.
    pub case: &'a D::Case,
    /// The options in force.
    pub options: &'a D::Options,
    /// Where the component runs, and in which format.
    pub place: Place,
    /// How close is close.
    pub tolerance: Tolerance,
    /// Deterministic choices: permutations, factors, positions.
    pub pick: Pick,
    /// The same, as laws see it that are compiled once for all contracts.
    pub any: AnyProbe<'a>,
}

impl<'a, D> Probe<'a, D>
where
    D: Definition<Case: AnyRecord, Output: AnyRecord, Options: AnyOptions>,
{
    /// A probe of this contract's types.
    pub fn of(any: AnyProbe<'a>) -> Self {
        let AnyProbe { case, options, place, tolerance, .. } = any;
        let (case, options, pick) = (case.typed(), options.typed(), any.pick.clone());
        Probe { case, options, place, tolerance, pick, any }
    }

    /// What the component gives for the case. One call serves all invariants.
    ///
    /// # Errors
    /// The call failed.
    pub fn output(&mut self) -> Result<Answer<D>, Stop> {
        self.any.output().map(answer)
    }

    /// What the component gives for the case when its gradients are asked for.
    ///
    /// # Errors
    /// The call failed.
    pub fn gradient_output(&mut self) -> Result<Answer<D>, Stop> {
        self.any.gradient_output().map(answer)
    }

    /// See [`AnyProbe::finite_output`].
    ///
    /// # Errors
    /// The call failed, or its output is not finite.
    pub fn finite_output(&mut self) -> Result<Answer<D>, Stop> {
        self.any.finite_output().map(answer)
    }

    /// What the component gives for another case, which must be exact in the place's dtype.
    ///
    /// # Errors
    /// The case is outside the contract, or changed by rounding; or the call failed.
    pub fn call(&mut self, case: &D::Case) -> Result<D::Output, Stop> {
        self.any.call(case).map(|returned| record::typed(returned.output))
    }

    /// As [`call`](Self::call), with all that came back, and with gradients where asked for.
    ///
    /// # Errors
    /// The case is outside the contract, or changed by rounding; or the call failed.
    pub fn call_with(&mut self, case: &D::Case, gradient: bool) -> Result<Returned<D>, Stop> {
        let Returned { output, changed, no_gradient } = self.any.call_with(case, gradient)?;
        Ok(Returned { output: record::typed(output), changed, no_gradient })
    }

    /// See [`AnyProbe::call_under`].
    ///
    /// # Errors
    /// The case is outside the contract, or changed by rounding; or the call failed.
    pub fn call_under(&mut self, case: &D::Case, options: &D::Options) -> Result<D::Output, Stop> {
        let options: Arc<dyn AnyOptions> = Arc::new(options.clone());
        self.any.call_under(case, &options).map(|returned| record::typed(returned.output))
    }

    /// Whether the component asks for the value of an option, and does not only declare it.
    pub fn reads(&self, option: &str) -> bool {
        self.any.reads(option)
    }

    /// How the component's gradients come about here.
    pub fn gradients(&self) -> Gradients {
        self.any.gradients()
    }

    /// What the oracle expects for the case.
    pub fn expected(&mut self) -> Arc<Vec<Expected>> {
        self.any.expected()
    }

    /// What the oracle expects for another case.
    pub fn expected_of(&self, case: &D::Case) -> Vec<Expected> {
        self.any.expected_of(case)
    }

    /// See [`AnyProbe::bounds`].
    pub fn bounds(&mut self, field: &str) -> ArrayD<f64> {
        self.any.bounds(field)
    }

    /// See [`AnyProbe::related`].
    pub fn related(&mut self, field: &str) -> ArrayD<f64> {
        self.any.related(field)
    }

    /// See [`AnyProbe::bounds_in`].
    ///
    /// # Panics
    /// If the contract has no such field.
    pub fn bounds_in(&self, expected: &[Expected], field: &str) -> ArrayD<f64> {
        self.any.bounds_in(expected, field)
    }

    /// Checks what must hold of another contract on this component seen as one of it: `call` gives
    /// what it returns for a case of the other contract.
    ///
    /// # Errors
    /// As [`Outcome`] says; a call of `call` that stops is passed on.
    pub fn seen_as<G>(
        &mut self,
        contract: &'static dyn AnyDefinition,
        case: G::Case,
        options: G::Options,
        check: impl FnOnce(&mut Probe<'_, G>) -> Outcome,
        call: impl FnMut(&mut Probe<'_, D>, &G::Case) -> Result<G::Output, Stop> + Send,
    ) -> Outcome
    where
        G: Definition<Case: AnyRecord, Output: AnyRecord, Options: AnyOptions>,
    {
        let (place, tolerance, pick) = (self.place, self.tolerance, self.pick.clone());
        let case: Shared = Arc::new(case);
        let options: Arc<dyn AnyOptions> = Arc::new(options);
        let mut seen = Seen { probe: self, call, stopped: None, of: PhantomData::<fn(G)> };
        let (mut memo, mut calls) = (Memo::default(), 0);
        let mut any = AnyProbe::new(
            contract, &case, &options, place, tolerance, &mut seen, &mut memo, &mut calls,
        );
        any.pick = pick;
        let outcome = check(&mut Probe::of(any));
        seen.stopped.map_or(outcome, Err)
    }
}

/// A component of the contract `D` seen as one of the contract `G`.
struct Seen<'p, 'a, D: Definition, G, F> {
    probe: &'p mut Probe<'a, D>,
    call: F,
    /// Why a call gave nothing.
    stopped: Option<Stop>,
    of: PhantomData<fn(G)>,
}

impl<D, G, F> Component for Seen<'_, '_, D, G, F>
where
    D: Definition,
    G: Definition<Case: AnyRecord, Output: AnyRecord>,
    F: FnMut(&mut Probe<'_, D>, &G::Case) -> Result<G::Output, Stop> + Send,
{
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let output = (self.call)(self.probe, call.case.typed()).map_err(|stop| {
            self.stopped = Some(stop);
            Failure::Malformed { problem: "the call of the other contract says why".to_owned() }
        })?;
        Ok(Returned { output: Arc::new(output), changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::None("it is seen as one of another contract".to_owned())
    }
}

fn answer<D: Definition<Output: AnyRecord>>(returned: Arc<Returned>) -> Answer<D> {
    let output = record::shared(&returned.output);
    Answer { output, returned }
}

/// Whether every float of a record is finite.
pub fn is_finite(record: &dyn AnyRecord) -> bool {
    let mut finite = true;
    record.each(&mut |_, value| {
        if let Some(ValueRef::Float(array)) = value {
            finite &= array.iter().all(|x| x.is_finite());
        }
    });
    finite
}

/// The output whose sum is differentiated: the first that is required, or else that is there.
pub fn first_output(
    contract: &dyn AnyDefinition,
    case: &dyn AnyRecord,
    options: &dyn AnyOptions,
    output: &dyn AnyRecord,
) -> Option<&'static str> {
    let given = output.values().into_iter().find_map(|(name, value)| value.map(|_| name));
    contract.required(case, options).into_iter().next().or(given)
}

/// What the oracle expects of the gradient of the output that is differentiated.
pub fn gradient_of_first(
    contract: &dyn AnyDefinition,
    case: &dyn AnyRecord,
    options: &dyn AnyOptions,
    dtype: Dtype,
    output: &dyn AnyRecord,
) -> Vec<Expected> {
    match first_output(contract, case, options, output) {
        Some(first) => contract.oracle_gradient_of(first, case, options, dtype),
        None => contract.oracle_gradient(case, options, dtype),
    }
}

/// Whether the output has the shapes that the contract promises.
fn check_shapes(
    contract: &dyn AnyDefinition,
    case: &dyn AnyRecord,
    options: &dyn AnyOptions,
    output: &dyn AnyRecord,
) -> Result<(), Failure> {
    for (field, expected) in contract.shapes(case, options) {
        let mut problem = Some(format!("`{field}` is missing from the output"));
        output.each(&mut |name, value| {
            if let (true, Some(value)) = (name == field, value) {
                let shape = value.shape();
                let wrong = || format!("`{field}` has shape {shape:?}, expected {expected:?}");
                problem = (shape != expected).then(wrong);
            }
        });
        if let Some(problem) = problem {
            return Err(Failure::Malformed { problem });
        }
    }
    if first_output(contract, case, options, output).is_none() {
        return Err(Failure::Malformed { problem: "it returned none of the outputs".to_owned() });
    }
    let formed = contract.check_form(case, options, output);
    formed.map_err(|problem| Failure::Malformed { problem })
}
