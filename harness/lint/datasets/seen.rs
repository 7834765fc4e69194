//! One pass over the rows: what the rules need is counted, nothing else is kept.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::answers::Answers;
use super::columns::{Cells, Columns, SOURCES, cell};
use super::formats::Item;
use super::hits::{Hits, Place};
use super::identity::Identity;
use super::known::Known;
use super::pairs::Pairs;
use super::prompt::Prompt;
use super::prompts::Prompts;
use super::scores;
use super::text::{Hash, shown_name};

/// From so many rows the columns are guessed.
const FIRST_ROWS: usize = 16;

/// More names than this are not listed.
const MOST_NAMES: usize = 64;

/// What was seen of a data set.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) rows: u64,
    pub(super) columns: Columns,
    /// Rows of the beginning, from which the columns are guessed.
    waiting: Vec<(Place, Cells)>,
    has_columns: bool,
    pub(super) names: BTreeSet<String>,
    /// What is no JSON, or too long.
    pub(super) unreadable: Hits,
    pub(super) first_reason: Option<String>,
    /// JSON, but no object.
    pub(super) no_object: Hits,
    /// By column: rows in which it is of another type than before.
    pub(super) other_type: BTreeMap<String, Hits>,
    types: BTreeMap<String, &'static str>,
    pub(super) prompts: Prompts,
    pub(super) answers: Answers,
    pub(super) identity: Identity,
    pub(super) pairs: Pairs,
    /// By name: the rows of a source that verl has no score for.
    pub(super) unscored: BTreeMap<String, Hits>,
    pub(super) sources: u64,
}

impl Seen {
    pub(super) fn new(columns: Columns) -> Seen {
        Seen { columns, ..Seen::default() }
    }

    pub(super) fn take(&mut self, place: Place, item: Item, known: &Known<'_>) {
        self.rows += 1;
        match item {
            Item::Row(Json::Object(row)) if self.has_columns => self.row(&row, place, known),
            Item::Row(Json::Object(row)) => {
                self.waiting.push((place, row));
                if self.waiting.len() >= FIRST_ROWS {
                    self.settle(known);
                }
            }
            Item::Row(_) => self.no_object.add(place),
            Item::Bad(why) => {
                self.unreadable.add(place);
                self.first_reason.get_or_insert(why);
            }
        }
    }

    /// Chooses the columns, and takes the rows that waited for it.
    pub(super) fn settle(&mut self, known: &Known<'_>) {
        if self.has_columns {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let rows: Vec<&Cells> = waiting.iter().map(|(_, row)| row).collect();
        self.columns = std::mem::take(&mut self.columns).completed(&rows);
        self.has_columns = true;
        for (place, row) in &waiting {
            self.row(row, *place, known);
        }
    }

    fn row(&mut self, row: &Cells, place: Place, known: &Known<'_>) {
        let columns = self.columns.clone();
        self.names(row);
        self.types(row, &columns, place);
        let source = part_of(row);
        let value = columns.prompt.as_deref().and_then(|name| cell(row, name));
        let prompt = value.map(|value| read(value, &columns));
        match &prompt {
            Some(prompt) => self.prompts.take(prompt, source, place, known),
            None => self.prompts.missing.add(place),
        }
        let answer = columns.answer.as_deref().and_then(|name| {
            self.answers.take(row, name, prompt.as_ref(), source, place, known.shows_text)
        });
        if let Some(prompt) = prompt.filter(|prompt| !prompt.is_blank()) {
            let identity = prompt.identity(row);
            self.identity.take(identity, whole(row, identity), answer, place);
        }
        self.pairs.take(row, value.is_some(), place, known.shows_text);
        self.source(row, &columns, place);
    }

    fn names(&mut self, row: &Cells) {
        for name in row.keys() {
            if self.names.len() < MOST_NAMES && !self.names.contains(name) {
                self.names.insert(shakedown_core::value::error::cut(name));
            }
        }
    }

    /// What training reads must be of one type; whole and broken numbers are one.
    fn types(&mut self, row: &Cells, columns: &Columns, place: Place) {
        let own = [columns.answer.as_deref(), columns.source.as_deref()];
        for name in own.into_iter().flatten().chain(["chosen", "rejected"]) {
            let Some(value) = cell(row, name) else { continue };
            let kind = kind(value);
            match self.types.get(name) {
                None => {
                    self.types.insert(name.to_owned(), kind);
                }
                Some(first) if *first != kind => {
                    self.other_type.entry(name.to_owned()).or_default().add(place);
                }
                Some(_) => {}
            }
        }
    }

    fn source(&mut self, row: &Cells, columns: &Columns, place: Place) {
        let source = columns.source.as_deref().and_then(|name| cell(row, name)?.as_str());
        let Some(source) = source else { return };
        let by_model = cell(row, "reward_model.style").is_some_and(|style| style == "model");
        self.sources += 1;
        if !scores::is_scored(source) && !by_model {
            let name = shown_name(source);
            if self.unscored.len() < MOST_NAMES || self.unscored.contains_key(&name) {
                self.unscored.entry(name).or_default().add(place);
            }
        }
    }

    /// Which prompt a row asks, for another file to be held against this one.
    pub(super) fn identity_of(&self, row: &Cells) -> Option<Hash> {
        let prompt = read(cell(row, self.columns.prompt.as_deref()?)?, &self.columns);
        Some(prompt.identity(row)).filter(|_| !prompt.is_blank())
    }
}

/// The prompt of a row. `messages` are often a whole conversation, whose last turn is the answer.
fn read<'a>(value: &'a Json, columns: &Columns) -> Prompt<'a> {
    let mut prompt = Prompt::new(value);
    if columns.prompt.as_deref() == Some("messages") && !columns.is_prompt_given {
        let is_last = prompt.messages.len() > 1
            && prompt.messages.last().is_some_and(|last| last.role == Some("assistant"));
        prompt.messages.truncate(prompt.messages.len() - usize::from(is_last));
    }
    prompt
}

/// The part of the data set that a row is of.
fn part_of(row: &Cells) -> Hash {
    let name = SOURCES.iter().find_map(|name| cell(row, name)?.as_str());
    name.map_or(Hash::EMPTY, |name| Hash::EMPTY.bytes(name.as_bytes()))
}

/// Which row it is, where one prompt has several: pairs, and completions with their labels.
fn whole(row: &Cells, prompt: Hash) -> Option<Hash> {
    let names = ["chosen", "rejected", "completion", "response"];
    let values = names.iter().filter_map(|name| cell(row, name));
    let hash = values.fold(prompt, |hash, value| hash.bytes(value.to_string().as_bytes()));
    Some(hash).filter(|hash| *hash != prompt)
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a truth value",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}
