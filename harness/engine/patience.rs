//! Patience with components whose calls cost much: one that hangs costs its time limit, one that
//! dies costs a fork, or a start of its process with all imports. And with all of them, where the
//! time is limited or somebody wants to stop.

use std::fmt;
use std::time::Instant;

use crate::contract::component::Failure;
use crate::engine::interrupt;
use crate::report::Cut;
use crate::value::text::count;

/// Calls that hang.
const HANGS: u64 = 3;

/// Calls that kill a process of which another is forked.
const DEATHS: u64 = 200;

/// Calls that kill a process that must be started anew.
const RESTARTS: u64 = 5;

/// What one phase of a check (the cases, the shrinking of a finding) has borne.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    hangs: u64,
    deaths: u64,
    restarts: u64,
    end: Option<Instant>,
}

impl Patience {
    /// Patience that is over at a time at the latest.
    pub(crate) fn until(end: Option<Instant>) -> Self {
        Patience { end, ..Patience::default() }
    }

    /// Counts a call that failed.
    pub(crate) fn spend(&mut self, failure: &Failure) {
        match failure {
            Failure::TimedOut { .. } => self.hangs += 1,
            Failure::Died { restart, .. } => {
                self.deaths += 1;
                self.restarts += u64::from(*restart);
            }
            Failure::Raised { .. } | Failure::Malformed { .. } => {}
        }
    }

    /// Whether the component should be left alone.
    pub(crate) fn is_over(&self) -> bool {
        self.why().is_some()
    }

    /// Why the component should be left alone, where it should.
    pub(crate) fn why(&self) -> Option<Cut> {
        if self.hangs >= HANGS || self.deaths >= DEATHS || self.restarts >= RESTARTS {
            Some(Cut::GaveUp)
        } else if interrupt::is_asked() {
            Some(Cut::Interrupted)
        } else if self.end.is_some_and(|end| Instant::now() >= end) {
            Some(Cut::Time)
        } else {
            None
        }
    }
}

/// `hung 3 times and died 12 times`.
impl fmt::Display for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hung = format!("hung {}", count(self.hangs, "time"));
        let died = format!("died {}", count(self.deaths, "time"));
        match (self.hangs, self.deaths) {
            (_, 0) => f.write_str(&hung),
            (0, _) => f.write_str(&died),
            _ => write!(f, "{hung} and {died}"),
        }
    }
}
