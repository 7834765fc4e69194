//! Implementations under test.
