//! The pipes of a worker: a request is written and its reply read in the caller's own thread, each
//! up to a time. A thread of theirs would be woken twice for every call.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::retry_on_intr;
use shakedown_core::value::wire;

/// Both pipes.
pub(super) struct Pipes {
    requests: Timed,
    replies: BufReader<Timed>,
    /// What is written before the first request.
    head: &'static str,
}

/// One end of a pipe, which waits no longer than until some time.
struct Timed {
    file: File,
    until: Option<Instant>,
}

impl Pipes {
    /// The ends of the harness.
    pub(super) fn new(head: &'static str, requests: OwnedFd, replies: OwnedFd) -> Pipes {
        // A write gives what fits, and does not wait for the rest. Where that cannot be had, a
        // process that reads nothing has no limit.
        if let Ok(flags) = fcntl_getfl(&requests) {
            let _ = fcntl_setfl(&requests, flags | OFlags::NONBLOCK);
        }
        let timed = |end: OwnedFd| Timed { file: end.into(), until: None };
        Pipes { requests: timed(requests), replies: BufReader::new(timed(replies)), head }
    }

    /// Sends a request and waits for the reply to it; `None` at the end of the replies.
    ///
    /// # Errors
    /// As [`wire::read_message`]; `TimedOut` after the limit.
    pub(super) fn exchange(
        &mut self,
        request: &[u8],
        limit: Duration,
    ) -> io::Result<Option<Vec<u8>>> {
        let until = Instant::now().checked_add(limit);
        self.requests.until = until;
        self.replies.get_mut().until = until;
        let head = std::mem::take(&mut self.head);
        let sent = self.requests.write_all(head.as_bytes());
        sent.and_then(|()| self.requests.write_all(request))?;
        wire::read_message(&mut self.replies, wire::reply_limit(request.len()))
    }
}

impl Timed {
    /// Waits until it is ready, or the other end has gone.
    fn wait(&self, event: PollFlags) -> io::Result<()> {
        let ready = retry_on_intr(|| {
            let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            poll(&mut [PollFd::new(&self.file, event)], left.as_ref())
        });
        if ready? == 0 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.wait(PollFlags::IN)?;
        self.file.read(into)
    }
}

impl Write for Timed {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::OUT)?;
            match self.file.write(from) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
