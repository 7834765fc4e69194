//! How a run ends: its exit code, and how long it took.

use std::time::Instant;

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Every invariant of every component holds.
    AllHold = 0,
    /// There are findings.
    Findings = 1,
    /// Something could not run: usage, manifest, a component that does not load.
    CouldNotRun = 2,
    /// Nothing was checked.
    NothingChecked = 3,
    /// Somebody stopped it, and nothing was found until then.
    Interrupted = 130,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        (code as u8).into()
    }
}

/// The time since then in milliseconds.
pub fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
