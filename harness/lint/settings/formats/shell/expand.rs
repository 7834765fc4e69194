//! Words with their expansions made, from the variables that a script has assigned so far.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::arithmetic;
use super::lexer::{self, CONTINUED, Kind, Part, Word as Raw, is_name};
use crate::report::Location;
use crate::settings::formats::word::{OPEN, UNREAD, Word};

/// Expansions in each other beyond this are not followed.
const DEEPEST: usize = 24;

/// Longer texts are not put together.
const LONGEST: usize = 1 << 18;

/// No more text than this is put together for one script.
const MOST_TEXT: usize = 1 << 24;

/// More numbers than this are not counted up.
const MOST_NUMBERS: usize = 1000;

/// What a variable holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Variable {
    Text(Word),
    List(Vec<Word>),
    /// It may hold anything.
    Unknown,
}

/// All variables of a script.
#[derive(Debug, Default)]
pub(super) struct Variables {
    pub(super) all: HashMap<String, Variable>,
    /// Whether the words of a call stand for `$@`: inside of a function.
    pub(super) has_arguments: bool,
    /// Whether what is done now is done, once.
    pub(super) is_certain: bool,
    /// The folder of the file that is read.
    pub(super) folder: PathBuf,
    /// How much text has been put together.
    spent: usize,
}

/// What an expansion comes to.
enum Got {
    Text(Word),
    List(Vec<Word>),
    Unknown,
}

/// The words of which the last one is not whole yet.
struct Line {
    words: Vec<Word>,
    open: Word,
    /// Whether the last one is a word at all.
    is_word: bool,
}

impl Line {
    fn add(&mut self, mark: char) {
        self.is_word = true;
        self.open.text.push(mark);
    }
}

impl Variables {
    /// None yet, in a file of this folder.
    pub(super) fn new(folder: PathBuf) -> Variables {
        Variables { folder, ..Variables::default() }
    }

    /// Whether so much text has been put together that no more will be.
    fn is_spent(&mut self, bytes: usize) -> bool {
        self.spent = self.spent.saturating_add(bytes);
        self.spent > MOST_TEXT
    }

    /// The words that a word becomes.
    pub(super) fn words(&mut self, raw: &Raw, at: &Location) -> Vec<Word> {
        let open = Word { text: String::new(), at: at.clone() };
        let mut line = Line { words: Vec::new(), open, is_word: false };
        // Quotes around nothing are a word, but not around a list of nothing.
        let (mut is_quoted, mut has_list) = (false, false);
        for part in &raw.parts {
            match part {
                Part::Text { text, quoted } => {
                    is_quoted |= *quoted;
                    line.is_word |= !text.is_empty();
                    self.append(&mut line.open.text, text);
                }
                Part::Expansion { inside, kind, quoted } => {
                    let got = self.expansion(inside, *kind, at, 0);
                    has_list |= *quoted && matches!(got, Got::List(_));
                    let is_one = *quoted && !inside.contains(['@', '*']);
                    match (got, quoted) {
                        (Got::Unknown, _) => line.add(if is_one { UNREAD } else { OPEN }),
                        (Got::Text(word), true) => {
                            line.is_word = true;
                            self.append(&mut line.open.text, &word.text);
                        }
                        (Got::List(list), true) => self.splice(list, &mut line),
                        (Got::Text(word), false) => self.splice(split(&word), &mut line),
                        (Got::List(list), false) => {
                            let pieces = list.iter().flat_map(split).collect();
                            self.splice(pieces, &mut line);
                        }
                    }
                }
            }
        }
        if line.is_word || is_quoted && !has_list {
            line.words.push(line.open);
        }
        for word in line.words.iter_mut().filter(|word| word.text.contains(CONTINUED)) {
            word.text.retain(|c| c != CONTINUED);
        }
        line.words
    }

    /// Puts a list into a word: its first item goes on with what stands before it.
    fn splice(&mut self, list: Vec<Word>, line: &mut Line) {
        for (index, item) in list.into_iter().enumerate() {
            let is_spent = self.is_spent(item.text.len() + 64);
            if index > 0 {
                line.words.push(std::mem::replace(&mut line.open, item));
            } else {
                if !line.is_word {
                    line.open.at = item.at.clone();
                }
                self.append(&mut line.open.text, &item.text);
            }
            if is_spent {
                line.open.text = OPEN.to_string();
            }
            line.is_word = true;
        }
    }

