//! Tables with a line of names. Where all columns are called `RUN - metric`, as W&B exports them,
//! each run is one of its own; its `__MIN` and `__MAX` columns are left out.

use std::collections::BTreeMap;
use std::io::BufRead;

use crate::runs::formats::cells::Cells;
use crate::runs::formats::lines::Lines;
use crate::runs::formats::literal::number;
use crate::runs::formats::{OwnNames, Warnings, unreadable};
use crate::runs::recorder::{Recorder, is_step};
use shakedown_core::value::error::Error;

/// More runs than this are not read from one table.
const MOST_RUNS: usize = 1000;

/// The separator of a line of names, where it is one: without braces, with a step.
pub(super) fn separator(line: &str, own_names: &OwnNames) -> Option<u8> {
    if line.contains(['{', '}']) {
        return None;
    }
    let mut names = Vec::new();
    let has_step = |separator: &u8| {
        split(line, *separator, &mut names)
            && names.len() > 1
            && names.iter().any(|name| is_step(name, own_names))
    };
    [b',', b';', b'\t'].into_iter().find(has_step)
}

/// What a column is.
enum Column {
    /// A step, of every run.
    Step(String),
    /// A metric of a run.
    Metric { run: usize, name: String },
    /// Left out.
    Other,
}

/// Reads all rows of every run; a run has a name where W&B exported it.
pub(super) fn read(
    source: &mut dyn BufRead,
    own_names: &OwnNames,
    warnings: &mut Warnings,
) -> Result<Vec<(Option<String>, Recorder)>, Error> {
    let mut lines = Lines::new(source);
    let first = lines.next().map_err(|error| unreadable(&error))?;
    let first = first.map(|line| line.text.into_owned()).unwrap_or_default();
    let separator =
        separator(&first, own_names).ok_or_else(|| Error::new("has no column of steps"))?;
    let mut fields = Vec::new();
    split(&first, separator, &mut fields);
    let (columns, names) = columns(&fields, own_names);
    if names.len() > MOST_RUNS {
        return Err(Error::new(format!("has {} runs, {MOST_RUNS} can be read", names.len())));
    }
    let mut runs: Vec<(Option<String>, Recorder)> =
        names.into_iter().map(|name| (name, Recorder::new(own_names.clone()))).collect();
    let mut cells: Vec<Cells> = runs.iter().map(|_| Cells::default()).collect();
    let (mut rows, mut broken, mut first_broken, mut is_cut) = (0, 0, 0, false);
    while let Some(line) = lines.next().map_err(|error| unreadable(&error))? {
        let is_whole = split(&line.text, separator, &mut fields) && fields.len() == columns.len();
        if is_whole {
            rows += 1;
            take(&columns, &fields, &mut cells);
            for ((_, recorder), cells) in runs.iter_mut().zip(&cells) {
                if !cells.is_empty() {
                    recorder.row(line.number, cells.iter());
                }
            }
        } else if line.is_ended {
            broken += 1;
            first_broken = if broken == 1 { line.number } else { first_broken };
        } else {
            is_cut = true;
        }
    }
    if broken > rows {
        let columns = columns.len();
        let message = format!("most lines do not have the {columns} columns that it begins with");
        return Err(Error::new(message).line(first_broken, 1));
    }
    warnings.cut(is_cut);
    warnings.broken(broken, first_broken, "rows of as many columns as there are names");
    warnings.too_long(lines.too_long);
    Ok(runs)
}

