//! `shakedown merge-reports`.

use std::path::PathBuf;

use super::files::ReportFiles;
use super::{Done, output};
use crate::render::text::write_component;
use crate::report::Report;
use crate::report::merge::merge;
use crate::value::error::Error;

pub(super) fn run(paths: &[PathBuf], files: &ReportFiles) -> Done {
    let read = |path: &PathBuf| Ok((path.clone(), Report::read(path)?));
    let reports = paths.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
    let report = merge(reports)?;
    let (mut to, paint) = output();
    for component in &report.components {
        write_component(&mut to, component, paint)?;
    }
    files.conclude(&report, &mut to, paint)
}
