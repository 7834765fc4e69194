//! Functions on `candle` tensors as components of shakedown, with gradients by autograd.
//!
//! ```ignore
//! use candle_core::{Result, Tensor};
//!
//! #[shakedown::contract(policy_loss, tensors = shakedown_candle, beta = 0.04)]
//! fn policy_loss(
//!     log_probs: &Tensor,
//!     old_log_probs: &Tensor,
//!     ref_log_probs: Option<&Tensor>,
//!     advantages: &Tensor,
//!     mask: &Tensor,
//! ) -> Result<Tensor> {
//!     my_trainer::policy_loss(log_probs, old_log_probs, ref_log_probs.unwrap(), advantages, mask)
//! }
//! ```
//!
//! Floats have the dtype of the place that is checked, integers are I64, booleans U8. The gradient
//! is taken by `backward`; a tensor that the loss does not depend on has none.

use std::fmt::Display;

use candle_core::backprop::GradStore;
use candle_core::{DType, Error, Tensor, Var, WithDType};
use ndarray::{ArrayD, Dimension};

use shakedown::author::{Arrays, Failure, Misfit, Record, Slot, Source, Value, Values};
use shakedown::host::tensors::{IntoTensors, Library, Outputs, succeeded};
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
        values.push((name, Some(self.clone())));
    }

    fn put(name: &'static str, get: Source<'_, Tensor>) -> Result<Self, Misfit> {
        get(name).ok_or_else(|| (name, "missing".to_owned()))
    }
}

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

impl Library for Tensors {
    type Gradients = GradStore;

    fn again(tensor: &Tensor) -> Tensor {
        tensor.clone()
    }

    fn lacks(place: Place) -> Option<String> {
        device(place).err().map(|error| first_line(&error))
    }

    fn tensor(value: &Value, place: Place, leaf: bool) -> Result<Tensor, String> {
        let device = device(place).map_err(|error| first_line(&error))?;
        let tensor = match value {
            Value::Float(array) => {
                from_array(array, &device).and_then(|tensor| tensor.to_dtype(dtype(place.dtype)))
            }
            Value::Int(array) => from_array(array, &device),
            Value::Bool(array) => from_array(&array.mapv(u8::from), &device),
            Value::Text(_) => return Err("no tensor holds a text".to_owned()),
        };
        let variable = |tensor: Tensor| Ok(Var::from_tensor(&tensor)?.into_inner());
        let tensor = if leaf { tensor.and_then(variable) } else { tensor };
        tensor.map_err(|error| first_line(&error))
    }

    fn value(tensor: &Tensor) -> Result<Value, String> {
        let value = match tensor.dtype() {
            DType::U8 | DType::U32 | DType::I16 | DType::I32 | DType::I64 => {
                tensor.to_dtype(DType::I64).and_then(|tensor| to_array(&tensor)).map(Value::Int)
            }
            _ => tensor.to_dtype(DType::F64).and_then(|tensor| to_array(&tensor)).map(Value::Float),
        };
        value.map_err(|error| first_line(&error))
    }

    fn fits(tensor: &Tensor, place: Place, whole: bool) -> Result<(), String> {
        let device = device(place).map_err(|error| first_line(&error))?;
        match tensor.dtype() {
            // A number by itself goes with tensors of any device.
            _ if tensor.rank() > 0 && !tensor.device().same_device(&device) => {
                let (found, expected) = (tensor.device().location(), device.location());
                Err(format!("is on {found:?}, expected {expected:?}, where the inputs are"))
            }
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 => Ok(()),
            _ if whole => Ok(()),
            other => Err(format!("has dtype {other:?}, expected a float dtype")),
        }
    }

    fn backward(output: &Tensor) -> Result<Option<GradStore>, String> {
        if !output.track_op() {
            return Ok(None);
        }
        let gradients = output.sum_all().and_then(|sum| sum.backward());
        gradients.map(Some).map_err(|error| first_line(&error))
    }

    fn gradient(gradients: &GradStore, leaf: &Tensor) -> Option<Tensor> {
        gradients.get(leaf).cloned()
    }
}

/// The device of a place, as candle has it.
///
/// # Errors
/// It is not here.
pub fn device(place: Place) -> candle_core::Result<candle_core::Device> {
    match place.device {
        Device::Cpu => Ok(candle_core::Device::Cpu),
        Device::Cuda(index) => candle_core::Device::new_cuda(index),
    }
}

/// The dtype, as candle has it.
pub fn dtype(dtype: Dtype) -> DType {
    match dtype {
        Dtype::F64 => DType::F64,
        Dtype::F32 => DType::F32,
        Dtype::Bf16 => DType::BF16,
        Dtype::F16 => DType::F16,
    }
}

fn from_array<T: WithDType>(
    array: &ArrayD<T>,
    device: &candle_core::Device,
) -> candle_core::Result<Tensor> {
    let numbers: Vec<T> = array.iter().copied().collect();
    Tensor::from_vec(numbers, array.shape(), device)
}

fn to_array<T: WithDType>(tensor: &Tensor) -> candle_core::Result<ArrayD<T>> {
    let numbers = tensor.flatten_all()?.to_vec1::<T>()?;
    Ok(ArrayD::from_shape_vec(tensor.dims(), numbers).expect("as many numbers as its shape has"))
}

fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or("").to_owned()
}
