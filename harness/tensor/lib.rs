//! Functions on `tch` tensors as components of shakedown, with gradients by autograd.
//!
//! A crate of its own: shakedown itself, and its command, link no libtorch.
#![doc = ""]
#![doc = include_str!("example.md")]

mod cuda;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Once;

use ndarray::{ArrayD, Dimension};
use tch::{Kind, TchError, Tensor};

use shakedown::Error;
use shakedown::author::{
    Arrays, Call, Component, Contract, Failure, Gradients, Misfit, Record, Returned, Slot, Source,
    Value, Values,
};
use shakedown::contract::component::numbers;
use shakedown::contract::erased;
use shakedown::host::function::guarded;
use shakedown::place::{Device, Dtype, Place};
use shakedown::value::record::{self, is_named};

/// The family of arrays whose members are tensors: `GroupAdvantageCase<Tensors>` is a case on them.
#[derive(Debug)]
pub enum Tensors {}

impl Arrays for Tensors {
    type Float<D: Dimension> = Tensor;
    type Int<D: Dimension> = Tensor;
    type Bool<D: Dimension> = Tensor;
    type Text<D: Dimension> = NoText;
    type TextOrNull<D: Dimension> = NoText;
    type Any = Tensor;
}

/// A text on a device: there is none. A function on texts is a component of the host.
#[derive(Debug)]
pub enum NoText {}

impl Slot<Tensors> for NoText {
    fn get(&self, _: &'static str, _: &mut Values<Tensor>) {
        match *self {}
    }

    fn put(name: &'static str, _: Source<'_, Tensor>) -> Result<Self, Misfit> {
        Err((name, "a text, which no tensor holds".to_owned()))
    }
}

impl Slot<Tensors> for Tensor {
    fn get(&self, name: &'static str, values: &mut Values<Tensor>) {
        values.push((name, Some(self.shallow_clone())));
    }

    fn put(name: &'static str, get: Source<'_, Tensor>) -> Result<Self, Misfit> {
        get(name).ok_or_else(|| (name, "missing".to_owned()))
    }
}

/// A record of the host, over tensors: `GroupAdvantageCase<Tensors>`.
pub type OnTensors<R> = <R as Record>::Over<Tensors>;

/// What a function on tensors may return: the record of the outputs, or the tensor of the only
/// output that is required. Gradients are not returned but taken by autograd.
pub trait IntoOutput<O> {
    /// The record, where a single tensor is the output `first`; the error says what it lacks.
    fn into_output(self, first: &str) -> Result<O, String>;
}

impl<O: Record<Tensors>> IntoOutput<O> for O {
    fn into_output(self, _: &str) -> Result<O, String> {
        Ok(self)
    }
}

impl<O: Record<Tensors>> IntoOutput<O> for Tensor {
    fn into_output(self, first: &str) -> Result<O, String> {
        let mut only = Some(self);
        O::from_values(&mut |name| if name == first { only.take() } else { None })
            .map_err(|(name, why)| format!("returned one tensor; `{name}` is {why}"))
    }
}

/// A function from a case on tensors to its outputs. The tensors have the dtype and the device of
/// the place that is checked.
pub trait TensorFunction<C: Contract>: FnMut(&OnTensors<C::Case>) -> Self::Returned + Send {
    /// What it returns.
    type Returned: IntoOutput<OnTensors<C::Output>>;
}

impl<C, F, R> TensorFunction<C> for F
where
    C: Contract,
    F: FnMut(&OnTensors<C::Case>) -> R + Send,
    R: IntoOutput<OnTensors<C::Output>>,
{
    type Returned = R;
}

/// A component made of a function on tensors. libtorch gets one thread: the tensors are small.
///
/// Make the first one before libtorch takes a gradient in this process, or CUDA places may be
/// missed.
pub fn tch<C: Contract>(function: impl TensorFunction<C>) -> Tch<C, impl TensorFunction<C>> {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        cuda::load_if_wanted();
        tch::set_num_threads(1);
    });
    Tch { function, contract: PhantomData }
}

/// A component on tensors. Made by [`tch`](tch()).
pub struct Tch<C, F> {
    function: F,
    contract: PhantomData<fn() -> C>,
}

