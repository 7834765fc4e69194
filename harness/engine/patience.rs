//! Patience with components whose calls cost much: one that hangs costs its time limit, one that
//! dies costs a fork, or a start of its process with all imports.

use std::fmt;

use crate::contract::component::Failure;
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
}

impl Patience {
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
        self.hangs >= HANGS || self.deaths >= DEATHS || self.restarts >= RESTARTS
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
