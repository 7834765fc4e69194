//! W&B's own file: a log as LevelDB writes it, of records as protocol buffers.

use std::io::{BufRead, Read};

use serde_json::{Map, Value as Json};

use crate::runs::formats::cells::Cells;
use crate::runs::formats::checksum;
use crate::runs::formats::literal;
use crate::runs::formats::protobuf::{Value, fields};
use crate::runs::formats::{Warnings, unreadable};
use crate::runs::recorder::Recorder;
use shakedown_core::value::error::Error;

/// The file is made of blocks; no chunk goes beyond one.
const BLOCK: u64 = 32 << 10;
/// `:W&B`, a number and a version; they are part of the first block.
const HEAD: u64 = 7;
/// Checksum, length and kind of a chunk.
const CHUNK_HEAD: usize = 7;
/// A longer record is no row of metrics.
const LONGEST_RECORD: usize = 16 << 20;

const HISTORY: u64 = 2;
const RUN: u64 = 17;

/// Reads all rows; the configuration of the run.
pub(super) fn read(
    source: &mut dyn BufRead,
    to: &mut Recorder,
    warnings: &mut Warnings,
) -> Result<Map<String, Json>, Error> {
    let mut log = Log { block: Vec::new(), at: 0, is_first: true, damaged: 0, is_cut: false };
    let (mut record, mut number) = (Vec::new(), 0);
    let mut config = Map::new();
    let mut cells = Cells::default();
    while log.next(source, &mut record)? {
        number += 1;
        for (field, value) in fields(&record) {
            match (field, value) {
                (HISTORY, Value::Bytes(history)) => {
                    row(history, &mut cells);
                    to.row(number, cells.iter());
                }
                (RUN, Value::Bytes(run)) => configuration(run, &mut config),
                _ => {}
            }
        }
    }
    warnings.cut(log.is_cut);
    if log.damaged > 0 {
        let damaged = log.damaged;
        warnings.0.push(format!("{damaged} records are left out: their checksums are wrong"));
    }
    Ok(config)
}

/// The log, of which one block is in memory.
struct Log {
    block: Vec<u8>,
    at: usize,
    is_first: bool,
    damaged: usize,
    is_cut: bool,
}

/// A chunk of the log.
enum Chunk<'a> {
    Full(&'a [u8]),
    First(&'a [u8]),
    Middle(&'a [u8]),
    Last(&'a [u8]),
    Damaged,
    End,
}

impl Log {
    /// Reads the next record; whether there is one.
    fn next(&mut self, source: &mut dyn BufRead, record: &mut Vec<u8>) -> Result<bool, Error> {
        let mut is_open = false;
        record.clear();
        loop {
            let (data, ends) = match self.chunk(source)? {
                Chunk::End => {
                    self.is_cut |= is_open;
                    return Ok(false);
                }
                Chunk::Damaged => {
                    is_open = false;
                    continue;
                }
                Chunk::Full(data) => {
                    record.clear();
                    (data, true)
                }
                Chunk::First(data) => {
                    record.clear();
                    is_open = true;
                    (data, false)
                }
                // Without its beginning a record is lost.
                Chunk::Middle(_) | Chunk::Last(_) if !is_open => continue,
                Chunk::Middle(data) => (data, false),
                Chunk::Last(data) => (data, true),
            };
            let room = LONGEST_RECORD.saturating_sub(record.len());
            record.extend_from_slice(&data[..data.len().min(room)]);
            if ends {
                return Ok(true);
            }
        }
    }

    fn chunk(&mut self, source: &mut dyn BufRead) -> Result<Chunk<'_>, Error> {
        if self.block.len().saturating_sub(self.at) < CHUNK_HEAD && !self.read_block(source)? {
            return Ok(Chunk::End);
        }
        let rest = &self.block[self.at..];
        let Some((head, rest)) = rest.split_at_checked(CHUNK_HEAD) else {
            self.is_cut = true;
            self.at = self.block.len();
            return Ok(Chunk::End);
        };
        let checksum = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let length = usize::from(u16::from_le_bytes([head[4], head[5]]));
        let kind = head[6];
        let is_short = (self.block.len() as u64) < BLOCK;
        let Some(data) = rest.get(..length) else {
            // It goes beyond the block: the file is cut there, or the length is wrong.
            self.is_cut |= is_short;
            self.damaged += usize::from(!is_short);
            self.at = self.block.len();
            return Ok(Chunk::Damaged);
        };
        self.at += CHUNK_HEAD + length;
        if kind == 0 && length == 0 {
            // The rest of a block that was reserved and not written.
            self.at = self.block.len();
            return Ok(Chunk::Damaged);
        }
        if !checksum::is_of_chunk(checksum, kind, data) {
            self.damaged += 1;
            return Ok(Chunk::Damaged);
        }
        Ok(match kind {
            1 => Chunk::Full(data),
            2 => Chunk::First(data),
            3 => Chunk::Middle(data),
            4 => Chunk::Last(data),
            _ => Chunk::Damaged,
        })
    }

    fn read_block(&mut self, source: &mut dyn BufRead) -> Result<bool, Error> {
        self.block.clear();
        let read = source.take(BLOCK).read_to_end(&mut self.block);
        read.map_err(|error| unreadable(&error))?;
        self.at = if std::mem::take(&mut self.is_first) { HEAD as usize } else { 0 };
        self.at = self.at.min(self.block.len());
        Ok(self.at < self.block.len())
    }
}

/// The numbers of a record of the history.
fn row(history: &[u8], cells: &mut Cells) {
    cells.clear();
    let (mut step, mut has_step) = (None, false);
    for (field, value) in fields(history) {
        match (field, value) {
            (1, Value::Bytes(one)) => {
                let Some((name, json)) = item(one) else { continue };
                has_step |= name == "_step";
                if let Some(leaf) = literal::leaf(json) {
                    cells.leaf(&name, &leaf);
                }
            }
            // The step of the record, where it is not among its items.
            (2, Value::Bytes(of)) => {
                step = fields(of).find_map(|(field, value)| match (field, value) {
                    (1, Value::Varint(step)) => Some(step.cast_signed()),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    if let Some(step) = step.filter(|_| !has_step && !cells.is_empty()) {
        cells.push("_step", step as f64, "");
    }
}

/// The name and the JSON of an item.
fn item(item: &[u8]) -> Option<(String, &str)> {
    let (mut key, mut nested, mut json) = ("", Vec::new(), None);
    for (field, value) in fields(item) {
        match field {
            1 => key = value.text()?,
            2 => nested.push(value.text()?),
            16 => json = value.text(),
            _ => {}
        }
    }
    let name = if nested.is_empty() { key.to_owned() } else { nested.join(".") };
    Some((name, json?))
}

/// What a record of the run says that it was started with.
fn configuration(run: &[u8], config: &mut Map<String, Json>) {
    let configs = fields(run).filter(|(field, _)| *field == 4).filter_map(|(_, one)| one.bytes());
    let updates = configs.flat_map(fields).filter(|(field, _)| *field == 1);
    for (name, json) in updates.filter_map(|(_, update)| item(update.bytes()?)) {
        if let Ok(value) = serde_json::from_str(json) {
            config.insert(name, value);
        }
    }
}
