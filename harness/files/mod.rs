//! Files in and out: manifests, cases, batches, the journal, the corpora.

pub mod atomic;
pub mod batch;
pub mod case_file;
pub mod corpora;
pub mod journal;
#[cfg(feature = "cli")]
pub(crate) mod last_failed;
pub(crate) mod location;
pub mod manifest;
#[cfg(feature = "cli")]
pub(crate) mod schema;
