//! Components made of functions on tensors of any library, their gradients by its autograd.

use std::collections::HashMap;
use std::fmt::Display;
use std::marker::PhantomData;
use std::path::PathBuf;

use ndarray::ArrayD;

use shakedown_core::contract::component::{Call, Component, Failure, Gradients, Returned, numbers};
use shakedown_core::contract::{Contract, erased};
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::{Arrays, Kind, Record, Value, is_named};

use crate::host::function::guarded;

/// A library of tensors: the family of arrays of a record over them, and what a check asks of it.
pub trait Library: Arrays + 'static {
    /// What a backward pass leaves.
    type Gradients;

    /// Makes the library ready, before the first tensor.
    fn begin() {}

    /// The same tensor once more, not a copy of its numbers.
    fn again(tensor: &Self::Any) -> Self::Any;

    /// Why a place is not here; `None` where it is.
    fn lacks(place: Place) -> Option<String>;

    /// A tensor of these numbers at a place, with a gradient where it is a `leaf`.
    ///
    /// # Errors
    /// The library has no such tensor.
    fn tensor(value: &Value, place: Place, leaf: bool) -> Result<Self::Any, String>;

    /// The numbers of a tensor, floats of any format as f64.
    ///
    /// # Errors
    /// They cannot be read.
    fn value(tensor: &Self::Any) -> Result<Value, String>;

    /// Why a tensor is no output at this place: it is on another device, or of another dtype.
    /// One that holds `whole` numbers may have integers or booleans.
    ///
    /// # Errors
    /// Why.
    fn fits(tensor: &Self::Any, place: Place, whole: bool) -> Result<(), String>;

    /// The gradients of the summed output; `None` where it has none.
    ///
    /// # Errors
    /// The backward pass failed.
    fn backward(output: &Self::Any) -> Result<Option<Self::Gradients>, String>;

    /// The gradient of a leaf; `None` where the output does not depend on it.
    fn gradient(gradients: &Self::Gradients, leaf: &Self::Any) -> Option<Self::Any>;

    /// The first line of an error of the library, by which a panic is told.
    fn brief(failure: Failure) -> Failure {
        failure
    }
}

/// A record of the host, over tensors of a library.
pub type Over<R, L> = <R as Record>::Over<L>;

/// What a function on tensors may return: the record of the outputs, or the tensor of the only
/// output that is required; or a tuple of tensors, or a `Result`. Gradients are not returned but
/// taken by autograd.
pub trait IntoTensors<L: Library, O> {
    /// The record, or tensors in their order.
    ///
    /// # Errors
    /// The function failed.
    fn outputs(self) -> Result<Outputs<L, O>, Failure>;
}

/// What a function on tensors returned.
pub enum Outputs<L: Library, O> {
    /// The record itself.
    Record(O),
    /// Tensors without names.
    Tensors(Vec<L::Any>),
}

impl<L: Library, O: Record<L>> IntoTensors<L, O> for O {
    fn outputs(self) -> Result<Outputs<L, O>, Failure> {
        Ok(Outputs::Record(self))
    }
}

/// A `Result` that a function returned: its error is a finding.
///
/// # Errors
/// That of the function.
pub fn succeeded<T>(result: Result<T, impl Display>) -> Result<T, Failure> {
    result.map_err(|error| {
        let message = format!("an error: {error}");
        Failure::Raised { message, traceback: String::new() }
    })
}

impl<L: Library, O: Record<L>> Outputs<L, O> {
    /// The record; tensors get these names.
    fn named(self, names: &[&str]) -> Result<O, Failure> {
        let tensors = match self {
            Outputs::Record(record) => return Ok(record),
            Outputs::Tensors(tensors) => tensors,
        };
        let count = tensors.len();
        let mut named: HashMap<&str, L::Any> = names.iter().copied().zip(tensors).collect();
        O::from_values(&mut |name| named.remove(name)).map_err(|(name, why)| {
            let noun = if count == 1 { "tensor" } else { "tensors" };
            malformed(format!("returned {count} {noun}; `{name}` is {why}"))
        })
    }
}

/// A function from a case on tensors to its outputs. The tensors have the dtype and the device of
/// the place that is checked.
pub trait TensorFunction<L: Library, C: Contract>:
    FnMut(&Over<C::Case, L>) -> Self::Returned
{
    /// What it returns.
    type Returned: IntoTensors<L, Over<C::Output, L>>;
}

impl<L, C, F, R> TensorFunction<L, C> for F
where
    L: Library,
    C: Contract,
    F: FnMut(&Over<C::Case, L>) -> R,
    R: IntoTensors<L, Over<C::Output, L>>,
{
    type Returned = R;
}

/// A component made of a function on tensors.
pub struct TensorFn<L, C, F> {
    function: F,
    names: &'static [&'static str],
    source: Option<(&'static str, u32)>,
    of: PhantomData<fn() -> (L, C)>,
}

impl<L: Library, C, F> TensorFn<L, C, F> {
    /// Of a function.
    pub fn new(function: F) -> Self {
        L::begin();
        TensorFn { function, names: &[], source: None, of: PhantomData }
    }

    /// The same, whose outputs have these names, written at a file and a line.
    pub fn at(self, names: &'static [&'static str], file: &'static str, line: u32) -> Self {
        TensorFn { names, source: Some((file, line)), ..self }
    }
}