/// The columns, and the names of the runs.
fn columns(names: &[String], own_names: &OwnNames) -> (Vec<Column>, Vec<Option<String>>) {
    let is_step = |name: &str| is_step(name, own_names);
    let metrics = || names.iter().filter(|name| !name.is_empty() && !is_step(name));
    let are_runs = metrics().all(|name| name.contains(" - ")) && metrics().next().is_some();
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    let mut steps: Vec<&str> = Vec::new();
    let columns = names.iter().map(|name| match name.rsplit_once(" - ") {
        _ if is_step(name) && steps.contains(&name.as_str()) => Column::Other,
        _ if is_step(name) => {
            steps.push(name);
            Column::Step(name.clone())
        }
        _ if name.is_empty() || name.ends_with("__MIN") || name.ends_with("__MAX") => Column::Other,
        Some((run, metric)) if are_runs => {
            let next = runs.len();
            let run = *runs.entry(run).or_insert(next);
            if is_step(metric) {
                // A step counts as the run's own only where it is one for all.
                return Column::Other;
            }
            Column::Metric { run, name: metric.to_owned() }
        }
        _ => Column::Metric { run: 0, name: name.clone() },
    });
    let columns = columns.collect();
    let mut order: Vec<(usize, &str)> = runs.into_iter().map(|(name, at)| (at, name)).collect();
    order.sort_unstable();
    let mut names: Vec<Option<String>> =
        order.into_iter().map(|(_, name)| Some(name.to_owned())).collect();
    if names.is_empty() {
        names.push(None);
    }
    (columns, names)
}

/// The cells of each run in a row; no step where a run has nothing there.
fn take(columns: &[Column], fields: &[String], cells: &mut [Cells]) {
    cells.iter_mut().for_each(Cells::clear);
    for (column, field) in columns.iter().zip(fields) {
        if let (Column::Metric { run, name }, Some((value, text))) = (column, number(field)) {
            cells[*run].push(name, value, text);
        }
    }
    for (column, field) in columns.iter().zip(fields) {
        if let (Column::Step(name), Some((value, _))) = (column, number(field)) {
            let mut logged = cells.iter_mut().filter(|cells| !cells.is_empty());
            logged.by_ref().for_each(|cells| cells.push(name, value, ""));
        }
    }
}

/// Splits a line at a separator, outside quotes; `false` where a quote is not closed.
fn split(line: &str, separator: u8, fields: &mut Vec<String>) -> bool {
    let separator = char::from(separator);
    let mut count = 0;
    let mut rest = line;
    loop {
        if fields.len() == count {
            fields.push(String::new());
        }
        let field = &mut fields[count];
        field.clear();
        count += 1;
        if let Some(quoted) = rest.strip_prefix('"') {
            let Some(after) = unquote(quoted, field) else { return false };
            rest = after;
        }
        let end = rest.find(separator);
        field.push_str(rest[..end.unwrap_or(rest.len())].trim());
        match end {
            Some(end) => rest = &rest[end + 1..],
            None => break,
        }
    }
    fields.truncate(count);
    true
}

/// Reads a quoted field, in which a doubled quote is one; what follows it.
fn unquote<'a>(mut rest: &'a str, field: &mut String) -> Option<&'a str> {
    loop {
        let (inside, after) = rest.split_once('"')?;
        field.push_str(inside);
        match after.strip_prefix('"') {
            Some(after) => {
                field.push('"');
                rest = after;
            }
            None => return Some(after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_names_has_a_step_and_no_braces() {
        let own = OwnNames::from([("batch".to_owned(), "step".to_owned())]);
        assert_eq!(separator("batch,loss", &own), Some(b','));
        let separator = |line| separator(line, &OwnNames::new());
        assert_eq!(separator("batch,loss"), None);
        assert_eq!(separator("step,loss"), Some(b','));
        assert_eq!(separator("\"Step\";\"a - loss\""), Some(b';'));
        assert_eq!(separator("loss,reward"), None);
        assert_eq!(separator("{'step': 1, 'loss': 2}"), None);
        assert_eq!(separator("step"), None);
    }

    #[test]
    fn quotes_hold_separators_and_quotes() {
        let mut fields = Vec::new();
        assert!(split("\"a, \"\"b\"\" - x\", 1 ,", b',', &mut fields));
        assert_eq!(fields, ["a, \"b\" - x", "1", ""]);
        assert!(!split("\"a,1", b',', &mut fields));
    }
}
