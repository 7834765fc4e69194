//! Where components run: functions on host arrays, builtin ones, processes, tensors.

pub mod builtin;
pub mod function;
pub mod process;
#[cfg(feature = "tch")]
pub mod tensor;
