//! Processes that a test waits for.

use std::process::Command;
use std::time::{Duration, Instant};

/// Waits until something is so, 30 s at most.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < limit, "waited 30 s until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process runs; one that only waits for its parent to notice its end does not.
pub(crate) fn is_running(process: &str) -> bool {
    let output = Command::new("ps").args(["-o", "stat=", "-p", process]).output();
    let state = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    state.is_ok_and(|state| !state.is_empty() && !state.starts_with('Z'))
}
