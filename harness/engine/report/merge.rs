//! Several reports as one: the shards of a run, or runs of different components.

use std::path::PathBuf;

use super::{ComponentReport, Report, SCHEMA, Shard};
use shakedown_core::value::error::Error;

/// One report of several, each with the file that it was read from.
///
/// Shards come in the order of the run that they are parts of, other reports in the order given.
///
/// # Errors
/// They are of different versions or seeds, a component and place is in two of them, or a shard is
/// missing, given twice, or of another run.
///
/// # Panics
/// If there are none.
pub fn merge(mut reports: Vec<(PathBuf, Report)>) -> Result<Report, Error> {
    belong_together(&reports)?;
    let shards = reports[0].1.shard.map(Shard::of);
    if let Some(of) = shards {
        reports.sort_by_key(|(_, report)| report.shard.map(Shard::index));
        complete(&reports, of)?;
    }
    let (_, Report { version, seed, .. }) = &reports[0];
    let (version, seed) = (version.clone(), *seed);
    // Shards run at the same time.
    let elapsed_ms = reports.iter().map(|(_, report)| report.elapsed_ms).max().unwrap_or(0);
    let mut parts: Vec<_> =
        reports.into_iter().map(|(_, report)| report.components.into_iter()).collect();
    let mut components: Vec<ComponentReport> = Vec::new();
    if shards.is_some() {
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
    let components = components.into_iter().map(ComponentReport::harmless).collect();
    Ok(Report { schema: SCHEMA.to_owned(), version, seed, shard: None, elapsed_ms, components })
}

/// All reports must be alike, and nothing may be in two of them.
fn belong_together(reports: &[(PathBuf, Report)]) -> Result<(), Error> {
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
                let why = format!("the shard {shard} is given twice, first in {earlier_path}");
                return Err(Error::new(why).at(path));
            }
            let twice = report.components.iter().find(|component| {
                let mut all = earlier.components.iter();
                all.any(|one| (&one.name, one.place) == (&component.name, component.place))
            });
            if let Some(component) = twice {
                let title = component.title();
                let why = format!("`{title}` is given twice, first in {earlier_path}");
                return Err(Error::new(why).at(path));
            }
        }
    }
    Ok(())
}

/// What all parts of a run have in common.
fn facts(report: &Report) -> [(&'static str, String); 3] {
    let shards = report.shard.map_or("none".to_owned(), |shard| shard.of().to_string());
    [("version", report.version.clone()), ("seed", report.seed.to_string()), ("shards", shards)]
}

/// Missing shards that are named; more are counted.
const NAMED: usize = 8;

/// Every shard must be there, each with its share.
fn complete(reports: &[(PathBuf, Report)], of: usize) -> Result<(), Error> {
    let there =
        |index: usize| reports.iter().any(|(_, r)| r.shard.is_some_and(|s| s.index() == index));
    let missing = of - reports.len();
    if missing > 0 {
        let named = (1..=of).filter(|index| !there(*index)).take(NAMED);
        let mut named: Vec<String> = named.map(|index| format!("{index}/{of}")).collect();
        if missing > NAMED {
            named.push(format!("and {} more", missing - NAMED));
        }
        return Err(Error::new(format!("missing shards: {}", named.join(", "))));
    }
    let found: Vec<usize> = reports.iter().map(|(_, report)| report.components.len()).collect();
    let all = found.iter().sum();
    let shards = reports.iter().filter_map(|(_, report)| report.shard);
    let expected: Vec<usize> = shards.map(|shard| shard.share(all)).collect();
    if found == expected {
        return Ok(());
    }
    let list =
        |counts: Vec<usize>| counts.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    Err(Error::new(format!(
        "the shards are not of one run: expected {} components and places in them, found {}",
        list(expected),
        list(found)
    )))
}
