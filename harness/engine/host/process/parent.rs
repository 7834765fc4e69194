//! The process that drives this one: what we ask on our standard output it answers on our standard
//! input (`PROTOCOL.md`).

#[cfg(unix)]
use std::fs::File;
use std::io::{self, Write};
#[cfg(unix)]
use std::os::fd::AsFd;
use std::process::exit;
use std::sync::LazyLock;
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
    let Some(mut out) = OUT.as_ref() else { exit(0) };
    if out.write_all(message).and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}

/// Standard output without its buffer of lines, which breaks a message where a byte is a newline:
/// the parent would be woken twice.
#[cfg(unix)]
static OUT: LazyLock<Option<File>> =
    LazyLock::new(|| io::stdout().as_fd().try_clone_to_owned().map(File::from).ok());
#[cfg(not(unix))]
static OUT: LazyLock<Option<io::Stdout>> = LazyLock::new(|| Some(io::stdout()));

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
