//! Numbers: how close is close, gradients and the terms that they are of, weights of tokens, groups
//! of rows, and conventions about masks.

pub mod aggregate;
pub mod conventions;
pub mod function;
pub mod groups;
pub mod scaled;
pub mod tape;
pub mod terms;
pub mod tolerance;
