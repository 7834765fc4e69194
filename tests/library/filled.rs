//! The forms that `forms.rs` writes: each compiles, and its function is called.

#![expect(unused_variables, reason = "the functions are still to be written")]

include!("filled.in");
