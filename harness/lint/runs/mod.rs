//! Runs: the metrics that training logged, read from any library's log, and the rules about them.

pub mod around;
pub mod ceiling;
pub mod derived;
pub mod formats;
pub mod gradient;
mod judge;
pub mod known;
pub mod lengths;
pub mod mismatch;
pub mod names;
pub mod pairs;
pub mod recorder;
pub mod row;
pub mod rules;
pub mod run;
pub mod series;
#[doc(hidden)]
pub mod simulate;
pub mod statistics;
pub mod truth;

pub use run::Run;
