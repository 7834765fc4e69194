//! Written by `forms.rs`: every form compiles, and its function is called.
