//! Contracts whose types are known at run time only: the one module that is compiled for each
//! contract, so that the engine, the files and the command are compiled once.

use std::any::TypeId;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use arbitrary::Unstructured;
use ndarray::ArrayViewD;

use crate::contract::Contract;
use crate::contract::blind::Blind;
use crate::contract::class::AnyClass;
use crate::contract::component::{Call, Component, Failure, Gradients, Returned};
use crate::contract::cuts::Cuts;
use crate::contract::definition::AnyDefinition;
use crate::contract::doc::Doc;
use crate::contract::fault::{
    AnyFault, AnyFunction, Behaviour, Conventions, Fault, Variant, Wrong, misbehaviours,
};
use crate::contract::invariant::AnyInvariant;
use crate::contract::options::{AnyOptions, OptionDoc, Options};
use crate::contract::reading::Reader;
use crate::contract::stage::Stage;
use crate::generate::axes::Axes;
use crate::generate::measure::Measure;
use crate::numeric::tolerance::{Expected, ExpectedTexts};
use crate::value::error::{Error, nearest};
use crate::value::place::{Dtype, Place};
use crate::value::record::{AnyRecord, Field, Misfit, Record as _, Shared, Source, Value, round};
use crate::value::yaml::{Document, Step};

/// A contract whose types are known at run time only. See the items of [`Contract`] of the same
/// names; every case that it gives is rounded to its dtype.
///
/// # Panics
/// Every method does if it is given a case, an output or options of another contract.
pub trait AnyContract: AnyDefinition {
    /// The documentation.
    fn doc(&self) -> Doc;
    /// A right function in Python, where there is one.
    fn example(&self) -> &'static str;
    /// The options and what they mean.
    fn option_docs(&self) -> Vec<OptionDoc>;
    /// The options where nothing is declared.
    fn default_options(&self) -> Arc<dyn AnyOptions>;
    /// Options drawn at random, always valid.
    fn draw_options(&self, u: &mut Unstructured<'_>) -> arbitrary::Result<Arc<dyn AnyOptions>>;
    /// Values of options that hide a mistake.
    fn blind(&self) -> &'static [Blind];
    /// The options at the end of some steps into a document, which may be out of range; the
    /// defaults where there are none.
    ///
    /// # Errors
    /// With line, column and the nearest known name.
    fn read_options(
        &self,
        document: &Document,
        steps: &[Step<'_>],
    ) -> Result<Arc<dyn AnyOptions>, Error>;
    /// A case made of random bytes.
    fn draw(
        &self,
        u: &mut Unstructured<'_>,
        options: &dyn AnyOptions,
        dtype: Dtype,
    ) -> arbitrary::Result<Shared>;
    /// The deterministic cases, the smallest first.
    fn corners(&self, options: &dyn AnyOptions, dtype: Dtype) -> Vec<Shared>;
    /// Small cases besides the corners.
    fn small(&self, options: &dyn AnyOptions, dtype: Dtype) -> Vec<Shared>;
    /// Simpler cases, the boldest first.
    fn simpler(&self, case: &dyn AnyRecord, options: &dyn AnyOptions, dtype: Dtype) -> Vec<Shared>;
    /// How complex a case is.
    fn measure(&self, case: &dyn AnyRecord) -> Measure;
    /// The axes that its arrays share.
    fn axes(&self) -> &'static Axes;
    /// The same case with a text in the place of one that says nothing.
    fn telling(&self, case: &dyn AnyRecord, text: &str) -> Option<Shared>;
    /// What the reference would give if answers were compared by `same`.
    fn compared(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        same: &dyn Fn(&str, &str) -> bool,
    ) -> Option<Shared>;
    /// What the reference gives, on a tape that names its terms.
    fn on_tape(&self, case: &dyn AnyRecord, options: &dyn AnyOptions, dtype: Dtype) -> Shared;
    /// What the reference would give if it read texts otherwise.
    fn reread(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        reader: &Reader<'_>,
    ) -> Option<Shared>;
    /// What all right outputs have in common, in the form of an output.
    fn in_common(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        output: &dyn AnyRecord,
    ) -> Option<Shared>;
    /// Cases that every component is checked on: the name of each, and the text of its case file.
    fn regressions(&self) -> &'static [(&'static str, &'static str)];
    /// How large batches are cut.
    fn cuts(&self) -> Option<&'static dyn Cuts>;
    /// A few small inputs for a table.
    fn samples(&self, options: &dyn AnyOptions, dtype: Dtype) -> Vec<Shared>;
    /// What the reference gives for a case.
    fn reference(&self, case: &dyn AnyRecord, options: &dyn AnyOptions, dtype: Dtype) -> Shared;
    /// What must hold.
    fn invariants(&self) -> &[AnyInvariant];
    /// Known wrong behaviours.
    fn faults(&self) -> &[AnyFault];
    /// The input classes.
    fn classes(&self) -> &[AnyClass];
}

impl dyn AnyContract + '_ {
    /// The invariant of this name.
    pub fn invariant(&self, id: &str) -> Option<&AnyInvariant> {
        self.invariants().iter().find(|invariant| invariant.id == id)
    }

    /// The invariant of this name.
    ///
    /// # Errors
    /// There is none: the message, with the nearest known name.
    pub fn invariant_called(&self, id: &str) -> Result<&AnyInvariant, String> {
        if let Some(invariant) = self.invariant(id) {
            return Ok(invariant);
        }
        let own = self.id();
        let near = match nearest(id, self.invariants().iter().map(|invariant| invariant.id)) {
            none if none.is_empty() => format!("; `shakedown list {own}` has them all"),
            near => near,
        };
        Err(format!("unknown invariant `{id}` of `{own}`{near}"))
    }

    /// The fault of this name.
    pub fn fault(&self, id: &str) -> Option<&AnyFault> {
        self.faults().iter().find(|fault| fault.id == id)
    }
}

/// A contract with its lists, which are made once.
struct Typed<C> {
    invariants: Vec<AnyInvariant>,
    faults: Vec<AnyFault>,
    classes: Vec<AnyClass>,
    of: PhantomData<fn(C)>,
}

/// The contract `C`, its type known at run time only: one for each contract of the program.
pub fn of<C: Contract>() -> &'static dyn AnyContract {
    static KNOWN: Mutex<Option<HashMap<TypeId, &'static dyn AnyContract>>> = Mutex::new(None);
    let id = TypeId::of::<C>();
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(contract) = known().get_or_insert_default().get(&id) {
        return *contract;
    }
    let invariants = (C::PARTS.invariants)().into_iter().map(AnyInvariant::from).collect();
    let mut faults: Vec<AnyFault> = (C::PARTS.faults)().into_iter().map(any_fault).collect();
    faults.extend(misbehaviours(&C::Output::fields()));
    let classes = (C::PARTS.classes)().into_iter().map(AnyClass::from).collect();
    let typed = Typed::<C> { invariants, faults, classes, of: PhantomData };
    // As many as there are contracts, for as long as the program lives.
    *known().get_or_insert_default().entry(id).or_insert_with(|| Box::leak(Box::new(typed)))
}

