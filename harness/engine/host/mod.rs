//! Where components run: functions on host arrays, builtin ones, processes.

pub mod builtin;
pub mod function;
pub mod process;
pub mod tensors;
