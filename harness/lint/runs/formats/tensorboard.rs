//! TensorBoard: records of a length, its checksum, an `Event` and the checksum of that. Scalars of
//! one step are one row.

use std::io::{BufRead, Read};

use crate::runs::formats::checksum;
use crate::runs::formats::protobuf::{Value, fields};
use crate::runs::formats::{Warnings, unreadable};
use crate::runs::recorder::Recorder;
use crate::runs::row::Cell;
use shakedown_core::value::error::Error;

/// A longer record is a picture or a graph.
const LONGEST_RECORD: u64 = 16 << 20;

/// Reads all events.
pub(super) fn read(
    source: &mut dyn BufRead,
    to: &mut Recorder,
    warnings: &mut Warnings,
) -> Result<(), Error> {
    let (mut head, mut data) = (Vec::new(), Vec::new());
    let mut damaged = 0;
    for record in 1.. {
        if !fill(source, 12, &mut head)? {
            warnings.cut(!head.is_empty());
            break;
        }
        let (length, sum) = head.split_at(8);
        if sum != checksum::masked(length).to_le_bytes() {
            warnings.0.push(format!("record {record} is damaged: what follows cannot be read"));
            break;
        }
        let length = length.iter().rev().fold(0, |length, byte| length << 8 | u64::from(*byte));
        if length > LONGEST_RECORD {
            let mut skipped = (&mut *source).take(length.saturating_add(4));
            let skip = std::io::copy(&mut skipped, &mut std::io::sink());
            skip.map_err(|error| unreadable(&error))?;
            continue;
        }
        if !fill(source, length + 4, &mut data)? {
            warnings.cut(true);
            break;
        }
        let (event, sum) = data.split_at(length as usize);
        if sum == checksum::masked(event).to_le_bytes() {
            take(event, record, to);
        } else {
            damaged += 1;
        }
    }
    if damaged > 0 {
        warnings.0.push(format!("{damaged} records are left out: their checksums are wrong"));
    }
    Ok(())
}

/// Reads so many bytes; whether they are there.
fn fill(source: &mut dyn BufRead, length: u64, into: &mut Vec<u8>) -> Result<bool, Error> {
    into.clear();
    let read = source.take(length).read_to_end(into).map_err(|error| unreadable(&error))?;
    Ok(read as u64 == length)
}

/// The scalars of an event.
fn take(event: &[u8], record: usize, to: &mut Recorder) {
    let mut step = 0;
    let mut cells = Vec::new();
    for (field, value) in fields(event) {
        match (field, value) {
            (2, Value::Varint(at)) => step = at.cast_signed(),
            (5, Value::Bytes(summary)) => {
                let values = fields(summary).filter(|(field, _)| *field == 1);
                cells.extend(values.filter_map(|(_, value)| scalar(value.bytes()?)));
            }
            _ => {}
        }
    }
    if !cells.is_empty() {
        let step = ("step", Cell::from(step as f64));
        to.row(record, std::iter::once(step).chain(cells));
    }
}

/// The tag and the number of a value, where it is one.
fn scalar(value: &[u8]) -> Option<(&str, Cell)> {
    let (mut tag, mut number) = (None, None);
    for (field, value) in fields(value) {
        match (field, value) {
            (1, value) => tag = value.text(),
            (2, Value::Four(bytes)) => number = Some(f32::from_le_bytes(bytes).into()),
            (8, Value::Bytes(tensor)) => number = of_tensor(tensor),
            _ => {}
        }
    }
    Some((tag?, Cell::from(number?)))
}

/// The number of a tensor that has one, as `float` or `double`.
fn of_tensor(tensor: &[u8]) -> Option<f64> {
    let float = |bytes: &[u8]| Some(f32::from_le_bytes(bytes.try_into().ok()?).into());
    let double = |bytes: &[u8]| Some(f64::from_le_bytes(bytes.try_into().ok()?));
    let (mut kind, mut number) = (None, None);
    for (field, value) in fields(tensor) {
        let found = match (field, value) {
            (1, Value::Varint(of)) => {
                kind = Some(of);
                None
            }
            (5, Value::Four(bytes)) => float(&bytes),
            (6, Value::Eight(bytes)) => double(&bytes),
            (5, Value::Bytes(bytes)) => float(bytes),
            (6, Value::Bytes(bytes)) => double(bytes),
            (4, Value::Bytes(bytes)) => float(bytes).or_else(|| double(bytes)),
            _ => None,
        };
        number = found.or(number);
    }
    number.filter(|_| matches!(kind, Some(1 | 2)))
}
