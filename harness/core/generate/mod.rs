//! Cases from bytes, and simpler values.

pub mod axes;
pub mod completions;
pub mod draw;
pub mod masks;
pub mod measure;
pub mod parts;
pub mod pick;
pub mod texts;
