//! Patience with components whose calls cost much: one that hangs costs its time limit, one that
//! dies costs a fork, or a start of its process with all imports. And with all of them, where the
//! time is limited or somebody wants to stop.

use std::fmt;
use std::time::{Duration, Instant};

use crate::interrupt;
use crate::report::Cut;
use shakedown_core::contract::component::Failure;
use shakedown_core::value::text::count;

/// Calls that hang. Each was made twice.
const HANGS: u64 = 2;

/// Calls that kill a process of which another is forked.
const DEATHS: u64 = 200;

/// Calls that cost a process which must be started anew.
const RESTARTS: u64 = 12;

/// The same, where these starts have taken `SLOW` together.
const SLOW_RESTARTS: u64 = 5;
const SLOW: Duration = Duration::from_secs(20);

/// What one phase of a check (the cases, the shrinking of a finding) has borne.
#[derive(Debug, Default)]
pub struct Patience {
    hangs: u64,
    deaths: u64,
    nonsense: u64,
    restarts: u64,
    restarting: Duration,
    end: Option<Instant>,
}

impl Patience {
    /// Patience that is over at a time at the latest.
    pub(crate) fn until(end: Option<Instant>) -> Self {
        Patience { end, ..Patience::default() }
    }

    /// Counts a call that failed.
    pub fn spend(&mut self, failure: &Failure) {
        let restart = match failure {
            Failure::TimedOut { .. } => {
                self.hangs += 1;
                None
            }
            Failure::Died { restart, .. } => {
                self.deaths += 1;
                *restart
            }
            Failure::Confused { restart, .. } => {
                self.nonsense += 1;
                Some(*restart)
            }
            Failure::Raised { .. } | Failure::Malformed { .. } => None,
        };
        if let Some(took) = restart {
            self.restarts += 1;
            self.restarting += took;
        }
    }

    /// Whether the component should be left alone.
    pub fn is_over(&self) -> bool {
        self.why().is_some()
    }

    /// Why the component should be left alone, where it should.
    pub fn why(&self) -> Option<Cut> {
        let is_slow = self.restarts >= SLOW_RESTARTS && self.restarting >= SLOW;
        if self.hangs >= HANGS || self.deaths >= DEATHS || self.restarts >= RESTARTS || is_slow {
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
        let what =
            [("hung", self.hangs), ("died", self.deaths), ("answered nonsense", self.nonsense)];
        let borne = what.into_iter().filter(|(_, times)| *times > 0);
        let borne: Vec<String> =
            borne.map(|(what, times)| format!("{what} {}", count(times, "time"))).collect();
        f.write_str(&borne.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(failures: &[Failure]) -> Patience {
        let mut patience = Patience::default();
        failures.iter().for_each(|failure| patience.spend(failure));
        patience
    }

    #[test]
    fn each_way_to_cost_time_has_its_limit() {
        let second = Duration::from_secs(1);
        let hung = Failure::TimedOut { limit_ms: 1 };
        let died = |restart| Failure::Died { how: "exit status 3".to_owned(), restart };
        let confused = Failure::Confused { problem: "a song".to_owned(), restart: second / 10 };
        let raised = Failure::Raised { message: "E".to_owned(), traceback: String::new() };
        for (failure, limit) in [
            (hung, HANGS),
            (died(None), DEATHS),
            (died(Some(second / 10)), RESTARTS),
            (confused, RESTARTS),
            (died(Some(second * 2)), 10),
            (died(Some(second * 60)), SLOW_RESTARTS),
        ] {
            let limit = usize::try_from(limit).unwrap();
            let patience = after(&vec![failure.clone(); limit - 1]);
            assert!(!patience.is_over(), "{patience}");
            let patience = after(&vec![failure; limit]);
            assert_eq!(patience.why(), Some(Cut::GaveUp), "{patience}");
            assert!(patience.is_over());
        }
        assert!(!after(&vec![raised; 1000]).is_over());
    }

    #[test]
    fn what_it_has_borne_is_told() {
        let hung = Failure::TimedOut { limit_ms: 1 };
        let died = Failure::Died { how: "exit status 3".to_owned(), restart: None };
        let confused = Failure::Confused { problem: "a song".to_owned(), restart: Duration::ZERO };
        assert_eq!(after(std::slice::from_ref(&hung)).to_string(), "hung 1 time");
        assert_eq!(after(&[died.clone(), died.clone()]).to_string(), "died 2 times");
        assert_eq!(after(&[hung.clone(), died.clone()]).to_string(), "hung 1 time and died 1 time");
        let all = after(&[hung, died, confused]).to_string();
        assert_eq!(all, "hung 1 time and died 1 time and answered nonsense 1 time");
    }

    #[test]
    fn time_is_over_from_its_end_on() {
        let now = Instant::now();
        assert_eq!(Patience::until(Some(now)).why(), Some(Cut::Time));
        let later = now + std::time::Duration::from_secs(3600);
        assert_eq!(Patience::until(Some(later)).why(), None);
        assert_eq!(Patience::until(None).why(), None);
    }
}
