//! Functions on `tch` tensors as components of shakedown, with gradients by autograd.
//!
//! A crate of its own: shakedown itself, and its command, link no libtorch.
#![doc = ""]
#![doc = include_str!("example.md")]

mod cuda;

use std::fmt::Display;
use std::sync::Once;

use ndarray::{ArrayD, Dimension};
use tch::{Kind, TchError, Tensor};

use shakedown::author::{Arrays, Contract, Failure, Misfit, Record, Slot, Source, Value, Values};
pub use shakedown::host::tensors::TensorFunction;
use shakedown::host::tensors::{IntoTensors, Library, Outputs, TensorFn, succeeded};
use shakedown::place::{Device, Dtype, Place};

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
        values.push((name, self.defined().then(|| self.shallow_clone())));
    }

    fn put(name: &'static str, get: Source<'_, Tensor>) -> Result<Self, Misfit> {
        get(name).ok_or_else(|| (name, "missing".to_owned()))
    }
}

/// A record of the host, over tensors: `GroupAdvantageCase<Tensors>`.
pub type OnTensors<R> = <R as Record>::Over<Tensors>;

impl<O: Record<Tensors>> IntoTensors<Tensors, O> for Tensor {
    fn outputs(self) -> Result<Outputs<Tensors, O>, Failure> {
        Ok(Outputs::Tensors(vec![self]))
    }
}

impl<O, T: IntoTensors<Tensors, O>, E: Display> IntoTensors<Tensors, O> for Result<T, E> {
    fn outputs(self) -> Result<Outputs<Tensors, O>, Failure> {
        succeeded(self)?.outputs()
    }
}

impl<O: Record<Tensors>> IntoTensors<Tensors, O> for (Tensor, Tensor) {
    fn outputs(self) -> Result<Outputs<Tensors, O>, Failure> {
        Ok(Outputs::Tensors(vec![self.0, self.1]))
    }
}

/// A component made of a function on tensors. libtorch gets one thread: the tensors are small.
///
/// Make the first one before libtorch takes a gradient in this process, or CUDA places may be
/// missed.
pub fn tch<C: Contract>(
    function: impl TensorFunction<Tensors, C>,
) -> Tch<C, impl TensorFunction<Tensors, C>> {
    TensorFn::new(function)
}

/// A component on tensors. Made by [`tch`](tch()).
pub type Tch<C, F> = TensorFn<Tensors, C, F>;

impl Library for Tensors {
    /// They are kept with the tensors.
    type Gradients = ();

    fn begin() {
        static FIRST: Once = Once::new();
        FIRST.call_once(|| {
            cuda::load_if_wanted();
            tch::set_num_threads(1);
        });
    }

    fn again(tensor: &Tensor) -> Tensor {
        tensor.shallow_clone()
    }

    fn lacks(place: Place) -> Option<String> {
        match place.device {
            Device::Cpu => None,
            Device::Cuda(index) => cuda::lacks(index),
        }
    }

    fn tensor(value: &Value, place: Place, leaf: bool) -> Result<Tensor, String> {
        let shape: Vec<i64> = value.shape().iter().map(|length| *length as i64).collect();
        let flat = match value {
            Value::Float(array) => from_array(array).to_kind(kind(place.dtype)),
            Value::Int(array) => from_array(array),
            Value::Bool(array) => from_array(array),
            Value::Text(_) => return Err("no tensor holds a text".to_owned()),
        };
        Ok(flat.view(&*shape).to_device(device(place)).set_requires_grad(leaf))
    }

    fn value(tensor: &Tensor) -> Result<Value, String> {
        let value = || -> Result<Value, TchError> {
            let tensor = tensor.detach().f_to_device(tch::Device::Cpu)?;
            Ok(match tensor.f_kind()? {
                Kind::Int64 => Value::Int(to_array(&tensor)?),
                Kind::Bool => Value::Bool(to_array(&tensor)?),
                _ => Value::Float(to_array(&tensor.f_to_kind(Kind::Double)?)?),
            })
        };
        value().map_err(|error| first_line(&error))
    }

    fn fits(tensor: &Tensor, place: Place, whole: bool) -> Result<(), String> {
        match tensor.kind() {
            // A number by itself goes with tensors of any device.
            _ if tensor.dim() > 0 && tensor.device() != device(place) => {
                let (found, expected) = (tensor.device(), device(place));
                Err(format!("is on {found:?}, expected {expected:?}, where the inputs are"))
            }
            Kind::Double | Kind::Float | Kind::Half | Kind::BFloat16 => Ok(()),
            _ if whole => Ok(()),
            other => Err(format!("has dtype {other:?}, expected a float dtype")),
        }
    }

    fn backward(output: &Tensor) -> Result<Option<()>, String> {
        if !output.requires_grad() {
            return Ok(None);
        }
        let backward = output.f_sum(None).and_then(|sum| sum.f_backward());
        backward.map(Some).map_err(|error| first_line(&error))
    }

    fn gradient((): &(), leaf: &Tensor) -> Option<Tensor> {
        Some(leaf.grad()).filter(Tensor::defined)
    }

    /// tch panics with an error of libtorch, which ends in a backtrace whose addresses change from
    /// run to run: only the error itself.
    fn brief(failure: Failure) -> Failure {
        match failure {
            Failure::Raised { message, traceback } => {
                let error = message.split_once("Torch(\"").and_then(|(_, error)| {
                    let (error, _backtrace) = error.split_once("\\nException raised from")?;
                    Some(format!("an error of libtorch: {error}"))
                });
                match error {
                    Some(message) => Failure::Raised { message, traceback: String::new() },
                    None => Failure::Raised { message, traceback },
                }
            }
            other => other,
        }
    }
}

/// The device of a place, as tch has it.
pub fn device(place: Place) -> tch::Device {
    match place.device {
        Device::Cpu => tch::Device::Cpu,
        Device::Cuda(index) => tch::Device::Cuda(index),
    }
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

fn from_array<T: tch::kind::Element + Copy>(array: &ArrayD<T>) -> Tensor {
    match array.as_slice() {
        Some(slice) => Tensor::from_slice(slice),
        None => Tensor::from_slice(&array.iter().copied().collect::<Vec<T>>()),
    }
}

fn to_array<T: tch::kind::Element + Copy + Default>(
    tensor: &Tensor,
) -> Result<ArrayD<T>, TchError> {
    let shape: Vec<usize> = tensor.size().iter().map(|length| *length as usize).collect();
    let mut numbers = vec![T::default(); tensor.numel()];
    tensor.f_contiguous()?.f_copy_data(&mut numbers, tensor.numel())?;
    Ok(ArrayD::from_shape_vec(shape, numbers).expect("a tensor has as many numbers as its shape"))
}

fn first_line(error: &TchError) -> String {
    error.to_string().lines().next().unwrap_or("").to_owned()
}
