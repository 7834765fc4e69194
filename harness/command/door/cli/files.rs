//! Where a report goes besides the text on standard output.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Done, errors, output};
#[cfg(feature = "junit")]
use crate::render::junit;
use crate::render::{github, html, sarif};
use shakedown_core::value::error::Error;
use shakedown_engine::files::atomic::write_whole;
use shakedown_engine::report::text::{Paint, write_component, write_every_finding, write_summary};
use shakedown_engine::report::{ExitCode, Report};

/// The forms in which a report can be had.
#[derive(Args)]
pub(super) struct ReportFiles {
    /// Write the report as JSON; `-` for standard output, and the text goes to standard error
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as JUnit XML: a suite for each component and place
    #[arg(long, value_name = "FILE", value_parser = junit_file)]
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
    /// Print the findings of each bug one by one: every invariant that it breaks, with its case;
    /// of runs, configurations and data sets also which rules were not judged, and why
    #[arg(long, short)]
    verbose: bool,
}

/// The file for JUnit, where this build can write it: before anything runs.
fn junit_file(path: &str) -> Result<PathBuf, &'static str> {
    match cfg!(feature = "junit") {
        true => Ok(path.into()),
        false => Err("this build cannot write JUnit: build with `--features junit`"),
    }
}

/// A form of a report that is written into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    #[cfg(feature = "junit")]
    Junit,
    Sarif,
    Html,
}

/// What ends a run: a report of components, or of what surrounds them.
pub(super) trait Told {
    /// Writes it as text; with all that is left out otherwise, where `verbose`.
    fn text(&self, to: &mut dyn Write, paint: Paint, verbose: bool) -> io::Result<()>;

    /// Its annotations of a GitHub workflow.
    fn annotations(&self) -> String;

    /// It in another form.
    fn form(&self, form: Form) -> String;

    /// How the command ends.
    fn exit_code(&self) -> ExitCode;
}

/// A report of components, each followed by its table where there is one.
struct WithTables<'a> {
    report: &'a Report,
    tables: &'a [String],
}

impl Told for WithTables<'_> {
    fn text(&self, to: &mut dyn Write, paint: Paint, verbose: bool) -> io::Result<()> {
        for (index, component) in self.report.components.iter().enumerate() {
            match verbose {
                true => write_every_finding(to, component, paint)?,
                false => write_component(to, component, paint)?,
            }
            write!(to, "{}", self.tables.get(index).map_or("", |table| table))?;
        }
        write_summary(to, self.report, paint)
    }

    fn annotations(&self) -> String {
        github::annotations(self.report)
    }

    fn form(&self, form: Form) -> String {
        match form {
            Form::Json => self.report.json(),
            #[cfg(feature = "junit")]
            Form::Junit => junit::xml(self.report),
            Form::Sarif => sarif::json(self.report),
            Form::Html => html::page(self.report),
        }
    }

    fn exit_code(&self) -> ExitCode {
        self.report.exit_code()
    }
}

impl ReportFiles {
    /// Ends a run: its report as text, each component followed by its table where there is one, and
    /// in every form that was asked for.
    pub(super) fn conclude(&self, report: &Report, tables: &[String]) -> Done {
        self.tell(&WithTables { report, tables })
    }

    /// Ends a run with what it tells. What cannot be written keeps nothing else from being.
    pub(super) fn tell(&self, told: &dyn Told) -> Done {
        let is_printed = |path: &Path| path == Path::new("-");
        let (mut to, paint) = match &self.json {
            Some(path) if is_printed(path) => errors(),
            _ => output(),
        };
        let text = (|| {
            told.text(&mut to, paint, self.verbose)?;
            if self.github {
                write!(to, "{}", told.annotations())?;
            }
            to.flush()
        })();
        let forms = [
            (&self.json, Form::Json),
            #[cfg(feature = "junit")]
            (&self.junit, Form::Junit),
            (&self.sarif, Form::Sarif),
            (&self.html, Form::Html),
        ];
        let asked = forms.iter().filter_map(|(path, form)| Some((path.as_ref()?, *form)));
        let write = |path: &PathBuf, text: String| match is_printed(path) {
            true => output().0.write_all(text.as_bytes()).map_err(|e| Error::io("write", path, &e)),
            false => write_whole(path, text.as_bytes()),
        };
        let written: Vec<Result<(), Error>> =
            asked.map(|(path, form)| write(path, told.form(form))).collect();
        written.into_iter().collect::<Result<(), Error>>()?;
        text?;
        Ok(told.exit_code())
    }
}
