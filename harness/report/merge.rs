//! Several reports as one: the shards of a run, or runs of different components.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ComponentReport, Report, SCHEMA, Shard};
use crate::error::Error;

impl Report {
    /// Reads a report that was written as JSON.
    ///
    /// # Errors
    /// It cannot be read, or is no report of this schema.
    pub fn read(path: &Path) -> Result<Report, Error> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::io("read", path, &error))?;
        let wrong = |error: serde_json::Error| {
            let (line, column) = (error.line(), error.column());
            let why = error.to_string();
            let why = why.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&why);
            Error::new(format!("no report of the schema {SCHEMA}: {why}"))
                .at(path)
                .line(line, column)
        };
        // A report of another schema is told by its name, not by its first strange key.
        let schema = serde_json::from_str::<Value>(&text).map_err(wrong)?["schema"].take();
        if schema != SCHEMA {
            let why = format!("expected a report of the schema {SCHEMA}, found {schema}");
            return Err(Error::new(why).at(path));
        }
        serde_json::from_str(&text).map_err(wrong)
    }
}

/// One report of several, each with the file that it was read from.
///
/// Shards come in the order of the run that they are parts of, other reports in the order given.
///
/// # Errors
/// They are of different versions or seeds, a component and place is in two of them, or a shard is
/// missing, there twice, or of another run.
///
/// # Panics
/// If there are none.
pub fn merge(mut reports: Vec<(PathBuf, Report)>) -> Result<Report, Error> {
    let shards = same_run(&reports)?;
    if shards {
        reports.sort_by_key(|(_, report)| report.shard.map(Shard::index));
    }
    let (_, Report { version, seed, .. }) = &reports[0];
    let (version, seed) = (version.clone(), *seed);
    // Shards run at the same time.
    let elapsed_ms = reports.iter().map(|(_, report)| report.elapsed_ms).max().unwrap_or(0);
    let mut parts: Vec<_> =
        reports.into_iter().map(|(_, report)| report.components.into_iter()).collect();
    let mut components: Vec<ComponentReport> = Vec::new();
    if shards {
        // As they were dealt out: the first of each, then the second of each.
        loop {
            let before = components.len();
            components.extend(parts.iter_mut().filter_map(Iterator::next));
            if components.len() == before {
                break;
            }
        }
    } else {
        components.extend(parts.into_iter().flatten());
    }
    Ok(Report { schema: SCHEMA.to_owned(), version, seed, shard: None, elapsed_ms, components })
}

/// Whether the reports are the shards of one run.
fn same_run(reports: &[(PathBuf, Report)]) -> Result<bool, Error> {
    let (first_path, first) = &reports[0];
    for (index, (path, report)) in reports.iter().enumerate() {
        for ((what, expected), (_, found)) in facts(first).into_iter().zip(facts(report)) {
            if found != expected {
                let first = first_path.display();
                let why = format!("{what}: expected {expected} as in {first}, found {found}");
                return Err(Error::new(why).at(path));
            }
        }
        for (earlier_path, earlier) in &reports[..index] {
            let earlier_path = earlier_path.display();
            if let (Some(shard), true) = (report.shard, report.shard == earlier.shard) {
                let why = format!("the shard {shard} is there twice, first in {earlier_path}");
                return Err(Error::new(why).at(path));
            }
            let twice = report.components.iter().find(|component| {
                let mut all = earlier.components.iter();
                all.any(|one| (&one.name, one.place) == (&component.name, component.place))
            });
            if let Some(component) = twice {
                let title = component.title();
                let why = format!("`{title}` is there twice, first in {earlier_path}");
                return Err(Error::new(why).at(path));
            }
        }
    }
    let Some(shard) = first.shard else { return Ok(false) };
    complete(reports, shard.of())?;
    Ok(true)
}

/// What all parts of a run have in common.
fn facts(report: &Report) -> [(&'static str, String); 3] {
    let shards = report.shard.map_or("none".to_owned(), |shard| shard.of().to_string());
    [("version", report.version.clone()), ("seed", report.seed.to_string()), ("shards", shards)]
}

/// Every shard must be there, each with its share.
fn complete(reports: &[(PathBuf, Report)], of: usize) -> Result<(), Error> {
    let there =
        |index: usize| reports.iter().any(|(_, r)| r.shard.is_some_and(|s| s.index() == index));
    let missing: Vec<String> =
        (1..=of).filter(|index| !there(*index)).map(|index| format!("{index}/{of}")).collect();
    if !missing.is_empty() {
        let shards = if missing.len() == 1 { "the shard" } else { "the shards" };
        return Err(Error::new(format!("{shards} {} are missing", missing.join(", "))));
    }
    let all = reports.iter().map(|(_, report)| report.components.len()).sum();
    for (path, report) in reports {
        let share = report.shard.map_or(0, |shard| shard.share(all));
        if report.components.len() != share {
            let why = format!(
                "expected {share} of {all} components and places, found {}: it is no part of the \
                 same run",
                report.components.len()
            );
            return Err(Error::new(why).at(path));
        }
    }
    Ok(())
}
