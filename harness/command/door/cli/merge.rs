//! `shakedown merge-reports`.

use std::path::PathBuf;

use super::Done;
use super::files::ReportFiles;
use super::read_report::{self, Either};
use super::surroundings::Judged;
use shakedown_core::value::error::Error;
use shakedown_engine::report::merge::merge;
use shakedown_lint::report::{Diagnosis, Severity};

pub(super) fn run(paths: &[PathBuf], files: &ReportFiles) -> Done {
    let (mut reports, mut diagnoses) = (Vec::new(), Vec::new());
    for path in paths {
        match read_report::read(path)? {
            Either::Report(report) => reports.push((path.clone(), report)),
            Either::Diagnosis(diagnosis) => diagnoses.push((path.clone(), diagnosis)),
        }
    }
    match (&reports[..], &diagnoses[..]) {
        ([], _) => {
            let diagnosis = Diagnosis::merge(diagnoses)?;
            files.tell(&Judged { diagnosis: &diagnosis, fail_on: Severity::Warning })
        }
        (_, []) => files.conclude(&merge(reports)?, &[]),
        (_, [(path, _), ..]) => {
            let why = "reports of components and of what surrounds them are merged apart";
            Err(Error::new(why).at(path).into())
        }
    }
}
