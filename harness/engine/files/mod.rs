//! Files in and out: manifests, cases, batches, the journal, the corpora.

pub mod atomic;
pub mod batch;
pub mod case_file;
pub mod corpora;
pub mod journal;
pub mod last_failed;
pub mod manifest;
pub mod schema;