    /// The text that a word becomes where it is not split.
    pub(super) fn text(&mut self, parts: &[Part], at: &Location, depth: usize) -> Word {
        let mut whole = String::new();
        for part in parts {
            match part {
                Part::Text { text, .. } => self.append(&mut whole, text),
                Part::Expansion { inside, kind, .. } => {
                    match self.expansion(inside, *kind, at, depth) {
                        Got::Text(word) => self.append(&mut whole, &word.text),
                        Got::List(list) => {
                            let texts: Vec<String> = list.into_iter().map(|one| one.text).collect();
                            self.append(&mut whole, &texts.join(" "));
                        }
                        Got::Unknown => whole.push(UNREAD),
                    }
                }
            }
        }
        Word { text: whole, at: at.clone() }
    }

    fn append(&mut self, text: &mut String, more: &str) {
        if text.len() + more.len() > LONGEST || self.is_spent(more.len()) {
            text.clear();
            text.push(UNREAD);
        } else {
            text.push_str(more);
        }
    }

    fn expansion(&mut self, inside: &str, kind: Kind, at: &Location, depth: usize) -> Got {
        if depth > DEEPEST || self.is_spent(inside.len()) {
            return Got::Unknown;
        }
        match kind {
            Kind::Variable => self.parameter(inside, at, depth),
            Kind::Command => {
                let text =
                    folder(inside, &self.folder).or_else(|| self.sequence(inside, at, depth));
                text.map_or(Got::Unknown, |text| Got::Text(Word { text, at: at.clone() }))
            }
            Kind::Arithmetic => {
                let text = self.text(&lexer::parts(inside, true), at, depth + 1).text;
                let value = arithmetic::evaluate(&text, &|name| match self.all.get(name) {
                    Some(Variable::Text(word)) => word.text.trim().parse().ok(),
                    _ => None,
                });
                value.map_or(Got::Unknown, |value| {
                    Got::Text(Word { text: value.to_string(), at: at.clone() })
                })
            }
        }
    }

    /// What `seq` prints.
    fn sequence(&mut self, command: &str, at: &Location, depth: usize) -> Option<String> {
        let arguments = command.trim().strip_prefix("seq ")?;
        let text = self.text(&lexer::parts(arguments, true), at, depth + 1).text;
        let numbers: Option<Vec<i64>> =
            text.split_whitespace().map(|word| word.parse().ok()).collect();
        let (first, step, last) = match numbers?[..] {
            [last] => (1, 1, last),
            [first, last] => (first, 1, last),
            [first, step, last] => (first, usize::try_from(step).ok()?, last),
            _ => return None,
        };
        if step == 0 || last.checked_sub(first)? / i64::try_from(step).ok()? > MOST_NUMBERS as i64 {
            return None;
        }
        let all: Vec<String> = (first..=last).step_by(step).map(|one| one.to_string()).collect();
        Some(all.join(" "))
    }

    /// What stands in `${..}`, or after `$`.
    fn parameter(&mut self, inside: &str, at: &Location, depth: usize) -> Got {
        let text = |text: String| Got::Text(Word { text, at: at.clone() });
        if let Some(name) = inside.strip_prefix('#').filter(|name| !name.is_empty()) {
            let name = name.trim_end_matches("[@]").trim_end_matches("[*]");
            return match self.all.get(name) {
                Some(Variable::List(list)) if inside.contains('[') => text(list.len().to_string()),
                Some(Variable::Text(word)) if word.is_read() => {
                    text(word.text.chars().count().to_string())
                }
                _ => Got::Unknown,
            };
        }
        let is_special = inside.starts_with(['@', '*']);
        let length = if is_special {
            1
        } else {
            let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
            inside.find(is_end).unwrap_or(inside.len())
        };
        let (name, mut rest) = inside.split_at(length);
        let mut index = None;
        if let Some(bracket) = rest.strip_prefix('[')
            && let Some((inner, behind)) = bracket.split_once(']')
        {
            index = Some(inner);
            rest = behind;
        }
        if name.is_empty() {
            return Got::Unknown;
        }
        let found = self.found(name, index, at);
        self.operated(name, found, rest, at, depth)
    }

    /// What a variable holds; none where nothing has been assigned to it.
    fn found(&self, name: &str, index: Option<&str>, at: &Location) -> Option<Got> {
        if matches!(name, "@" | "*") {
            return Some(if self.has_arguments { Got::Unknown } else { Got::List(Vec::new()) });
        }
        match (self.all.get(name)?, index) {
            (Variable::Unknown, _) => Some(Got::Unknown),
            (Variable::Text(word), None | Some("0" | "@" | "*")) => {
                Some(Got::Text(Word { at: word.at.clone(), ..word.clone() }))
            }
            (Variable::Text(_), Some(_)) => Some(Got::Unknown),
            (Variable::List(list), Some("@" | "*")) => Some(Got::List(list.clone())),
            (Variable::List(list), index) => {
                let number = index.unwrap_or("0").parse::<usize>().ok();
                let empty = Word { text: String::new(), at: at.clone() };
                let item = number.map(|at| list.get(at).cloned().unwrap_or(empty));
                Some(item.map_or(Got::Unknown, Got::Text))
            }
        }
    }

