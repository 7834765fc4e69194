//! The forms that `forms.rs` writes: each compiles, and its function is called.

include!("filled.in");
