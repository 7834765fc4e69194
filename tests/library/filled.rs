//! The forms that `forms.rs` writes: each compiles, and its function is called.

#![expect(
    unused_variables,
    clippy::todo,
    clippy::too_many_arguments,
    reason = "the functions are still to be written, and take every input"
)]

include!("filled.in");
