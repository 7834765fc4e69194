//! Which format a log has, by how it begins.

use memchr::memmem;

use crate::runs::formats::OwnNames;
use crate::runs::formats::checksum;
use crate::runs::formats::csv;
use crate::runs::formats::lines::Lines;
use crate::runs::formats::literal::{Dialect, is_object};
use shakedown_core::value::error::Error;

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Format {
    /// W&B's own file.
    Wandb,
    /// A table by columns.
    Parquet,
    /// TensorBoard's events.
    TensorBoard,
    /// The state of a trainer, with `log_history`.
    TrainerState,
    /// A list of objects.
    JsonList,
    /// One object a line.
    JsonLines,
    /// One object.
    Summary,
    /// A table by rows.
    Csv,
    /// What was printed.
    Console,
}

impl Format {
    /// Those whose readers are our own.
    pub(super) const READ_BY_US: [Format; 8] = [
        Format::Wandb,
        Format::TensorBoard,
        Format::TrainerState,
        Format::JsonList,
        Format::JsonLines,
        Format::Summary,
        Format::Csv,
        Format::Console,
    ];

    /// What people call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Wandb => "W&B",
            Format::Parquet => "parquet",
            Format::TensorBoard => "TensorBoard",
            Format::TrainerState => "trainer state",
            Format::JsonList => "JSON list",
            Format::JsonLines => "JSON lines",
            Format::Summary => "summary",
            Format::Csv => "CSV",
            Format::Console => "console",
        }
    }

    /// Whether it is a text, at whose lines a finding can point.
    pub(super) fn has_lines(self) -> bool {
        !matches!(self, Format::Wandb | Format::Parquet | Format::TensorBoard)
    }
}

/// The format of a log that begins with `head`.
///
/// # Errors
/// It is empty, or a text in another encoding.
pub(super) fn format(head: &[u8], is_whole: bool, own_names: &OwnNames) -> Result<Format, Error> {
    if head.is_empty() {
        return Err(Error::new("is empty"));
    }
    if head.starts_with(b":W&B") {
        return Ok(Format::Wandb);
    }
    if head.starts_with(b"PAR1") {
        return Ok(Format::Parquet);
    }
    if is_record(head) {
        return Ok(Format::TensorBoard);
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Err(Error::new("is text in UTF-16: save it as UTF-8"));
    }
    Ok(of_text(head, is_whole, own_names))
}

/// Whether it begins with a length and the checksum of that.
fn is_record(head: &[u8]) -> bool {
    let sum = head.get(8..12).and_then(|sum| sum.try_into().ok()).map(u32::from_le_bytes);
    sum.is_some_and(|sum| sum == checksum::masked(&head[..8]))
}

fn of_text(head: &[u8], is_whole: bool, own_names: &OwnNames) -> Format {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match text.first() {
        Some(b'{') if has_history(text) => Format::TrainerState,
        Some(b'{') => of_object(head, is_whole),
        Some(b'[') if text[1..].trim_ascii_start().starts_with(b"{") => Format::JsonList,
        _ => {
            let mut source = head;
            let mut lines = Lines::new(&mut source);
            match lines.next() {
                Ok(Some(line)) if csv::separator(&line.text, own_names).is_some() => Format::Csv,
                _ => Format::Console,
            }
        }
    }
}

fn has_history(text: &[u8]) -> bool {
    let key = b"\"log_history\"";
    memmem::find_iter(text, key).any(|at| {
        let after = text[at + key.len()..].trim_ascii_start().strip_prefix(b":");
        after.is_some_and(|after| after.trim_ascii_start().starts_with(b"["))
    })
}

/// Text that begins with a brace.
fn of_object(head: &[u8], is_whole: bool) -> Format {
    let mut source = head;
    let mut lines = Lines::new(&mut source);
    let mut next = || match lines.next() {
        Ok(Some(line)) => {
            let is_all = line.is_ended || is_whole;
            Some((line.text.into_owned(), line.is_ended, is_all))
        }
        _ => None,
    };
    let Some((first, ..)) = next().filter(|(first, _, is_all)| *is_all && is_json(first)) else {
        // An object over several lines, or one line that is longer than what was looked at.
        let inner = head.trim_ascii_start().strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let inner = inner.trim_ascii_start().get(1..).unwrap_or_default().trim_ascii_start();
        let has_lines = memchr::memchr(b'\n', head).is_some();
        return match inner.first() {
            Some(b'"' | b'}') if has_lines || is_whole => Format::Summary,
            Some(b'"') => Format::JsonLines,
            _ => Format::Console,
        };
    };
    match next() {
        None if is_whole => Format::Summary,
        None => Format::JsonLines,
        Some((second, is_ended, _)) => {
            let may_be_cut = !is_ended && second.trim_start().starts_with('{');
            let is_row = may_be_cut || is_json(&second);
            if is_row && is_json(&first) { Format::JsonLines } else { Format::Console }
        }
    }
}

fn is_json(text: &str) -> bool {
    is_object(text.trim(), Dialect::Json)
}

/// What is said of a file of no known format.
pub(super) fn unknown_format(head: &[u8]) -> Error {
    let begins = String::from_utf8_lossy(&head[..head.len().min(4)]).into_owned();
    let found = if head.contains(&0) || begins.contains(char::REPLACEMENT_CHARACTER) {
        let bytes: Vec<String> = head.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        format!("binary data that begins with {}", bytes.join(" "))
    } else {
        "text without a row of metrics".to_owned()
    };
    Error::new(format!(
        "of no known format: {found}; known are W&B (.wandb), parquet, TensorBoard, \
         trainer_state.json, JSON lines, a JSON object, CSV with a column `step`, and the console \
         of a library"
    ))
}