/// A fault of the contract `C`, its types known at run time only.
fn any_fault<C: Contract>(fault: Fault<C>) -> AnyFault {
    let Fault { id, summary, source, options, variants } = fault;
    let behaviour = Behaviour::Gives(variants.into_iter().map(any_function).collect());
    AnyFault { id, summary, source, options, behaviour }
}

fn any_function<C: Contract>(variant: Variant<C>) -> AnyFunction {
    let as_if = match variant {
        Variant::AsIf(other) => Some(other),
        Variant::Gives(_) | Variant::On(_) => None,
    };
    let function = move |case: &C::Case, options: &C::Options, dtype| match &variant {
        Variant::Gives(Wrong(function)) => function(case, options, dtype),
        Variant::AsIf(other) => (C::PARTS.reference)(case, &other(options.clone()), dtype),
        Variant::On(change) => {
            let mut changed = case.clone();
            change(&mut changed, options);
            (C::PARTS.reference)(&changed, options, dtype)
        }
    };
    AnyFunction {
        function: Box::new(move |case, options, dtype| {
            let mut output = function(case.typed(), options.typed(), dtype);
            round(&mut output, dtype);
            Arc::new(output)
        }),
        as_if: as_if.map(|other| -> Conventions {
            Box::new(move |options| Arc::new(other(options.typed::<C::Options>().clone())))
        }),
    }
}

fn shared<R: AnyRecord>(records: Vec<R>) -> Vec<Shared> {
    records.into_iter().map(|record| Arc::new(record) as Shared).collect()
}

