//! Data sets: the prompts, answers and pairs that training reads, and the rules about them. Texts
//! are not kept, only counts, places and hashes.

mod answers;
mod columns;
mod data;
mod formats;
mod hits;
mod identity;
#[doc(hidden)]
pub mod judge;
mod known;
mod pairs;
mod prompt;
mod prompts;
pub mod rules;
mod scores;
mod seen;
mod text;

pub use columns::Columns;
pub use data::{Dataset, Gold, Reading, Scored, from_rows, read};
pub use known::CountTokens;
