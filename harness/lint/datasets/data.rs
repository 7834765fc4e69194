//! A data set, read and as rules see it.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::datasets::columns::{self, Columns};
use crate::datasets::formats::{self, Item};
use crate::datasets::hits::{Hits, Place};
use crate::datasets::known::{CountTokens, Known};
use crate::datasets::prompt;
use crate::datasets::seen::Seen;
use crate::report::{Location, Severity};
use crate::rules::Firing;
use crate::settings::{Library, Settings};
use shakedown_core::value::error::Error;
use shakedown_core::value::text::count;

/// How a data set is to be read.
#[derive(Clone, Copy, Default)]
pub struct Reading<'a> {
    /// A data set for evaluation, whose prompts must not be in this one.
    pub eval: Option<&'a Path>,
    /// The column of the prompt, nested ones with dots; by default what the configuration says,
    /// else the usual names.
    pub prompt: Option<&'a str>,
    /// The column of the answer, likewise.
    pub answer: Option<&'a str>,
    /// What training is started with.
    pub settings: Option<&'a Settings>,
    /// The model's tokenizer; without it lengths are guessed.
    pub count_tokens: Option<CountTokens<'a>>,
    /// Whether findings show the beginning of a text.
    pub shows_text: bool,
}

/// What a reward function gave for a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The row, counted from 1.
    pub row: u64,
    /// The score of the gold answer in the template.
    pub gold: f64,
    /// The score of a completion of no characters.
    pub empty: f64,
}

/// A row for a reward function.
#[derive(Clone, Debug, PartialEq)]
pub struct Gold {
    /// Its number, or its line, counted from 1.
    pub row: u64,
    /// What is asked.
    pub prompt: String,
    /// The right answer.
    pub answer: String,
}

/// A data set, as rules see it.
#[derive(Debug, Default)]
pub struct Dataset {
    /// What people call it: its path.
    pub name: String,
    /// The files that it was read from.
    pub files: Vec<PathBuf>,
    /// How they are written: `JSON lines`.
    pub format: String,
    /// The library that it is for, where that is known.
    pub library: Option<Library>,
    /// What training is started with, where that is known.
    pub settings: Option<Settings>,
    /// The tags or words that the template of the reward function asks for: `<answer>`. The command
    /// fills this in from a manifest.
    pub tags: Option<Vec<String>>,
    /// What the reward function gave for some rows. The command fills this in from a manifest.
    pub scored: Option<Vec<Scored>>,
    /// What a reader should know besides.
    pub warnings: Vec<String>,
    pub(super) seen: Seen,
    pub(super) limit: Option<u64>,
    pub(super) has_tokenizer: bool,
    pub(super) has_lines: bool,
    pub(super) eval: Option<Overlap>,
}

/// What an evaluation set shares with this one.
#[derive(Debug, Default)]
pub(super) struct Overlap {
    pub(super) rows: u64,
    pub(super) shared: Hits,
    pub(super) file: PathBuf,
    pub(super) has_lines: bool,
}

/// Reads a data set of one file or several.
///
/// # Errors
/// A file cannot be read, has an unknown format or no row that is an object.
pub fn read(files: &[PathBuf], reading: &Reading<'_>) -> Result<Dataset, Error> {
    let Some(first) = files.first() else { return Err(Error::new("expected a file")) };
    let known = Known::new(reading);
    let mut seen = Seen::new(columns_of(reading));
    let mut formats = Vec::new();
    for (file, path) in files.iter().enumerate() {
        let mut take = |line, item| seen.take(Place { file, line }, item, &known);
        formats.push(formats::read(path, &mut take)?);
    }
    seen.settle(&known);
    check_readable(&seen).map_err(|error| match seen.unreadable.first.first() {
        Some(place) => error.at(&files[place.file]).line(place.line as usize, 1),
        None => error.at(first),
    })?;
    let eval = reading.eval.map(|path| overlap(path, &seen)).transpose()?;
    let format = formats[0];
    Ok(Dataset {
        name: first.display().to_string(),
        files: files.to_vec(),
        format: format.name().to_owned(),
        has_lines: formats.iter().all(|format| format.has_lines()),
        eval,
        ..Dataset::new(seen, &known, reading)
    })
}

/// Judges rows that are in memory. An evaluation set cannot be given by its rows.
///
/// # Errors
/// No row is an object, or the evaluation set cannot be read.
pub fn from_rows(
    rows: impl IntoIterator<Item = Json>,
    reading: &Reading<'_>,
) -> Result<Dataset, Error> {
    let known = Known::new(reading);
    let mut seen = Seen::new(columns_of(reading));
    for (row, line) in rows.into_iter().zip(1..) {
        seen.take(Place { file: 0, line }, Item::Row(row), &known);
    }
    seen.settle(&known);
    check_readable(&seen)?;
    let eval = reading.eval.map(|path| overlap(path, &seen)).transpose()?;
    let (name, format) = ("rows".to_owned(), "rows".to_owned());
    Ok(Dataset { name, format, eval, ..Dataset::new(seen, &known, reading) })
}

fn columns_of(reading: &Reading<'_>) -> Columns {
    let given = Columns::given(reading.settings);
    let prompt = reading.prompt.map(str::to_owned);
    Columns {
        is_prompt_given: prompt.is_some() || given.is_prompt_given,
        prompt: prompt.or(given.prompt.clone()),
        answer: reading.answer.map(str::to_owned).or(given.answer.clone()),
        ..given
    }
}

fn check_readable(seen: &Seen) -> Result<(), Error> {
    if seen.rows == 0 {
        return Err(Error::new("no rows"));
    }
    if seen.unreadable.count + seen.no_object.count < seen.rows {
        return Ok(());
    }
    let why = seen.first_reason.as_deref().unwrap_or("no row is an object");
    Err(Error::new(format!("expected JSON objects, one a line, or parquet: {why}")))
}

