//! What the library does for a program that uses it, and what this repository holds.

#[path = "../support/paths.rs"]
mod paths;
#[path = "../support/recorded.rs"]
mod recorded;
#[path = "../support/snapshot.rs"]
mod snapshot;

mod allowances;
mod attribute;
mod diagnosis;
mod filled;
mod forms;
mod golden;
mod outputs;
#[expect(unreachable_pub, reason = "a page for users, who have it in a crate of their own")]
mod own_contract;
mod regressions;
mod tidy;
mod tokenizer;
