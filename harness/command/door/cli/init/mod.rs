//! `shakedown init`: tests or a suite, a folder for regressions and a nightly job in a training
//! repository.

mod files;
mod guess;
mod kind;
mod python;
mod rust;
mod template;
mod workflow;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::{Done, MANIFEST as MANIFEST_FILE, duration, output};
use files::{File, Outcome};
use kind::Kind;
use shakedown_core::value::error::Error;
use shakedown_engine::report::ExitCode;

/// Where the command and the library come from: shakedown is not on crates.io.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The arguments of `shakedown init`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The language of the training repository, where the folder does not tell
    kind: Option<Kind>,
    /// The training repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Rust: depend on this checkout of shakedown instead of its repository
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Python: write a manifest and adapters, also where the repository has pytest
    #[arg(long)]
    manifest: bool,
    /// Python: add this function to the tests, or to the manifest
    #[arg(long, value_name = "FILE:FUNCTION")]
    add: Option<String>,
    /// Python: time limit for importing and calling what looks like a component: 10s, 5m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1m")]
    time: Duration,
}

/// What shall stand in the repository, and what is said about it.
struct Plan {
    /// What was found there, one sentence each.
    found: Vec<String>,
    files: Vec<File>,
    /// What is left to do, one sentence each.
    steps: Vec<String>,
}

pub(super) fn run(arguments: &Arguments) -> Done {
    let dir = &arguments.dir;
    if !dir.is_dir() {
        let path = dir.display();
        return Err(Error::new(format!("{path} is not a folder; --dir names a repository")).into());
    }
    // What is to be added says the language.
    let named = arguments.kind.or(arguments.add.as_ref().map(|_| Kind::Python));
    let plan = match kind::of(dir, named)? {
        Kind::Python if arguments.path.is_some() => {
            let why = "--path is for Rust: a Python repository calls the command `shakedown`";
            return Err(Error::new(why).into());
        }
        Kind::Python => {
            let add = arguments.add.as_deref();
            python::plan(dir, arguments.manifest, add, arguments.time)?
        }
        Kind::Rust if arguments.manifest || arguments.add.is_some() => {
            let why = "--manifest and --add are for Python: name it, `shakedown init python`";
            return Err(Error::new(why).into());
        }
        Kind::Rust => rust::plan(dir, arguments.path.as_deref())?,
    };
    let mut outcomes = Vec::new();
    for file in &plan.files {
        outcomes.push(file.put(dir)?);
    }
    print(dir, &plan, &outcomes)?;
    Ok(ExitCode::AllHold)
}

fn print(dir: &Path, plan: &Plan, outcomes: &[Outcome]) -> std::io::Result<()> {
    let (mut to, _) = output();
    for found in &plan.found {
        writeln!(to, "{found}")?;
    }
    writeln!(to)?;
    for (file, outcome) in plan.files.iter().zip(outcomes) {
        let name = file.path.display();
        match outcome {
            Outcome::Written => writeln!(to, "  wrote    {name}")?,
            Outcome::Changed => writeln!(to, "  changed  {name}: {}", file.change)?,
            Outcome::Same => writeln!(to, "  as it is {name}")?,
            Outcome::Kept => {
                writeln!(to, "  kept     {name}: it was there; to add by hand:")?;
                for line in file.by_hand.lines() {
                    writeln!(to, "{}", format!("             {line}").trim_end())?;
                }
            }
        }
    }
    if !outcomes.iter().any(|outcome| matches!(outcome, Outcome::Written | Outcome::Changed)) {
        writeln!(to, "\nNothing was changed: everything is there already.")?;
    }
    writeln!(to, "\nLeft to do in `{}`:", dir.display())?;
    for (index, step) in plan.steps.iter().enumerate() {
        writeln!(to, "  {}. {step}", index + 1)?;
    }
    Ok(())
}

/// The folder that holds `.git`, where workflows are looked for, and the way from there to `dir`;
/// `dir` itself where there is none.
fn repository(dir: &Path) -> (PathBuf, PathBuf) {
    let full = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let root = full.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&full);
    let inside = full.strip_prefix(root).expect("an ancestor is a prefix").to_owned();
    (root.to_owned(), inside)
}
