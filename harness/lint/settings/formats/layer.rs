//! What one file or command says, before it is put together with what others say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::others::Other;
use crate::settings::{Library, Origin};
use shakedown_core::value::error::Error;

/// Larger files are refused.
pub(super) const LARGEST_FILE_BYTES: u64 = 16 << 20;

/// More fields than this are no configuration.
pub(super) const MOST_FIELDS: usize = 10_000;

/// Mappings in each other beyond this are no configuration.
pub(super) const DEEPEST: usize = 64;

/// What one file or command says.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) library: Option<Library>,
    /// Another library, or a fork of `library`.
    pub(super) other: Option<Other>,
    /// Whether the library was named by hand.
    pub(super) is_named: bool,
    pub(super) call: Option<String>,
    /// In the order in which they are set.
    pub(super) fields: Vec<Field>,
    /// Why the library's defaults are not known; none where they are.
    pub(super) gaps: Vec<String>,
    pub(super) is_open: bool,
    pub(super) is_resolved: bool,
    pub(super) is_supervised: bool,
    /// Whether it only adds to a configuration that stands elsewhere.
    pub(super) is_partial: bool,
    pub(super) files: Vec<PathBuf>,
    pub(super) format: &'static str,
    pub(super) warnings: Vec<String>,
}

/// One field that is set.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    /// None where it could not be read.
    pub(super) json: Option<Json>,
    pub(super) origin: Origin,
    pub(super) how: How,
}

/// What is done with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// It is set.
    Set,
    /// It is added by hydra's `+`.
    Added,
    /// It is taken away by hydra's `~`.
    Deleted,
}

impl Layer {
    /// Nothing yet, from a file in a format.
    pub(super) fn new(path: &Path, format: &'static str) -> Layer {
        Layer { files: vec![path.to_owned()], format, ..Layer::default() }
    }

    /// Takes up what another one says on top of this.
    pub(super) fn take(&mut self, other: Layer) {
        if other.library.is_some() || other.other.is_some() {
            (self.library, self.other) = (other.library, other.other);
        }
        self.call = other.call.or(self.call.take());
        self.fields.extend(other.fields);
        self.gaps.extend(other.gaps);
        self.is_open |= other.is_open;
        self.is_resolved |= other.is_resolved;
        self.is_supervised |= other.is_supervised;
        self.is_partial &= other.is_partial;
        for file in other.files {
            if !self.files.contains(&file) {
                self.files.push(file);
            }
        }
        if self.format.is_empty() {
            self.format = other.format;
        }
        self.warnings.extend(other.warnings);
    }
}

/// Fields by name, each set once.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) fields: BTreeMap<String, Field>,
}

impl Merged {
    /// All fields in turn: the last one counts, and a value takes the place of a mapping.
    pub(super) fn new(fields: Vec<Field>) -> Merged {
        let mut merged = Merged::default();
        for field in fields {
            merged.put(field);
        }
        merged
    }

    fn put(&mut self, field: Field) {
        for (at, _) in field.name.match_indices('.') {
            let above = &field.name[..at];
            self.fields.remove(above);
        }
        let below = format!("{}.", field.name);
        let is_below = |name: &String| name.starts_with(&below);
        let inside: Vec<String> = self
            .fields
            .range(below.clone()..)
            .map(|(name, _)| name.clone())
            .take_while(is_below)
            .collect();
        // `{}` on top of a mapping changes nothing there.
        let is_empty =
            field.json.as_ref().and_then(Json::as_object).is_some_and(|map| map.is_empty());
        if is_empty && !inside.is_empty() && field.how != How::Deleted {
            return;
        }
        for name in inside {
            self.fields.remove(&name);
        }
        if field.how == How::Deleted {
            self.fields.remove(&field.name);
        } else {
            self.fields.insert(field.name.clone(), field);
        }
    }
}

/// The bytes of a file.
///
/// # Errors
/// It cannot be read, is a folder, or is too large.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    use std::io::Read as _;
    let read_error = |error: std::io::Error| Error::io("read", path, &error);
    let file = std::fs::File::open(path).map_err(read_error)?;
    if file.metadata().map_err(read_error)?.is_dir() {
        return Err(Error::new("expected a configuration file, found a folder").at(path));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(read_error)?;
    if bytes.len() as u64 > LARGEST_FILE_BYTES {
        let message = format!("expected at most {LARGEST_FILE_BYTES} bytes");
        return Err(Error::new(message).at(path));
    }
    Ok(bytes)
}

/// A mapping as fields with dotted names. `at` finds the place of a part by its keys.
pub(super) fn flatten(
    map: &serde_json::Map<String, Json>,
    deepest: usize,
    at: &dyn Fn(&[&str]) -> Origin,
) -> Result<Vec<Field>, Error> {
    let mut fields = Vec::new();
    let mut keys = Vec::new();
    flatten_into(&mut fields, &mut keys, map, deepest, at)?;
    Ok(fields)
}

fn flatten_into<'a>(
    fields: &mut Vec<Field>,
    keys: &mut Vec<&'a str>,
    map: &'a serde_json::Map<String, Json>,
    deepest: usize,
    at: &dyn Fn(&[&str]) -> Origin,
) -> Result<(), Error> {
    for (key, value) in map {
        keys.push(key);
        match value {
            // What YAML merges is there unless it is set beside.
            Json::Object(inner) if key == "<<" => {
                let own = fields.len();
                flatten_into(fields, keys, inner, deepest, at)?;
                let mut merged = fields.split_off(own);
                merged.iter_mut().for_each(|field| field.name = field.name.replace("<<.", ""));
                fields.splice(0..0, merged);
            }
            Json::Object(inner) if !inner.is_empty() && keys.len() < deepest => {
                flatten_into(fields, keys, inner, deepest, at)?;
            }
            // Instructions to hydra, which builds objects by them.
            _ if matches!(&**key, "_target_" | "_partial_" | "_convert_" | "_recursive_") => {}
            _ => {
                let (name, json) = (keys.join("."), Some(value.clone()));
                fields.push(Field { name, json, origin: at(keys), how: How::Set });
            }
        }
        keys.pop();
        if fields.len() > MOST_FIELDS {
            return Err(Error::new(format!("expected at most {MOST_FIELDS} fields")));
        }
    }
    Ok(())
}