fn overlap(path: &Path, seen: &Seen) -> Result<Overlap, Error> {
    let mut overlap = Overlap { file: path.to_owned(), ..Overlap::default() };
    let mut take = |line, item| {
        if let Item::Row(Json::Object(row)) = item {
            overlap.rows += 1;
            let is_shared =
                seen.identity_of(&row).is_some_and(|prompt| seen.identity.knows(prompt));
            overlap.shared.add_if(is_shared, Place { file: 0, line });
        }
    };
    let format = formats::read(path, &mut take)?;
    match overlap.rows {
        0 => Err(Error::new("no row is an object").at(path)),
        _ => Ok(Overlap { has_lines: format.has_lines(), ..overlap }),
    }
}

impl<'a> Known<'a> {
    pub(super) fn new(reading: &Reading<'a>) -> Known<'a> {
        Known {
            limit: reading.settings.and_then(prompt_limit),
            count_tokens: reading.count_tokens,
            shows_text: reading.shows_text,
        }
    }
}

/// How many tokens a prompt may have: what is set, else what the completion leaves of the context.
fn prompt_limit(settings: &Settings) -> Option<u64> {
    let number = |id| settings.number(id).filter(|number| *number >= 1.0);
    let of_context = || {
        let context = number("length.context")?;
        Some(context - number("length.completion").filter(|part| *part < context).unwrap_or(0.0))
    };
    number("length.prompt").or_else(of_context).map(|limit| limit as u64)
}

impl Dataset {
    pub(super) fn new(seen: Seen, known: &Known<'_>, reading: &Reading<'_>) -> Dataset {
        let of_settings = reading.settings.and_then(|settings| settings.library);
        let is_verl = seen.columns.answer.as_deref() == Some("reward_model.ground_truth");
        Dataset {
            library: of_settings.or(is_verl.then_some(Library::Verl)),
            settings: reading.settings.cloned(),
            limit: known.limit,
            has_tokenizer: reading.count_tokens.is_some(),
            seen,
            ..Dataset::default()
        }
    }

    /// The first rows that have a prompt and an answer in text, read once more.
    ///
    /// # Errors
    /// Its first file cannot be read any more.
    pub fn gold(&self, most: usize) -> Result<Vec<Gold>, Error> {
        let mut gold = Vec::new();
        let Some(file) = self.files.first() else { return Ok(gold) };
        let mut take = |row, item| {
            if let Item::Row(Json::Object(cells)) = item
                && gold.len() < most
            {
                let prompt = columns::cell(&cells, self.prompt_column());
                let answer = columns::cell(&cells, self.answer_column()).and_then(Json::as_str);
                if let (Some(prompt), Some(answer)) = (prompt, answer) {
                    let (prompt, answer) = (prompt::Prompt::new(prompt).asked(), answer.to_owned());
                    gold.push(Gold { row, prompt, answer });
                }
            }
        };
        formats::read(file, &mut take)?;
        Ok(gold)
    }

    /// How many rows it has, bad ones included.
    pub fn rows(&self) -> u64 {
        self.seen.rows
    }

    /// Which columns were read.
    pub fn columns(&self) -> &Columns {
        &self.seen.columns
    }

    /// `3 rows (lines 4, 9 and 12)`.
    pub(super) fn rows_of(&self, hits: &Hits) -> String {
        let places: Vec<String> = hits.first.iter().map(|place| self.place(*place)).collect();
        let sample = hits.sample.as_deref().map(shakedown_core::value::text::quoted);
        let sample = sample.map_or(String::new(), |sample| format!(": {sample}"));
        let line = if self.has_lines { "line" } else { "row" };
        format!("{} ({}{sample})", count(hits.count, "row"), listed(&places, hits.count, line))
    }

    pub(super) fn place(&self, place: Place) -> String {
        match self.files.get(place.file).and_then(|file| file.file_name()) {
            Some(name) if self.files.len() > 1 => {
                format!("{} of {}", place.line, name.to_string_lossy())
            }
            _ => place.line.to_string(),
        }
    }

    /// Where the first of some rows stands.
    pub(super) fn location(&self, hits: &Hits) -> Option<Location> {
        let place = hits.first.first().filter(|_| self.has_lines)?;
        Some(Location::new(self.files.get(place.file)?, place.line as usize))
    }

    /// A finding about some rows.
    pub(super) fn firing(
        &self,
        severity: Severity,
        hits: &Hits,
        column: &str,
        found: String,
    ) -> Firing {
        Firing::new(severity, found).at(self.location(hits)).column(
            column,
            "rows",
            hits.count as f64,
            None,
        )
    }

    /// The name of the column of the prompt, for findings.
    pub(super) fn prompt_column(&self) -> &str {
        self.seen.columns.prompt.as_deref().unwrap_or("prompt")
    }

    /// The name of the column of the answer, for findings.
    pub(super) fn answer_column(&self) -> &str {
        self.seen.columns.answer.as_deref().unwrap_or("answer")
    }

    /// A share of the rows.
    pub(super) fn share(&self, count: u64) -> f64 {
        count as f64 / self.seen.rows.max(1) as f64
    }
}

/// `lines 4, 9 and 12`, `lines 4, 9, …`.
pub(super) fn listed(places: &[String], count: u64, line: &str) -> String {
    match places {
        [] => format!("no {line}"),
        [one] if count == 1 => format!("{line} {one}"),
        [rest @ .., last] if count == places.len() as u64 => {
            format!("{line}s {} and {last}", rest.join(", "))
        }
        some => format!("{line}s {}, …", some.join(", ")),
    }
}

/// A share as people write it: `1.2 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", (share * 1000.0).round() / 10.0)
}
