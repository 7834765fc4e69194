//! What the command does, run as a process in a folder of its own.

#[path = "../support/browser.rs"]
mod browser;
#[path = "../support/folder.rs"]
mod folder;
#[path = "../support/manifests.rs"]
mod manifests;
#[path = "../support/process.rs"]
mod process;
#[path = "../support/report.rs"]
mod report;
#[path = "../support/snapshot.rs"]
mod snapshot;

mod bad_behaviour;
mod bad_behaviour_unforked;
mod batch;
mod endings;
mod forms;
#[cfg(feature = "fuzz")]
mod fuzz;
mod html;
#[cfg(feature = "init")]
mod init;
mod malformed;
#[cfg(unix)]
mod nursery;
mod protocol;
mod redaction;
mod replay;
mod reports;
mod schema;
mod surroundings;
mod verbs;

/// Whether the workers of `bad_behaviour.rs` are forked.
const FORK: bool = true;
