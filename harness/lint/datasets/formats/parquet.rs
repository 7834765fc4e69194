//! Parquet, row by row; nested columns are objects and lists as in JSON.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::data_type::AsBytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value as Json};

use super::{Item, Take};
use crate::datasets::text::Hash;
use shakedown_core::value::error::Error;

pub(super) fn read(file: File, take: Take<'_>) -> Result<(), Error> {
    // The reader trusts the lengths that a file declares; a damaged file must not end the program.
    let read = catch_unwind(AssertUnwindSafe(|| rows(file, take)));
    read.unwrap_or_else(|_| Err(Error::new("a damaged parquet file")))
}

fn rows(file: File, take: Take<'_>) -> Result<(), Error> {
    let cannot = |error| Error::new(format!("cannot read this parquet file: {error}"));
    let reader = SerializedFileReader::new(file).map_err(cannot)?;
    for (row, number) in reader.get_row_iter(None).map_err(cannot)?.zip(1..) {
        match row {
            Ok(row) => take(number, Item::Row(json(&Field::Group(row)))),
            // What follows a damaged page cannot be found.
            Err(error) if number == 1 => return Err(cannot(error)),
            Err(error) => {
                take(number, Item::Bad(error.to_string()));
                break;
            }
        }
    }
    Ok(())
}

fn json(field: &Field) -> Json {
    match field {
        Field::Null => Json::Null,
        Field::Bool(value) => (*value).into(),
        Field::Byte(value) => (*value).into(),
        Field::Short(value) => (*value).into(),
        Field::Int(value) | Field::Date(value) | Field::TimeMillis(value) => (*value).into(),
        Field::Long(value)
        | Field::TimeMicros(value)
        | Field::TimestampMillis(value)
        | Field::TimestampMicros(value) => (*value).into(),
        Field::UByte(value) => (*value).into(),
        Field::UShort(value) => (*value).into(),
        Field::UInt(value) => (*value).into(),
        Field::ULong(value) => (*value).into(),
        Field::Float16(value) => value.to_f64().into(),
        Field::Float(value) => (*value).into(),
        Field::Double(value) => (*value).into(),
        Field::Str(text) => text.as_str().into(),
        // Images and the like: what they are does not matter, only which is which.
        Field::Bytes(bytes) => format!("{:?}", Hash::EMPTY.bytes(bytes.as_bytes())).into(),
        Field::Decimal(_) => field.to_string().into(),
        Field::Group(row) => {
            row.get_column_iter().map(|(name, value)| (name.clone(), json(value))).collect()
        }
        Field::ListInternal(list) => list.elements().iter().map(json).collect(),
        Field::MapInternal(map) => map.entries().iter().map(entry).collect::<Map<_, _>>().into(),
    }
}

fn entry((key, value): &(Field, Field)) -> (String, Json) {
    let name = match json(key) {
        Json::String(name) => name,
        other => other.to_string(),
    };
    (name, json(value))
}