impl<C: Contract, F: TensorFunction<C>> Component<C> for Tch<C, F> {
    fn prepare(&mut self, place: Place) -> Result<Option<String>, Error> {
        let mut fields = C::Case::fields().into_iter().chain(C::Output::fields());
        if let Some(field) = fields.find(|field| field.kind == record::Kind::Text) {
            let why = "is a text, which no tensor holds: make it a function on the host";
            return Err(Error::new(format!("`{}` of {} {why}", field.name, C::ID)));
        }
        Ok(match place.device {
            Device::Cpu => None,
            Device::Cuda(index) => cuda::lacks(index),
        })
    }

    fn call(&mut self, call: &Call<'_, C>) -> Result<Returned<C>, Failure> {
        let inputs = Inputs::new(call);
        let case = inputs.record();
        let required = erased::of::<C>().required(call.case, call.options);
        let first = required.first().copied().unwrap_or(C::Output::fields()[0].name);
        let answer = guarded(|| (self.function)(&case).into_output(first)).map_err(brief)?;
        let output = answer.map_err(malformed)?;
        let (mut values, mut no_gradient) = (outputs::<C>(&output, call.place)?, Vec::new());
        if call.gradient {
            let given = || output.values().into_iter();
            let named = given().find_map(|(name, tensor)| tensor.filter(|_| name == first));
            let summed = named.or_else(|| given().find_map(|(_, tensor)| tensor));
            backward(summed.as_ref()).map_err(|error| raised("in backward", &error))?;
            no_gradient = inputs.gradients::<C>(&mut values)?;
        }
        let output = C::Output::from_values(&mut |name| values.remove(name))
            .map_err(|(name, why)| malformed(format!("`{name}`: {why}")))?;
        Ok(Returned { output, changed: inputs.changed(), no_gradient })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Returned
    }
}

