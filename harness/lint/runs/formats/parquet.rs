//! Parquet: columns are metrics, as in the history that W&B exports.

use crate::runs::formats::Source;
use crate::runs::recorder::Recorder;
use shakedown_core::value::error::Error;

#[cfg(not(feature = "parquet"))]
pub(super) fn read(_: &Source<'_>, _: &mut Recorder) -> Result<(), Error> {
    Err(Error::new(
        "is parquet, which this build cannot read: build shakedown with the feature `parquet`, or \
         save the table as CSV",
    ))
}

/// Reads all rows.
#[cfg(feature = "parquet")]
pub(super) fn read(source: &Source<'_>, to: &mut Recorder) -> Result<(), Error> {
    // The crate may panic where a file is damaged.
    let read = std::panic::AssertUnwindSafe(|| columns::read(source, to));
    match std::panic::catch_unwind(read) {
        Ok(read) => read,
        Err(_) => Err(Error::new("cannot be read as parquet: it is damaged")),
    }
}

#[cfg(feature = "parquet")]
mod columns {
    use std::fs::File;
    use std::io::Write;
    use std::sync::Arc;

    use parquet::basic::{LogicalType, Type as Physical};
    use parquet::errors::ParquetError;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use parquet::schema::types::Type;

    use crate::runs::formats::{Source, unreadable};
    use crate::runs::recorder::Recorder;
    use crate::runs::row::Cell;
    use shakedown_core::value::error::Error;

    pub(super) fn read(source: &Source<'_>, to: &mut Recorder) -> Result<(), Error> {
        let file = open(source).map_err(|error| unreadable(&error))?;
        let damaged =
            |error: ParquetError| Error::new(format!("cannot be read as parquet: {error}"));
        let reader = SerializedFileReader::new(file).map_err(damaged)?;
        let wanted = numbers(reader.metadata().file_metadata().schema()).map_err(damaged)?;
        let wanted_names: Vec<String> =
            wanted.get_fields().iter().map(|column| column.name().to_owned()).collect();
        let rows = reader.get_row_iter(Some(wanted)).map_err(damaged)?;
        // A table without a metric may be a data set: one row tells its names.
        let mut names = wanted_names.iter();
        let most = if names.any(|name| to.knows(name)) { usize::MAX } else { 1 };
        for (index, row) in rows.take(most).enumerate() {
            let row = row.map_err(damaged)?;
            let cell = |(name, field): (_, &Field)| Some((name, Cell::from(number(field)?)));
            let cells = row.get_column_iter().map(|(name, field)| (name.as_str(), field));
            to.row(index + 1, cells.filter_map(cell));
        }
        Ok(())
    }

    fn open(source: &Source<'_>) -> std::io::Result<File> {
        match source {
            Source::File(path) => File::open(path),
            Source::Bytes(bytes) => {
                let mut file = tempfile::tempfile()?;
                file.write_all(bytes)?;
                Ok(file)
            }
        }
    }

    /// The schema with the columns of numbers alone: texts may be long.
    fn numbers(schema: &Type) -> Result<Type, ParquetError> {
        let is_number = |column: &&Arc<Type>| {
            column.is_primitive()
                && !matches!(
                    column.get_basic_info().logical_type_ref(),
                    Some(
                        LogicalType::Timestamp { .. }
                            | LogicalType::Date
                            | LogicalType::Time { .. }
                    )
                )
                && matches!(
                    column.get_physical_type(),
                    Physical::INT32 | Physical::INT64 | Physical::FLOAT | Physical::DOUBLE
                )
        };
        let columns = schema.get_fields().iter().filter(is_number).cloned().collect();
        Type::group_type_builder(schema.name()).with_fields(columns).build()
    }

    fn number(field: &Field) -> Option<f64> {
        Some(match field {
            Field::Byte(x) => f64::from(*x),
            Field::Short(x) => f64::from(*x),
            Field::Int(x) => f64::from(*x),
            Field::Long(x) => *x as f64,
            Field::UByte(x) => f64::from(*x),
            Field::UShort(x) => f64::from(*x),
            Field::UInt(x) => f64::from(*x),
            Field::ULong(x) => *x as f64,
            Field::Float(x) => f64::from(*x),
            Field::Double(x) => *x,
            _ => return None,
        })
    }
}
