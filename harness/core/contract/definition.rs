//! What a contract is: the types of its cases, outputs and options, and what its definition says.

use std::fmt::Debug;
use std::sync::Arc;

use ndarray::ArrayViewD;

use crate::contract::options::AnyOptions;
use crate::contract::stage::Stage;
use crate::numeric::tolerance::{Expected, ExpectedTexts};
use crate::value::place::Dtype;
use crate::value::record::{AnyRecord, Field, Misfit, Shared, Source, Value};

/// The types of a contract.
pub trait Definition: 'static {
    /// The inputs, over the host's arrays.
    type Case: Clone + Debug + Send + Sync;
    /// The outputs, over the host's arrays.
    type Output: Clone + Debug + Send + Sync;
    /// The options.
    type Options: Clone + Debug + Send + Sync;
}

/// The types of any contract, known at run time only: what all that is compiled once works on.
#[derive(Clone, Copy, Debug)]
pub enum Erased {}

impl Definition for Erased {
    type Case = Shared;
    type Output = Shared;
    type Options = Arc<dyn AnyOptions>;
}

/// What the definition of a contract says, of cases and options whose types are known at run time
/// only. See the methods of [`Contract`](crate::contract::Contract) of the same names.
///
/// # Panics
/// Every method does if it is given a case, an output or options of another contract.
pub trait AnyDefinition: Send + Sync {
    /// The normative name: `group-advantage`.
    fn id(&self) -> &'static str;
    /// The stage of the pipeline.
    fn stage(&self) -> Stage;
    /// The inputs by which outputs are differentiated.
    fn leaves(&self) -> &'static [&'static str];
    /// The float outputs that hold whole numbers.
    fn whole(&self) -> &'static [&'static str];
    /// The fields of a case.
    fn inputs(&self) -> Vec<Field>;
    /// The fields of an output.
    fn outputs(&self) -> Vec<Field>;
    /// The documentation of a case and of an output, with how large each field is.
    fn record_docs(&self) -> [&'static str; 2];
    /// A case made of its values; the error names the field.
    fn case(&self, get: Source<'_, Value>) -> Result<Shared, Misfit>;
    /// An output made of its values; the error names the field.
    fn output(&self, get: Source<'_, Value>) -> Result<Shared, Misfit>;
    /// Why a case is outside the contract, where it is.
    fn valid(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        dtype: Dtype,
    ) -> Result<(), String>;
    /// Whether the component must raise for a case.
    fn refuses(&self, case: &dyn AnyRecord, options: &dyn AnyOptions) -> bool;
    /// Whether NaN may stand for "no answer" in the first output.
    fn may_give_nan(&self, options: &dyn AnyOptions) -> bool;
    /// The shape of each required output field.
    fn shapes(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
    ) -> Vec<(&'static str, Vec<usize>)>;
    /// An output as a dtype holds it: rounded, but for whole numbers, which are no floats there.
    fn stored(&self, output: &dyn AnyRecord, dtype: Dtype) -> Shared {
        let whole = self.whole();
        if whole.is_empty() {
            return output.rounded(dtype);
        }
        output.with_floats(&mut |name, floats| {
            if !whole.contains(&name) {
                floats.iter_mut().for_each(|x| *x = dtype.round(*x));
            }
        })
    }
    /// What a wrong number means, to be said behind it.
    fn meaning(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        found: ArrayViewD<'_, f64>,
        expected: &Expected,
        at: &[usize],
    ) -> Option<String>;
    /// The case as the component settled it, where its answer says what the case leaves to it.
    fn settled(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        output: &dyn AnyRecord,
    ) -> Option<Shared>;
    /// What an output lacks that is not of a shape known beforehand.
    fn check_form(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        output: &dyn AnyRecord,
    ) -> Result<(), String>;
    /// The outputs that must be there. Where there are none, any will do.
    fn required(&self, case: &dyn AnyRecord, options: &dyn AnyOptions) -> Vec<&'static str> {
        let shapes = self.shapes(case, options);
        let mut required: Vec<&str> = shapes.iter().map(|(name, _)| *name).collect();
        let owed = |field: &Field| !field.optional && !field.name.starts_with("grad_");
        for field in self.outputs().iter().filter(|field| owed(field)) {
            if !required.contains(&field.name) {
                required.push(field.name);
            }
        }
        required
    }
    /// What the definition gives for the numbers of a case.
    fn oracle(&self, case: &dyn AnyRecord, options: &dyn AnyOptions, dtype: Dtype)
    -> Vec<Expected>;
    /// How far apart two numbers may be that should be equal, as a part of the largest number.
    fn noise(&self, dtype: Dtype) -> Option<f64>;
    /// What the definition gives for the texts of a case.
    fn oracle_texts(&self, case: &dyn AnyRecord, options: &dyn AnyOptions) -> Vec<ExpectedTexts>;
    /// What the definition gives for the gradient of the summed first required output.
    fn oracle_gradient(
        &self,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        dtype: Dtype,
    ) -> Vec<Expected>;
    /// The same for the gradient of the output that is differentiated.
    fn oracle_gradient_of(
        &self,
        output: &str,
        case: &dyn AnyRecord,
        options: &dyn AnyOptions,
        dtype: Dtype,
    ) -> Vec<Expected>;
    /// Whether the gradient is part of the contract under these options.
    fn wants_gradient(&self, options: &dyn AnyOptions) -> bool;
    /// Whether the gradient is the slope of the first output.
    fn gradient_is_slope(&self, options: &dyn AnyOptions) -> bool;
}
