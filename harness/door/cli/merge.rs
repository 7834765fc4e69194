//! `shakedown merge-reports`.

use std::path::PathBuf;

use super::Done;
use super::files::ReportFiles;
use crate::report::Report;
use crate::report::merge::merge;
use crate::value::error::Error;

pub(super) fn run(paths: &[PathBuf], files: &ReportFiles) -> Done {
    let read = |path: &PathBuf| Ok((path.clone(), Report::read(path)?));
    let reports = paths.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
    let report = merge(reports)?;
    files.conclude(&report, &[])
}
