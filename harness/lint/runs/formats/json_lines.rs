//! JSON lines: one row a line. `{step, data}` alone is what verl's file logger writes; there `null`
//! is a number that was not finite.

use std::io::BufRead;

use crate::runs::formats::cells::Cells;
use crate::runs::formats::lines::Lines;
use crate::runs::formats::literal::{Dialect, Leaf, object};
use crate::runs::formats::{Warnings, unreadable};
use crate::runs::recorder::Recorder;
use shakedown_core::value::error::Error;

/// What the lines of a text turned out to be.
pub(super) struct Found {
    /// How many were objects.
    pub(super) objects: usize,
    /// How many were not.
    pub(super) broken: usize,
    /// Whether verl's file logger wrote them.
    pub(super) is_verl: bool,
}

/// Reads all rows.
pub(super) fn read(
    source: &mut dyn BufRead,
    to: &mut Recorder,
    warnings: &mut Warnings,
) -> Result<Found, Error> {
    let mut lines = Lines::new(source);
    let mut cells = Cells::default();
    let mut found = Found { objects: 0, broken: 0, is_verl: false };
    let (mut first_broken, mut is_cut) = (0, false);
    while let Some(line) = lines.next().map_err(|error| unreadable(&error))? {
        match row(&line.text, &mut cells) {
            Some(is_verl) => {
                found.objects += 1;
                found.is_verl |= is_verl;
                to.row(line.number, cells.iter());
            }
            None if !line.is_ended => is_cut = true,
            None => {
                found.broken += 1;
                first_broken = if found.broken == 1 { line.number } else { first_broken };
            }
        }
    }
    warnings.cut(is_cut);
    warnings.broken(found.broken, first_broken, "JSON objects");
    warnings.too_long(lines.too_long);
    Ok(found)
}

/// Reads one object, and whether it is a row of verl's; `None` where it is none.
pub(super) fn row(text: &str, cells: &mut Cells) -> Option<bool> {
    cells.clear();
    let is_verl = is_verl(text);
    let mut visit = |name: &str, leaf: Leaf<'_>| match (is_verl, name.strip_prefix("data/")) {
        (true, Some(name)) if leaf == Leaf::Null => cells.push(name, f64::NAN, ""),
        (true, Some(name)) => cells.leaf(name, &leaf),
        _ => cells.leaf(name, &leaf),
    };
    let end = object(text, Dialect::Json, '/', &mut visit).ok()?;
    text[end..].trim().is_empty().then_some(is_verl)
}

/// Whether an object has a `step` and `data`, and nothing else.
fn is_verl(text: &str) -> bool {
    // Only such an object is read twice.
    if memchr::memmem::find(text.as_bytes(), b"\"data\"").is_none() {
        return false;
    }
    let (mut steps, mut data, mut others) = (false, false, false);
    let mut visit = |name: &str, _: Leaf<'_>| match name {
        "step" => steps = true,
        _ if name == "data" || name.starts_with("data/") => data = true,
        _ => others = true,
    };
    object(text, Dialect::Json, '/', &mut visit).is_ok() && steps && data && !others
}
