//! Where a report goes besides the text on standard output.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Done, errors, output};
use crate::files::atomic::write_whole;
use crate::render::text::{write_component, write_every_finding, write_summary};
use crate::render::{github, html, junit, sarif};
use crate::report::Report;
use crate::value::error::Error;

/// The forms in which a report can be had.
#[derive(Args)]
pub(super) struct ReportFiles {
    /// Write the report as JSON; `-` for standard output, and the text goes to standard error
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
    /// Print the findings of each bug one by one: every invariant that it breaks, with its case
    #[arg(long, short)]
    verbose: bool,
}

impl ReportFiles {
    /// Ends a run: its report as text, each component followed by its table where there is one, and
    /// in every form that was asked for. What cannot be written keeps nothing else from being.
    pub(super) fn conclude(&self, report: &Report, tables: &[String]) -> Done {
        let is_printed = |path: &Path| path == Path::new("-");
        let (mut to, paint) = match &self.json {
            Some(path) if is_printed(path) => errors(),
            _ => output(),
        };
        let text = (|| {
            for (index, component) in report.components.iter().enumerate() {
                match self.verbose {
                    true => write_every_finding(&mut to, component, paint)?,
                    false => write_component(&mut to, component, paint)?,
                }
                write!(to, "{}", tables.get(index).map_or("", |table| table))?;
            }
            write_summary(&mut to, report, paint)?;
            if self.github {
                write!(to, "{}", github::annotations(report))?;
            }
            to.flush()
        })();
        type Form = fn(&Report) -> String;
        let forms: [(&Option<PathBuf>, Form); 4] = [
            (&self.json, Report::json),
            (&self.junit, junit::xml),
            (&self.sarif, sarif::json),
            (&self.html, html::page),
        ];
        let asked = forms.iter().filter_map(|(path, form)| Some((path.as_ref()?, form)));
        let write = |path: &PathBuf, text: String| match is_printed(path) {
            true => output().0.write_all(text.as_bytes()).map_err(|e| Error::io("write", path, &e)),
            false => write_whole(path, text.as_bytes()),
        };
        let written: Vec<Result<(), Error>> =
            asked.map(|(path, form)| write(path, form(report))).collect();
        written.into_iter().collect::<Result<(), Error>>()?;
        text?;
        Ok(report.exit_code())
    }
}
