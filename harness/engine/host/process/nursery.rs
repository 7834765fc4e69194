//! A process that has imported what components need, and forks a worker for each of them.

use std::collections::HashMap;
use std::io::{self, IoSlice, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long an answer may take once everything has been imported.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer in bytes.
const ANSWER_BYTES: usize = 64;

/// The nurseries of a manifest: one for each interpreter, folder and choice of imports. They end
/// with the last clone and the last worker.
#[derive(Clone, Debug, Default)]
pub struct Nurseries(Arc<Mutex<HashMap<String, Arc<Mutex<Kept>>>>>);

/// What is known of one nursery.
#[derive(Debug, Default)]
enum Kept {
    #[default]
    None,
    Ready(Arc<Mutex<Nursery>>),
    /// Nothing can be forked from it: its imports fail, or leave threads.
    Barren,
}

impl Nurseries {
    /// A worker forked from the nursery of this name, which is started first where there is none.
    /// `None` where none can be had: workers are then started as processes of their own.
    pub(super) fn fork(
        &self,
        name: String,
        start: impl FnOnce() -> Command,
        head: &str,
        limit: Duration,
    ) -> Option<(Forked, Streams)> {
        let kept = Arc::clone(lock(&self.0).entry(name).or_default());
        let mut kept = lock(&kept);
        match &*kept {
            Kept::Barren => return None,
            Kept::Ready(nursery) => {
                if let Ok(forked) = Forked::from(nursery) {
                    return Some(forked);
                }
            }
            Kept::None => {}
        }
        // It may have been killed by a component, and another one serves.
        *kept = Kept::Barren;
        let nursery = Nursery::start(start(), head, limit).ok()?;
        let forked = Forked::from(&nursery).ok()?;
        *kept = Kept::Ready(nursery);
        Some(forked)
    }
}

/// Where workers are forked. When the harness ends, so does its end of the socket, and the process
/// with it.
#[derive(Debug)]
struct Nursery {
    child: Child,
    socket: UnixStream,
}

/// A worker that was forked; its nursery knows how it ended.
pub(super) struct Forked {
    process: Pid,
    nursery: Arc<Mutex<Nursery>>,
    /// Whether it was waited for: its number may be another's then.
    is_gone: bool,
}

/// The pipes of a worker, on the side of the harness.
pub(super) struct Streams {
    /// Its standard input.
    pub(super) requests: PipeWriter,
    /// Its standard output.
    pub(super) replies: PipeReader,
    /// Its standard error.
    pub(super) errors: PipeReader,
}

impl Nursery {
    /// Starts one, which reads `head`, and imports before it answers. The limit is that of its
    /// first answer.
    ///
    /// # Errors
    /// It cannot be started.
    fn start(mut command: Command, head: &str, limit: Duration) -> io::Result<Arc<Mutex<Self>>> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(limit))?;
        socket.set_write_timeout(Some(limit))?;
        // Nobody reads them: they make Python believe what is true for its workers.
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.process_group(0).spawn()?;
        let mut nursery = Nursery { child, socket };
        nursery.socket.write_all(head.as_bytes())?;
        Ok(Arc::new(Mutex::new(nursery)))
    }

    /// Sends a request with some open files, and gives the answer.
    fn ask(&mut self, request: &str, files: &[BorrowedFd<'_>]) -> io::Result<String> {
        let answer = self.exchange(request, files);
        if answer.is_err() {
            // An answer that comes too late must not be that to another request.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
        answer
    }

    fn exchange(&mut self, request: &str, files: &[BorrowedFd<'_>]) -> io::Result<String> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::Error::other("too many files for a message"));
        }
        let request = [IoSlice::new(request.as_bytes())];
        sendmsg(&self.socket, &request, &mut control, SendFlags::empty())?;
        let mut answer = Vec::new();
        while answer.last() != Some(&b'\n') {
            let mut byte = [0];
            self.socket.read_exact(&mut byte)?;
            answer.push(byte[0]);
            if answer.len() > ANSWER_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        self.socket.set_read_timeout(Some(PATIENCE))?;
        answer.pop();
        String::from_utf8(answer).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Forked {
    /// Has a nursery fork a worker.
    ///
    /// # Errors
    /// It cannot, or it has gone: it has threads, say, or what it imports does not let it live.
    fn from(nursery: &Arc<Mutex<Nursery>>) -> io::Result<(Forked, Streams)> {
        let (its_requests, requests) = io::pipe()?;
        let (replies, its_replies) = io::pipe()?;
        let (errors, its_errors) = io::pipe()?;
        let files = [its_requests.as_fd(), its_replies.as_fd(), its_errors.as_fd()];
        let answer = lock(nursery).ask("fork", &files)?;
        let process = answer.parse().ok().and_then(Pid::from_raw);
        let process = process.ok_or_else(|| io::Error::other(format!("it answered `{answer}`")))?;
        let forked = Forked { process, nursery: Arc::clone(nursery), is_gone: false };
        Ok((forked, Streams { requests, replies, errors }))
    }

    /// The number of the process.
    pub(super) fn id(&self) -> u32 {
        self.process.as_raw_nonzero().get().cast_unsigned()
    }

    /// How it ended, where it has.
    pub(super) fn ended(&mut self) -> Option<String> {
        let answer = lock(&self.nursery).ask(&format!("poll {}", self.process), &[]);
        match answer {
            Ok(answer) if answer == "running" => None,
            Ok(how) => {
                self.is_gone = true;
                Some(how)
            }
            // With its nursery nobody knows any more.
            Err(_) => Some("it ended".to_owned()),
        }
    }

    /// Kills it alone, whatever group it is in.
    pub(super) fn kill(&self) {
        if !self.is_gone {
            let _ = kill_process(self.process, Signal::KILL);
        }
    }

    /// Waits for its end.
    pub(super) fn wait(&mut self) {
        self.is_gone = true;
        let _ = lock(&self.nursery).ask(&format!("wait {}", self.process), &[]);
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