    /// The value after what follows the name: `:-default`, `##*/`.
    fn operated(
        &mut self,
        name: &str,
        found: Option<Got>,
        operation: &str,
        at: &Location,
        depth: usize,
    ) -> Got {
        let strict = operation.strip_prefix(':');
        let is_empty = match &found {
            None => true,
            Some(Got::Text(word)) => strict.is_some() && word.text.is_empty(),
            Some(Got::List(list)) => list.is_empty(),
            Some(Got::Unknown) => false,
        };
        let operation = strict.unwrap_or(operation);
        let mut characters = operation.chars();
        let (mark, other) = (characters.next(), characters.as_str());
        match (mark, found) {
            (None, Some(got)) => got,
            // They differ from one machine to the next, but always stand for the same folder.
            (None, None) if matches!(name, "HOME" | "PWD") => {
                Got::Text(Word { text: format!("${name}"), at: at.clone() })
            }
            (Some('0'..='9'), Some(got @ Got::List(_))) if matches!(name, "@" | "*") => got,
            (Some('-' | '='), _) if is_empty => {
                let value = self.text(&lexer::parts(other, false), at, depth + 1);
                if mark == Some('=') && is_name(name) {
                    let new = match self.is_certain {
                        true => Variable::Text(value.clone()),
                        false => Variable::Unknown,
                    };
                    self.all.insert(name.to_owned(), new);
                }
                Got::Text(value)
            }
            (Some('-' | '=' | '?'), Some(got)) => got,
            (Some('+'), Some(Got::Unknown)) => Got::Unknown,
            (Some('+'), _) if is_empty => Got::List(Vec::new()),
            (Some('+'), Some(got @ Got::List(_))) if other.contains("[@]") => got,
            (Some('+'), _) => Got::Text(self.text(&lexer::parts(other, false), at, depth + 1)),
            (Some('#' | '%'), Some(Got::Text(word))) if strict.is_none() => {
                without_path(&word, operation).map_or(Got::Unknown, Got::Text)
            }
            _ => Got::Unknown,
        }
    }
}

/// `##*/` is the last part of a path, `%/*` what stands before that.
fn without_path(word: &Word, operation: &str) -> Option<Word> {
    let text = match operation {
        _ if !word.is_read() => return None,
        "##*/" => word.text.rsplit('/').next()?,
        "%/*" => word.text.rsplit_once('/').map_or(&*word.text, |(before, _)| before),
        "%/" => word.text.strip_suffix('/').unwrap_or(&word.text),
        _ => return None,
    };
    Some(Word { text: text.to_owned(), at: word.at.clone() })
}

/// The words of a text, at blanks; each has its own line where the text has several.
fn split(word: &Word) -> Vec<Word> {
    let mut words = Vec::new();
    let mut line = word.at.line;
    let mut open = String::new();
    let mut finish = |open: &mut String, line: usize| {
        if !open.is_empty() {
            let text = std::mem::take(open).replace(UNREAD, &OPEN.to_string());
            words.push(Word { text, at: Location { line, ..word.at.clone() } });
        }
    };
    for c in word.text.chars() {
        match c {
            ' ' | '\t' | '\n' => {
                finish(&mut open, line);
                line += usize::from(c == '\n');
            }
            CONTINUED => line += 1,
            c => open.push(c),
        }
    }
    finish(&mut open, line);
    words
}

/// The folder of the script, where a command finds it out: `$(cd "$(dirname "$0")/.." && pwd)`.
fn folder(command: &str, own: &Path) -> Option<String> {
    if command.trim() == "pwd" {
        return Some("$PWD".to_owned());
    }
    let of_script = ["BASH_SOURCE", "$0", "${0}"].iter().any(|name| command.contains(name));
    let (_, behind) = command.split_once("dirname")?;
    if !of_script || command.contains("git ") {
        return None;
    }
    let up = behind.matches("dirname").count();
    // What follows the innermost of them, in the path that `cd` goes to.
    let path = if command.trim_start().starts_with("cd") {
        let inside = behind.split_once(')').map_or("", |(_, path)| path);
        let inside = inside.trim_start_matches([')', '"', ' ']);
        let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let end = inside.find(|c: char| !is_path(c)).unwrap_or(inside.len());
        if inside.starts_with('/') { &inside[..end] } else { "" }
    } else {
        ""
    };
    Some(format!("{}{}{path}", own.display(), "/..".repeat(up)))
}