/// The inputs of one call: each as it was on the host, and as the tensor that the function gets.
struct Inputs(Vec<(&'static str, Value, Tensor)>);

impl Inputs {
    fn new<C: Contract>(call: &Call<'_, C>) -> Inputs {
        let mut inputs = Vec::new();
        for (name, value) in call.case.values() {
            let Some(value) = value else { continue };
            let leaf = call.gradient && is_named(C::LEAVES, name);
            let tensor = on_device(&value, call.place).set_requires_grad(leaf);
            inputs.push((name, value, tensor));
        }
        Inputs(inputs)
    }

    fn get(&self, name: &str) -> Option<&Tensor> {
        self.0.iter().find(|(known, ..)| *known == name).map(|(.., tensor)| tensor)
    }

    fn record<R: Record<Tensors>>(&self) -> R {
        R::from_values(&mut |name| self.get(name).map(Tensor::shallow_clone))
            .unwrap_or_else(|(name, why)| panic!("the input `{name}` is {why}"))
    }

    /// Adds the gradients of the leaves to the outputs, 0 for those that got none, which it names.
    fn gradients<C: Contract>(
        &self,
        outputs: &mut HashMap<String, Value>,
    ) -> Result<Vec<String>, Failure> {
        let mut none = Vec::new();
        for (leaf, value, tensor) in self.0.iter().filter(|(name, ..)| is_named(C::LEAVES, name)) {
            let gradient = tensor.grad();
            let gradient = match gradient.defined() {
                true => on_host(leaf, &gradient)?,
                false => {
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
        let changed = self.0.iter().filter(|(name, value, tensor)| {
            !on_host(name, tensor).is_ok_and(|now| same(&now, value))
        });
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
fn outputs<C: Contract>(
    output: &OnTensors<C::Output>,
    place: Place,
) -> Result<HashMap<String, Value>, Failure> {
    let given = output.values().into_iter().filter_map(|(name, tensor)| Some((name, tensor?)));
    given
        .filter(|(name, tensor)| tensor.defined() && !name.starts_with("grad_"))
        .map(|(name, tensor)| match tensor.kind() {
            // A number by itself goes with tensors of any device.
            _ if tensor.dim() > 0 && tensor.device() != device(place) => {
                let (found, expected) = (tensor.device(), device(place));
                let what = format!("`{name}` is on {found:?}, expected {expected:?}");
                Err(malformed(format!("{what}, where the inputs are")))
            }
            Kind::Double | Kind::Float | Kind::Half | Kind::BFloat16 => {
                Ok((name.to_owned(), on_host(name, &tensor)?))
            }
            _ if C::WHOLE.contains(&name) => {
                Ok((name.to_owned(), numbers(C::WHOLE, name, on_host(name, &tensor)?)))
            }
            other => {
                Err(malformed(format!("`{name}` has dtype {other:?}, expected a float dtype")))
            }
        })
        .collect()
}

/// Gives the leaves the gradient of the summed output, where it has one.
fn backward(output: Option<&Tensor>) -> Result<(), TchError> {
    match output.filter(|output| output.requires_grad()) {
        Some(output) => output.f_sum(None)?.f_backward(),
        None => Ok(()),
    }
}

/// The device of a place, as tch has it.
pub fn device(place: Place) -> tch::Device {
    match place.device {
        Device::Cpu => tch::Device::Cpu,
        Device::Cuda(index) => tch::Device::Cuda(index),
    }
}

fn on_device(value: &Value, place: Place) -> Tensor {
    let shape: Vec<i64> = value.shape().iter().map(|length| *length as i64).collect();
    let flat = match value {
        Value::Float(array) => from_array(array).to_kind(kind(place.dtype)),
        Value::Int(array) => from_array(array),
        Value::Bool(array) => from_array(array),
        Value::Text(_) => unreachable!("`prepare` refuses contracts of texts"),
    };
    flat.view(&*shape).to_device(device(place))
}

fn from_array<T: tch::kind::Element + Copy>(array: &ArrayD<T>) -> Tensor {
    match array.as_slice() {
        Some(slice) => Tensor::from_slice(slice),
        None => Tensor::from_slice(&array.iter().copied().collect::<Vec<T>>()),
    }
}

/// The numbers of a tensor, floats of any format as f64.
fn on_host(name: &str, tensor: &Tensor) -> Result<Value, Failure> {
    let value = || -> Result<Value, TchError> {
        let tensor = tensor.detach().f_to_device(tch::Device::Cpu)?;
        Ok(match tensor.f_kind()? {
            Kind::Int64 => Value::Int(to_array(&tensor)?),
            Kind::Bool => Value::Bool(to_array(&tensor)?),
            _ => Value::Float(to_array(&tensor.f_to_kind(Kind::Double)?)?),
        })
    };
    value().map_err(|error| malformed(format!("`{name}` cannot be read: {}", first_line(&error))))
}

fn to_array<T: tch::kind::Element + Copy + Default>(
    tensor: &Tensor,
) -> Result<ArrayD<T>, TchError> {
    let shape: Vec<usize> = tensor.size().iter().map(|length| *length as usize).collect();
    let mut numbers = vec![T::default(); tensor.numel()];
    tensor.f_contiguous()?.f_copy_data(&mut numbers, tensor.numel())?;
    Ok(ArrayD::from_shape_vec(shape, numbers).expect("a tensor has as many numbers as its shape"))
}

/// The dtype, as tch has it.
pub fn kind(dtype: Dtype) -> Kind {
    match dtype {
        Dtype::F64 => Kind::Double,
        Dtype::F32 => Kind::Float,
        Dtype::Bf16 => Kind::BFloat16,
        Dtype::F16 => Kind::Half,
    }
}

fn malformed(problem: String) -> Failure {
    Failure::Malformed { problem }
}

fn raised(when: &str, error: &TchError) -> Failure {
    let message = format!("{when}: {}", first_line(error));
    Failure::Raised { message, traceback: String::new() }
}

fn first_line(error: &TchError) -> String {
    error.to_string().lines().next().unwrap_or("").to_owned()
}

/// tch panics with an error of libtorch, which ends in a backtrace whose addresses change from run
/// to run: only the error itself.
fn brief(failure: Failure) -> Failure {
    match failure {
        Failure::Raised { message, traceback } => {
            let error = message.split_once("Torch(\"").and_then(|(_, error)| {
                let (error, _backtrace) = error.split_once("\\nException raised from")?;
                Some(format!("an error of libtorch: {error}"))
            });
            Failure::Raised { message: error.unwrap_or(message), traceback }
        }
        other => other,
    }
}
