//! Where a report goes besides the text on standard output.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::Done;
use crate::files::atomic::write_atomically;
use crate::render::text::Paint;
use crate::render::text::write_summary;
use crate::render::{github, html, junit, sarif};
use crate::report::Report;

/// The forms in which a report can be had.
#[derive(Args)]
pub(super) struct ReportFiles {
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as JUnit XML: a suite for each component and place
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the findings as SARIF 2.1.0, for code scanning
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write the report as one HTML file, for people: nothing in it is loaded from elsewhere
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also print the findings as annotations of a GitHub workflow
    #[arg(long)]
    github: bool,
}

impl ReportFiles {
    /// Ends a run: the last lines of its report, and the report in every form that was asked for.
    pub(super) fn conclude(&self, report: &Report, to: &mut dyn Write, paint: Paint) -> Done {
        write_summary(to, report, paint)?;
        if self.github {
            write!(to, "{}", github::annotations(report))?;
        }
        type Form = fn(&Report) -> String;
        let forms: [(&Option<PathBuf>, Form); 4] = [
            (&self.json, Report::json),
            (&self.junit, junit::xml),
            (&self.sarif, sarif::json),
            (&self.html, html::page),
        ];
        for (path, form) in forms {
            if let Some(path) = path {
                write_atomically(path, form(report).as_bytes())?;
            }
        }
        Ok(report.exit_code())
    }
}
