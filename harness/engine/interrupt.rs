//! Whether somebody asked the process to stop: what was done until then is still reported.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Asks every check of this process to end after the call that is under way. The second time,
/// whether it had been asked before.
pub fn ask() -> bool {
    ASKED.swap(true, Ordering::SeqCst)
}

/// Whether the process was asked to stop.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