fn rounded<R: crate::value::record::Record + AnyRecord>(
    mut records: Vec<R>,
    dtype: Dtype,
) -> Vec<Shared> {
    records.iter_mut().for_each(|record| round(record, dtype));
    shared(records)
}

impl<C: Contract> AnyDefinition for Typed<C> {
    fn id(&self) -> &'static str {
        C::ID
    }

    fn stage(&self) -> Stage {
        C::STAGE
    }

    fn leaves(&self) -> &'static [&'static str] {
        C::LEAVES
    }

    fn whole(&self) -> &'static [&'static str] {
        C::WHOLE
    }

    fn inputs(&self) -> Vec<Field> {
        C::Case::fields()
    }

    fn outputs(&self) -> Vec<Field> {
        C::Output::fields()
    }

    fn record_docs(&self) -> [&'static str; 2] {
        [C::Case::DOC, C::Output::DOC]
    }

    fn case(&self, get: Source<'_, Value>) -> Result<Shared, Misfit> {
        C::Case::from_values(get).map(|case| Arc::new(case) as Shared)
    }

    fn output(&self, get: Source<'_, Value>) -> Result<Shared, Misfit> {
        C::Output::from_values(get).map(|output| Arc::new(output) as Shared)
    }

    fn valid(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        dtype: Dtype,
    ) -> Result<(), String> {
        (C::PARTS.valid)(case.typed(), options.typed(), dtype)
    }

    fn refuses(&self, case: &dyn AnyRecord, options: &dyn AnyOptions) -> bool {
        C::refuses(case.typed(), options.typed())
    }

    fn noise(&self, dtype: Dtype) -> Option<f64> {
        C::noise(dtype)
    }

    fn may_give_nan(&self, options: &dyn AnyOptions) -> bool {
        C::may_give_nan(options.typed())
    }

    fn shapes(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
    ) -> Vec<(&'static str, Vec<usize>)> {
        C::shapes(case.typed(), options.typed())
    }

    fn check_form(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        output: &dyn AnyRecord,
    ) -> Result<(), String> {
        C::check_form(case.typed(), options.typed(), output.typed())
    }

    fn meaning(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        found: ArrayViewD<'_, f64>,
        expected: &Expected,
        at: &[usize],
    ) -> Option<String> {
        C::meaning(case.typed(), options.typed(), found, expected, at)
    }

    fn settled(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        output: &dyn AnyRecord,
    ) -> Option<Shared> {
        let settled = C::settled(case.typed(), options.typed(), output.typed());
        settled.map(|case| Arc::new(case) as Shared)
    }

    fn oracle(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        dtype: Dtype,
    ) -> Vec<Expected> {
        C::oracle(case.typed(), options.typed(), dtype)
    }

    fn oracle_texts(&self, case: &dyn AnyRecord, options: &dyn AnyOptions) -> Vec<ExpectedTexts> {
        C::oracle_texts(case.typed(), options.typed())
    }

    fn oracle_gradient(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        dtype: Dtype,
    ) -> Vec<Expected> {
        C::oracle_gradient(case.typed(), options.typed(), dtype)
    }

    fn oracle_gradient_of(
        &self,
        output: &str,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        dtype: Dtype,
    ) -> Vec<Expected> {
        C::oracle_gradient_of(output, case.typed(), options.typed(), dtype)
    }

    fn wants_gradient(&self, options: &dyn AnyOptions) -> bool {
        C::wants_gradient(options.typed())
    }

    fn gradient_is_slope(&self, options: &dyn AnyOptions) -> bool {
        C::gradient_is_slope(options.typed())
    }
}

impl<C: Contract> AnyContract for Typed<C> {
    fn doc(&self) -> Doc {
        Doc(C::DOC)
    }

