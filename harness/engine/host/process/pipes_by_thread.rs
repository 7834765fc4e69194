//! The pipes of a worker where a pipe cannot be polled: a thread writes the requests and reads the
//! replies, so that neither can block the harness.

use std::io::{self, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use shakedown_core::value::wire;

/// Both pipes.
pub(super) struct Pipes {
    requests: Sender<Vec<u8>>,
    replies: Receiver<io::Result<Option<Vec<u8>>>>,
}

impl Pipes {
    /// The ends of the harness; `head` is written before the first request.
    pub(super) fn new(
        head: &'static str,
        mut requests: impl Write + Send + 'static,
        replies: impl Read + Send + 'static,
    ) -> Pipes {
        let mut from = BufReader::new(replies);
        let (to_send, taken) = channel::<Vec<u8>>();
        let (received, replies) = channel();
        thread::spawn(move || {
            // Where it does not read it, it does not read the first request either.
            let _ = requests.write_all(head.as_bytes());
            for request in taken {
                let sent = requests.write_all(&request).and_then(|()| requests.flush());
                let limit = wire::reply_limit(request.len());
                let reply = sent.and_then(|()| wire::read_message(&mut from, limit));
                if received.send(reply).is_err() {
                    break;
                }
            }
        });
        Pipes { requests: to_send, replies }
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
        // Where the thread is gone, so is the process: the reply says so.
        let _ = self.requests.send(request.to_vec());
        match self.replies.recv_timeout(limit) {
            Ok(reply) => reply,
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}
