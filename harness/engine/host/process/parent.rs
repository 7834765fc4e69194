//! The process that drives this one: what we ask on our standard output it answers on our standard
//! input (`PROTOCOL.md`).

use std::io::{self, Write};
use std::process::exit;
use std::time::Duration;

use super::line::{Line, Lost};
use shakedown_core::value::wire;

/// The parent process. It keeps the limits of calls by itself, as it runs them.
pub(super) struct Parent;

impl Line for Parent {
    fn exchange(&mut self, request: Vec<u8>, _: Duration) -> Result<Vec<u8>, Lost> {
        tell(&request);
        hear(wire::reply_limit(request.len())).map_err(|error| Lost::Confused(error.to_string()))
    }

    fn end(&mut self) {}
}

/// Sends a message that the parent does not answer, or not at once. Without a parent this process
/// has nothing left to do; the journal keeps the case in flight.
pub fn tell(message: &[u8]) {
    let mut out = io::stdout().lock();
    if out.write_all(message).and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}

/// The next message of the parent, of at most `limit` bytes.
///
/// # Errors
/// It is no message, or too large.
pub fn hear(limit: u64) -> io::Result<Vec<u8>> {
    match wire::read_message(&mut io::stdin().lock(), limit) {
        Ok(Some(message)) => Ok(message),
        Ok(None) => exit(0),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => exit(0),
        Err(error) => Err(error),
    }
}