    fn example(&self) -> &'static str {
        C::EXAMPLE
    }

    fn option_docs(&self) -> Vec<OptionDoc> {
        C::Options::docs()
    }

    fn default_options(&self) -> Arc<dyn AnyOptions> {
        Arc::new(C::Options::default())
    }

    fn draw_options(&self, u: &mut Unstructured<'_>) -> arbitrary::Result<Arc<dyn AnyOptions>> {
        Ok(Arc::new(C::Options::draw(u)?))
    }

    fn blind(&self) -> &'static [Blind] {
        C::BLIND
    }

    fn read_options(
        &self,
        document: &Document,
        steps: &[Step<'_>],
    ) -> Result<Arc<dyn AnyOptions>, Error> {
        Ok(Arc::new(document.read_at::<C::Options>(steps)?))
    }

    fn draw(
        &self,
        u: &mut Unstructured<'_>,
        options: &dyn AnyOptions,
        dtype: Dtype,
    ) -> arbitrary::Result<Shared> {
        let mut case = (C::PARTS.draw)(u, options.typed(), dtype)?;
        round(&mut case, dtype);
        Ok(Arc::new(case))
    }

    fn corners(&self, options: &dyn AnyOptions, dtype: Dtype) -> Vec<Shared> {
        rounded((C::PARTS.corners)(options.typed(), dtype), dtype)
    }

    fn small(&self, options: &dyn AnyOptions, dtype: Dtype) -> Vec<Shared> {
        rounded(C::small(options.typed(), dtype), dtype)
    }

    fn simpler(&self, case: &dyn AnyRecord, options: &dyn AnyOptions, dtype: Dtype) -> Vec<Shared> {
        rounded(C::simpler(case.typed(), options.typed(), dtype), dtype)
    }

    fn measure(&self, case: &dyn AnyRecord) -> Measure {
        C::measure(case.typed())
    }

    fn axes(&self) -> &'static Axes {
        &C::AXES
    }

    fn telling(&self, case: &dyn AnyRecord, text: &str) -> Option<Shared> {
        C::telling(case.typed(), text).map(|case| -> Shared { Arc::new(case) })
    }

    fn compared(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        same: &dyn Fn(&str, &str) -> bool,
    ) -> Option<Shared> {
        let output = C::compared(case.typed(), options.typed(), same);
        output.map(|output| -> Shared { Arc::new(output) })
    }

    fn on_tape(&self, case: &dyn AnyRecord, options: &dyn AnyOptions, dtype: Dtype) -> Shared {
        Arc::new(C::on_tape(case.typed(), options.typed(), dtype))
    }

    fn reread(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        reader: &Reader<'_>,
    ) -> Option<Shared> {
        let output = C::reread(case.typed(), options.typed(), reader);
        output.map(|output| -> Shared { Arc::new(output) })
    }

    fn in_common(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        output: &dyn AnyRecord,
    ) -> Option<Shared> {
        let common = C::in_common(case.typed(), options.typed(), output.typed());
        common.map(|output| -> Shared { Arc::new(output) })
    }

    fn regressions(&self) -> &'static [(&'static str, &'static str)] {
        C::REGRESSIONS
    }

    fn cuts(&self) -> Option<&'static dyn Cuts> {
        C::cuts()
    }

    fn samples(&self, options: &dyn AnyOptions, dtype: Dtype) -> Vec<Shared> {
        shared(C::samples(options.typed(), dtype))
    }

    fn reference(&self, case: &dyn AnyRecord, options: &dyn AnyOptions, dtype: Dtype) -> Shared {
        Arc::new((C::PARTS.reference)(case.typed(), options.typed(), dtype))
    }

    fn invariants(&self) -> &[AnyInvariant] {
        &self.invariants
    }

    fn faults(&self) -> &[AnyFault] {
        &self.faults
    }

    fn classes(&self) -> &[AnyClass] {
        &self.classes
    }
}

/// A component of the contract `C`, its types known at run time only.
pub fn component<C: Contract>(component: impl Component<C> + 'static) -> Box<dyn Component> {
    Box::new(TypedComponent { component, of: PhantomData::<fn(C)> })
}

struct TypedComponent<C, T> {
    component: T,
    of: PhantomData<fn(C)>,
}

impl<C: Contract, T: Component<C>> Component for TypedComponent<C, T> {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let Call { case, options, place, gradient } = *call;
        let call = Call { case: case.typed(), options: options.typed(), place, gradient };
        let Returned { output, changed, no_gradient } = self.component.call(&call)?;
        Ok(Returned { output: Arc::new(output), changed, no_gradient })
    }

    fn prepare(&mut self, place: Place) -> Result<Option<String>, Error> {
        self.component.prepare(place)
    }

    fn home(&self) -> Place {
        self.component.home()
    }

    fn gradients(&self, place: Place) -> Gradients {
        self.component.gradients(place)
    }

    fn begin_anew(&mut self) -> bool {
        self.component.begin_anew()
    }

    fn reads(&self, option: &str) -> bool {
        self.component.reads(option)
    }
}
