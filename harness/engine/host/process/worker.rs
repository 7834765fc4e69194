//! A child process that answers messages one at a time, with a time limit for each.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::line::{Line, Lost};
#[cfg(unix)]
use super::nursery::{Forked, Streams};
use super::pipes::Pipes;
use shakedown_core::value::text::harmless;

/// How much of the end of standard error is kept.
const STDERR_BYTES: usize = 4096;

/// The process ids of all that run, each with a group of its own.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Shows the whole lines of what a component printed, and leaves what is no whole line yet.
fn show_lines(name: &str, printed: &mut Vec<u8>) {
    while let Some(end) = printed.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = printed.drain(..=end).collect();
        let line = String::from_utf8_lossy(&line[..end]);
        eprintln!("{name}: {}", harmless(line.trim_end_matches('\r')));
    }
}

/// Kills all workers: their harness ends without dropping them.
#[cfg(feature = "fuzz")]
pub fn kill_all() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.iter().copied().for_each(kill_group);
}

#[cfg(unix)]
fn kill_group(leader: u32) {
    if let Some(group) = rustix::process::Pid::from_raw(leader.cast_signed()) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_group(_: u32) {}

/// The first process of a worker, which leads its group.
enum Leader {
    Started(Child),
    #[cfg(unix)]
    Forked(Forked),
}

impl Leader {
    fn id(&self) -> u32 {
        match self {
            Leader::Started(child) => child.id(),
            #[cfg(unix)]
            Leader::Forked(forked) => forked.id(),
        }
    }

    /// How it ended, where it has.
    fn ended(&mut self) -> Option<String> {
        match self {
            Leader::Started(child) => child.try_wait().ok().flatten().map(ended_how),
            #[cfg(unix)]
            Leader::Forked(forked) => forked.ended(),
        }
    }

    /// Kills it alone, whatever group it is in.
    fn kill_alone(&mut self) {
        match self {
            Leader::Started(child) => drop(child.kill()),
            #[cfg(unix)]
            Leader::Forked(forked) => forked.kill(),
        }
    }

    /// Waits for its end.
    fn wait(&mut self) {
        match self {
            Leader::Started(child) => drop(child.wait()),
            #[cfg(unix)]
            Leader::Forked(forked) => forked.wait(),
        }
    }
}

/// The running process. Dropping it kills the whole process group.
pub(super) struct Worker {
    leader: Leader,
    pipes: Pipes,
    stderr: Arc<Mutex<Vec<u8>>>,
}

impl Worker {
    /// Starts a program, which reads `head` before the first request. What it prints is shown on
    /// standard error where it has a name for that.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(
        mut command: Command,
        head: &'static str,
        shown_as: Option<&str>,
    ) -> io::Result<Worker> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = command.spawn()?;
        running.insert(child.id());
        drop(running);
        let stdin = child.stdin.take().expect("standard input is piped");
        let stdout = child.stdout.take().expect("standard output is piped");
        let errors = child.stderr.take().expect("standard error is piped");
        let pipes = Pipes::new(head, stdin.into(), stdout.into());
        Ok(Worker::of(Leader::Started(child), pipes, errors, shown_as))
    }

    /// A worker that a nursery has forked.
    #[cfg(unix)]
    pub(super) fn forked(forked: Forked, streams: Streams, shown_as: Option<&str>) -> Worker {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).insert(forked.id());
        let Streams { requests, replies, errors } = streams;
        let pipes = Pipes::new("", requests.into(), replies.into());
        Worker::of(Leader::Forked(forked), pipes, errors, shown_as)
    }

    fn of(
        leader: Leader,
        pipes: Pipes,
        mut errors: impl Read + Send + 'static,
        shown_as: Option<&str>,
    ) -> Worker {
        // A thread reads standard error all the time: a full pipe would look like a hang.
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let tail = Arc::clone(&stderr);
        let mut shown = shown_as.map(|name| (name.to_owned(), Vec::new()));
        thread::spawn(move || {
            let mut chunk = [0; STDERR_BYTES];
            while let Ok(length @ 1..) = errors.read(&mut chunk) {
                if let Some((name, line)) = &mut shown {
                    line.extend_from_slice(&chunk[..length]);
                    show_lines(name, line);
                }
                let mut tail = tail.lock().expect("no thread panics with the lock");
                tail.extend_from_slice(&chunk[..length]);
                let surplus = tail.len().saturating_sub(STDERR_BYTES);
                tail.drain(..surplus);
            }
        });
        Worker { leader, pipes, stderr }
    }

    fn ended(&mut self, error: Option<io::Error>) -> Lost {
        // A process that wrote nonsense still runs; one that closed its pipes ends by itself.
        if error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::InvalidData) {
            self.kill();
        }
        let mut ended = None;
        for _ in 0..200 {
            ended = self.leader.ended();
            if ended.is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let how = match (error, ended) {
            (Some(error), _) if error.kind() == io::ErrorKind::InvalidData => error.to_string(),
            (_, Some(how)) => how,
            (_, None) => "it closed its standard output".to_owned(),
        };
        self.kill();
        let stderr = self.stderr.lock().expect("no thread panics with the lock");
        let stderr = String::from_utf8_lossy(&stderr).trim_end().to_owned();
        Lost::Ended { how, stderr }
    }

    fn kill(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        // Once it was waited for, its number may be another's.
        if !running.remove(&self.leader.id()) {
            return;
        }
        kill_group(self.leader.id());
        self.leader.kill_alone();
        drop(running);
        self.leader.wait();
    }
}

impl Line for Worker {
    fn exchange(&mut self, request: Vec<u8>, limit: Duration) -> Result<Vec<u8>, Lost> {
        match self.pipes.exchange(&request, limit) {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(self.ended(None)),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.kill();
                Err(Lost::Confused(error.to_string()))
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.kill();
                Err(Lost::TimedOut)
            }
            Err(error) => Err(self.ended(Some(error))),
        }
    }

    fn end(&mut self) {
        self.kill();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn ended_how(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("killed by signal {signal}");
    }
    status.code().map_or("it ended".to_owned(), |code| format!("exit status {code}"))
}