impl<L, C, F> Component<C> for TensorFn<L, C, F>
where
    L: Library,
    C: Contract,
    F: TensorFunction<L, C> + Send,
{
    fn prepare(&mut self, place: Place) -> Result<Option<String>, Error> {
        let mut fields = C::Case::fields().into_iter().chain(C::Output::fields());
        if let Some(field) = fields.find(|field| field.kind == Kind::Text) {
            let why = "is a text, which no tensor holds: make it a function on the host";
            return Err(Error::new(format!("`{}` of {} {why}", field.name, C::ID)));
        }
        Ok(L::lacks(place))
    }

    fn call(&mut self, call: &Call<'_, C>) -> Result<Returned<C>, Failure> {
        let inputs = Inputs::<L>::new(call)?;
        let case = inputs.record();
        let required = erased::of::<C>().required(call.case, call.options);
        let first = required.first().copied().unwrap_or(C::Output::fields()[0].name);
        let given = guarded(|| (self.function)(&case).outputs()).map_err(L::brief)??;
        let output = match self.names {
            [] => given.named(&[first])?,
            names => given.named(names)?,
        };
        let (mut values, mut no_gradient) = (outputs::<L, C>(&output, call.place)?, Vec::new());
        if call.gradient {
            let given = || output.values().into_iter();
            let named = given().find_map(|(name, tensor)| tensor.filter(|_| name == first));
            let summed = named.or_else(|| given().find_map(|(_, tensor)| tensor));
            let gradients = match &summed {
                Some(summed) => {
                    L::backward(summed).map_err(|error| raised("in backward", &error))?
                }
                None => None,
            };
            no_gradient = inputs.gradients::<C>(gradients.as_ref(), &mut values)?;
        }
        let output = C::Output::from_values(&mut |name| values.remove(name))
            .map_err(|(name, why)| malformed(format!("`{name}`: {why}")))?;
        Ok(Returned { output, changed: inputs.changed(), no_gradient })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Returned
    }

    fn source(&self) -> Option<(PathBuf, usize)> {
        self.source.map(|(file, line)| (PathBuf::from(file), line as usize))
    }
}

/// The inputs of one call: each as it was on the host, and as the tensor that the function gets.
struct Inputs<L: Library>(Vec<(&'static str, Value, L::Any)>);

impl<L: Library> Inputs<L> {
    fn new<C: Contract>(call: &Call<'_, C>) -> Result<Self, Failure> {
        let mut inputs = Vec::new();
        for (name, value) in call.case.values() {
            let Some(value) = value else { continue };
            let leaf = call.gradient && is_named(C::LEAVES, name);
            let tensor = L::tensor(&value, call.place, leaf);
            let tensor = tensor.map_err(|why| malformed(format!("the input `{name}`: {why}")))?;
            inputs.push((name, value, tensor));
        }
        Ok(Inputs(inputs))
    }

    fn record<R: Record<L>>(&self) -> R {
        let again = |name: &str| {
            let (.., tensor) = self.0.iter().find(|(known, ..)| *known == name)?;
            Some(L::again(tensor))
        };
        R::from_values(&mut |name| again(name))
            .unwrap_or_else(|(name, why)| panic!("the input `{name}` is {why}"))
    }

    /// Adds the gradients of the leaves to the outputs, 0 for those that got none, which it names.
    fn gradients<C: Contract>(
        &self,
        gradients: Option<&L::Gradients>,
        outputs: &mut HashMap<String, Value>,
    ) -> Result<Vec<String>, Failure> {
        let mut none = Vec::new();
        for (leaf, value, tensor) in self.0.iter().filter(|(name, ..)| is_named(C::LEAVES, name)) {
            let gradient = match gradients.and_then(|all| L::gradient(all, tensor)) {
                Some(gradient) => on_host::<L>(leaf, &gradient)?,
                None => {
                    none.push((*leaf).to_owned());
                    Value::Float(ArrayD::zeros(value.shape()))
                }
            };
            outputs.insert(format!("grad_{leaf}"), gradient);
        }
        Ok(none)
    }

    /// The inputs that no longer are what they were.
    fn changed(&self) -> Vec<String> {
        let changed = self
            .0
            .iter()
            .filter(|(_, value, tensor)| !L::value(tensor).is_ok_and(|now| same(&now, value)));
        changed.map(|(name, ..)| (*name).to_owned()).collect()
    }
}

/// Whether two values are the same; a NaN is any NaN.
fn same(a: &Value, b: &Value) -> bool {
    match (a.floats(), b.floats()) {
        (Some(x), Some(y)) => {
            let same =
                |(x, y): (&f64, &f64)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
            x.shape() == y.shape() && x.iter().zip(y).all(same)
        }
        _ => a == b,
    }
}

/// The outputs by name. A `grad_<leaf>` is not the function's to give.
fn outputs<L: Library, C: Contract>(
    output: &Over<C::Output, L>,
    place: Place,
) -> Result<HashMap<String, Value>, Failure> {
    let given = output.values().into_iter().filter_map(|(name, tensor)| Some((name, tensor?)));
    given
        .filter(|(name, _)| !name.starts_with("grad_"))
        .map(|(name, tensor)| {
            let whole = C::WHOLE.contains(&name);
            L::fits(&tensor, place, whole).map_err(|why| malformed(format!("`{name}` {why}")))?;
            Ok((name.to_owned(), numbers(C::WHOLE, name, on_host::<L>(name, &tensor)?)))
        })
        .collect()
}

fn on_host<L: Library>(name: &str, tensor: &L::Any) -> Result<Value, Failure> {
    L::value(tensor).map_err(|error| malformed(format!("`{name}` cannot be read: {error}")))
}

fn malformed(problem: String) -> Failure {
    Failure::Malformed { problem }
}

fn raised(when: &str, error: &str) -> Failure {
    Failure::Raised { message: format!("{when}: {error}"), traceback: String::new() }
}
