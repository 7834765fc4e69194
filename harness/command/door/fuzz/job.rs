//! A session under libFuzzer until its time is over, which ends the process.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::engine::{self, Fuzzed, Next};
use super::session::{AtOnePlace, Session};
use shakedown_core::contract::stream;
use shakedown_core::value::error::Error;

/// Random inputs that a job begins with, besides the corpus.
const BEGINNINGS: usize = 64;

/// The longest input.
pub(crate) const LONGEST: usize = 1024;

/// How long a job runs, and on what.
pub(crate) struct Limits {
    pub(crate) seed: u64,
    pub(crate) time: Duration,
    pub(crate) runs: u64,
    /// The inputs that did something new.
    pub(crate) corpus: PathBuf,
    /// A folder that is not there yet, for the random inputs that it begins with.
    pub(crate) beginnings: PathBuf,
}

/// Fuzzes. `tell` is told twice a second how many cases, calls and bugs there are; `done` what was
/// found, and says how the process ends.
///
/// # Errors
/// The random inputs cannot be written. Else it never returns.
pub(crate) fn run(
    session: Session,
    limits: Limits,
    tell: fn((u64, u64, u64)),
    done: impl FnOnce(Vec<AtOnePlace>) -> Next + Send + 'static,
) -> Error {
    let Limits { seed, time, runs, corpus, beginnings } = limits;
    if let Err(error) = write_beginnings(&beginnings, seed, session.contract()) {
        return Error::io("write", &beginnings, &error);
    }
    let folders = [corpus, beginnings].map(|path| path.display().to_string());
    let mut arguments: Vec<String> = [
        &format!("-seed={seed}"),
        &format!("-max_len={LONGEST}"),
        // Long inputs at once: a component from Python runs some hundred cases a second.
        "-len_control=0",
        "-mutate_depth=2",
        "-verbosity=0",
        "-timeout=0",
        "-rss_limit_mb=0",
        "-handle_int=0",
        "-handle_term=0",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.extend(folders);
    let now = Instant::now();
    let running = (session, Box::new(done) as Done);
    let job = Job { running: Some(running), started: now, time, runs, tried: 0, told: now, tell };
    engine::drive(&arguments, Box::new(job))
}

type Done = Box<dyn FnOnce(Vec<AtOnePlace>) -> Next + Send>;

/// A session, until its time is over.
struct Job {
    /// `None` once it has concluded; the process ends then.
    running: Option<(Session, Done)>,
    started: Instant,
    time: Duration,
    runs: u64,
    tried: u64,
    told: Instant,
    tell: fn((u64, u64, u64)),
}

impl Fuzzed for Job {
    fn input(&mut self, bytes: &[u8]) -> Next {
        let is_over = self.tried >= self.runs || self.started.elapsed() >= self.time;
        match self.running.take_if(|(session, _)| is_over || session.is_over()) {
            Some((session, done)) => return done(session.conclude()),
            None => self.tried += 1,
        }
        let Some((session, _)) = &mut self.running else { return Next::Exit(2) };
        if self.told.elapsed() > Duration::from_millis(500) {
            self.told = Instant::now();
            (self.tell)(session.progress());
        }
        match session.input(bytes) {
            Ok(true) => Next::Input,
            Ok(false) => Next::Reject,
            Err(error) => failed(&error),
        }
    }

    fn read(&self, bytes: &[u8]) -> usize {
        self.running.as_ref().map_or(0, |(session, _)| session.read(bytes))
    }
}

/// How a job ends that cannot write what it found.
pub(crate) fn failed(error: &Error) -> Next {
    eprintln!("error: {error}");
    Next::Exit(2)
}

/// Fills a folder with random inputs: from nothing libFuzzer would begin with inputs of one byte.
fn write_beginnings(folder: &Path, seed: u64, contract: &str) -> std::io::Result<()> {
    use rand_core::Rng as _;

    fs::create_dir(folder)?;
    let mut rng = stream::rng(seed, contract);
    for index in 0..BEGINNINGS {
        let mut bytes = vec![0; LONGEST / 2];
        rng.fill_bytes(&mut bytes);
        fs::write(folder.join(index.to_string()), bytes)?;
    }
    Ok(())
}
