//! Numbers: how close is close, gradients, weights of tokens, and conventions about masks.

pub mod aggregate;
pub mod conventions;
pub mod scaled;
pub mod tape;
pub mod tolerance;
