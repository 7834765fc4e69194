//! Faults written once, and shared by the contracts of a family.

pub(crate) mod recursion;
