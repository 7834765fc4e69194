//! Recorded batches: one case, and what a component gave for it, from a safetensors file.
//!
//! A trainer writes one in six lines, names as in the contract (`shakedown list CONTRACT`):
//!
//! ```python
//! import json
//! from safetensors.torch import save_file
//! tensors = {"rewards": rewards, "groups": groups,             # the inputs
//!            "advantages": advantages}                         # what your function gave for them
//! options = {"scale": "std", "ddof": 1, "epsilon": 1e-4}
//! save_file({k: v.detach().cpu().contiguous() for k, v in tensors.items()},
//!           "step-1200.safetensors", metadata={"options": json.dumps(options)})
//! ```
//!
//! and `shakedown check-batch step-1200.safetensors --contract group-advantage` checks it.
//!
//! # The file
//!
//! - Each array of the inputs is a tensor under its name; of a list, `micro_batches.0.mask`.
//!   Floats are `F64`, `F32`, `F16` or `BF16`, integers `I64` to `I8` or `U8`, flags `BOOL`.
//! - What the component gave stands under the names of the outputs, or under `output.NAME` (an
//!   input of `policy-update` has the name of an output). It may be left out.
//! - `__metadata__["texts"]` is a JSON object from a text field to its list of texts and nulls,
//!   `__metadata__["options"]` one from options to values: as in the protocol of processes.
//!
//! # What is checked
//!
//! Under the options of the component in the manifest that gave them, where there is a manifest,
//! then those in the file, then those on the command line.
//!
//! With a manifest, its components of this contract are called on the batch, and on what each
//! invariant makes of it; findings are shrunk, named and kept as `check` does it. Recorded outputs
//! are checked as they are: on each invariant that needs no other call than the recorded one. The
//! others are named as skipped. What breaks is cut to the fewest rows or groups, where rows have no
//! influence on each other and every output has rows, and compared with the known faults.
//!
//! Batches of production size are cut along their axes before anything smaller is tried, so that
//! neither time nor memory grows with the square of their size.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use safetensors::Dtype as WireDtype;
use serde::de::IgnoredAny;

use shakedown_core::contract::component::numbers;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::value::error::{Error, cut, nearest, unknown};
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::{Field, Kind, Misfit, Shared, Source, Value};
use shakedown_core::value::wire::Message;
use shakedown_core::value::yaml;

/// What is written in front of an output's name that an input has too.
const OUTPUT: &str = "output.";

/// The keys of the metadata that are read.
const METADATA: [&str; 2] = ["texts", "options"];

/// A batch as its file has it.
#[derive(Clone)]
pub struct Batch {
    /// The contract.
    pub contract: &'static dyn AnyContract,
    /// The inputs, not rounded.
    pub case: Shared,
    /// What the component gave for them, where that was recorded.
    pub recorded: Option<Shared>,
    /// The options in the file.
    pub options: Vec<Choice>,
    /// The coarsest format of a recorded output that holds floats, f32 where there is none.
    pub dtype: Dtype,
}

/// A value that is chosen for an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The option.
    pub name: String,
    /// The value, as YAML.
    pub value: String,
}

/// One value of the file, and how it is stored.
struct Stored {
    value: Value,
    dtype: Option<WireDtype>,
}

/// Larger files are refused: numbers take up to eight times as much memory.
const LARGEST_FILE_BYTES: u64 = 2 << 30;

/// Longer lists of what a file holds are refused.
const LARGEST_HEADER_BYTES: u64 = 16 << 20;

/// Reads a batch of the contract `C` from a file. What the file holds is looked at before its
/// numbers are; a regular file is never in memory as a whole besides them.
///
/// # Errors
/// As [`parse`], with the path; or the file is larger than 2 GiB.
pub fn read(contract: &'static dyn AnyContract, path: &Path) -> Result<Batch, Error> {
    let failed = |error: std::io::Error| Error::io("read", path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let length = metadata.len();
    within("bytes", length, LARGEST_FILE_BYTES).map_err(|error| error.at(path))?;
    // Nothing cannot be mapped.
    if metadata.is_file() && length > 0 {
        let bytes = mapped(&file).map_err(failed)?;
        let of_header = header(&bytes).map_err(|error| error.at(path))?;
        let names = &bytes[bytes.len().min(8)..bytes.len().min(8 + of_header.unwrap_or(0))];
        return check_names(contract, names)
            .and_then(|()| parse(contract, &bytes))
            .map_err(|error| error.at(path));
    }
    // What is no regular file does not tell its length before it has been read.
    let mut bytes = Vec::new();
    (&mut file).take(8).read_to_end(&mut bytes).map_err(failed)?;
    if let Some(header) = header(&bytes).map_err(|error| error.at(path))? {
        (&mut file).take(header as u64).read_to_end(&mut bytes).map_err(failed)?;
        check_names(contract, &bytes[8..]).map_err(|error| error.at(path))?;
        let left = LARGEST_FILE_BYTES - header as u64;
        (&mut file).take(left).read_to_end(&mut bytes).map_err(failed)?;
        within("bytes", bytes.len() as u64, LARGEST_FILE_BYTES).map_err(|error| error.at(path))?;
    }
    parse(contract, &bytes).map_err(|error| error.at(path))
}

/// How many bytes the list of what a file holds has, as the file begins; none where it is no
/// safetensors file, which begins with any number.
fn header(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let Some(Ok(first)) = bytes.get(..8).map(<[u8; 8]>::try_from) else { return Ok(None) };
    let length = u64::from_le_bytes(first);
    if length > LARGEST_FILE_BYTES {
        return Ok(None);
    }
    within("bytes of header", length, LARGEST_HEADER_BYTES)?;
    Ok(usize::try_from(length).ok())
}

/// The memory of a file, of which only what is looked at is read.
#[expect(unsafe_code, reason = "a file as memory")]
fn mapped(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: a batch is written once. Others that shorten it meanwhile could end this process,
    // and nothing of it is kept: the numbers are copied.
    unsafe { Mmap::map(file) }
}

fn within(what: &str, found: u64, limit: u64) -> Result<(), Error> {
    if found <= limit {
        return Ok(());
    }
    Err(Error::new(format!("expected at most {limit} {what}, found {found}")))
}

/// Refuses tensors of which the contract knows no name; what else is wrong shows when all is read.
fn check_names(contract: &dyn AnyContract, header: &[u8]) -> Result<(), Error> {
    let Ok(entries) = serde_json::from_slice::<HashMap<String, IgnoredAny>>(header) else {
        return Ok(());
    };
    let mut names: Vec<&String> = entries.keys().filter(|name| *name != "__metadata__").collect();
    names.sort();
    names.into_iter().try_for_each(|name| is_known(contract, name))
}

/// Whether the contract has a field of a name in a file.
fn is_known(contract: &dyn AnyContract, name: &str) -> Result<(), Error> {
    let (of_case, of_output) = (contract.inputs(), contract.outputs());
    let bare = name.strip_prefix(OUTPUT).unwrap_or(name);
    if leaf(&of_case, name).is_some() || leaf(&of_output, bare).is_some() {
        return Ok(());
    }
    let known = [names(&of_case), names(&of_output)].concat();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(Error::new(unknown("tensor or text field", name, &known)))
}

/// Reads a batch of the contract `C` from the bytes of a file.
///
/// # Errors
/// The bytes are no safetensors file; a name is unknown, with the nearest known one; an input is
/// missing; a dtype or a shape is not what the contract has, with both.
pub fn parse(contract: &'static dyn AnyContract, bytes: &[u8]) -> Result<Batch, Error> {
    let message = Message::decode(bytes)
        .map_err(|why| Error::new(format!("expected a safetensors file: {}", cut(&why))))?;
    let misspelt = message.texts.keys().find(|key| {
        !METADATA.contains(&&***key)
            && METADATA.iter().any(|known| !nearest(key, [*known]).is_empty())
    });
    if let Some(key) = misspelt {
        return Err(Error::new(unknown("key", key, &METADATA)).within("__metadata__"));
    }
    let options = choices(contract, message.texts.get("options").map_or("{}", String::as_str))
        .map_err(|error| error.within("__metadata__.options"))?;
    let lists = message.lists().map_err(|why| Error::new(why).within("__metadata__"))?;
    let mut stored: BTreeMap<String, Stored> = BTreeMap::new();
    for (name, tensor) in message.tensors {
        stored.insert(name, Stored { value: tensor.value, dtype: Some(tensor.dtype) });
    }
    stored.extend(lists.into_iter().map(|(name, value)| (name, Stored { value, dtype: None })));
    let (mut inputs, mut outputs) = (HashMap::new(), HashMap::new());
    let (of_case, of_output) = (contract.inputs(), contract.outputs());
    let mut dtype = None;
    for (name, stored) in stored {
        let bare = name.strip_prefix(OUTPUT).unwrap_or(&name);
        if let Some(field) = leaf(&of_case, &name) {
            inputs.insert(name.clone(), fitting(&name, field, stored)?);
        } else if let Some(field) = leaf(&of_output, bare) {
            let stored = Stored { value: numbers(contract.whole(), bare, stored.value), ..stored };
            dtype = coarser(dtype, stored.dtype);
            outputs.insert(bare.to_owned(), fitting(&name, field, stored)?);
        } else {
            is_known(contract, &name)?;
        }
    }
    let case = made("input", &of_case, inputs, |get| contract.case(get))?;
    let recorded = match outputs.is_empty() {
        true => None,
        false => Some(made("output", &of_output, outputs, |get| contract.output(get))?),
    };
    Ok(Batch { contract, case, recorded, options, dtype: dtype.unwrap_or(Dtype::F32) })
}

impl Batch {
    /// The options in force: `base`, the choices of the file, then those in `asked`.
    ///
    /// # Errors
    /// A value that its option does not take.
    pub fn options(
        &self,
        base: &Arc<dyn AnyOptions>,
        asked: &[Choice],
    ) -> Result<Arc<dyn AnyOptions>, Error> {
        let mut options = Arc::clone(base);
        for Choice { name, value } in self.options.iter().chain(asked) {
            // Where it stands in our own rendering is of no use to anybody.
            options = options
                .with(name, value)
                .map_err(|error| Error::new(error.to_string()).within("options"))?;
        }
        options.check().map_err(|(name, why)| Error::new(format!("options: {name}: {why}")))?;
        Ok(options)
    }
}

/// A choice as `NAME=VALUE`.
///
/// # Errors
/// There is no `=`, or the contract has no such option.
pub fn choice(contract: &dyn AnyContract, text: &str) -> Result<Choice, Error> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| Error::new(format!("expected NAME=VALUE, found `{text}`")))?;
    known_option(contract, name)?;
    Ok(Choice { name: name.to_owned(), value: value.to_owned() })
}

fn known_option(contract: &dyn AnyContract, name: &str) -> Result<(), Error> {
    let docs = contract.option_docs();
    let known: Vec<&str> = docs.iter().map(|doc| doc.name).collect();
    if known.contains(&name) { Ok(()) } else { Err(Error::new(unknown("option", name, &known))) }
}

/// The choices in a JSON object.
fn choices(contract: &dyn AnyContract, json: &str) -> Result<Vec<Choice>, Error> {
    let chosen: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(json).map_err(|error| Error::new(error.to_string()))?;
    let choice = |(name, value): (String, serde_json::Value)| {
        known_option(contract, &name)?;
        Ok(Choice { name, value: yaml::inline(&value) })
    };
    chosen.into_iter().map(choice).collect()
}

/// The field of a flat name, `mask` or `micro_batches.0.mask`.
fn leaf<'a>(fields: &'a [Field], name: &str) -> Option<&'a Field> {
    let named = |name: &str| fields.iter().find(|field| field.name == name);
    match name.split_once('.') {
        None => named(name).filter(|field| field.kind != Kind::List),
        Some((list, rest)) => {
            let (index, rest) = rest.split_once('.')?;
            let list = named(list)?;
            index.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
            leaf(&list.items, rest)
        }
    }
}

/// The flat names of fields, of a list's first item.
fn names(fields: &[Field]) -> Vec<String> {
    let of = |field: &Field| match field.kind {
        Kind::List => {
            names(&field.items).iter().map(|item| format!("{}.0.{item}", field.name)).collect()
        }
        _ => vec![field.name.to_owned()],
    };
    fields.iter().flat_map(of).collect()
}

/// The value, where it is what its field holds.
fn fitting(name: &str, field: &Field, stored: Stored) -> Result<Value, Error> {
    let Stored { value, dtype } = stored;
    let ndim = value.shape().len();
    if value.kind() == field.kind && field.ndim.is_none_or(|expected| expected == ndim) {
        return Ok(value);
    }
    let expected = match field.kind {
        Kind::Float => "a float tensor (F64, F32, F16 or BF16)",
        Kind::Int => "an integer tensor (I64, I32, I16, I8 or U8)",
        Kind::Bool => "a BOOL tensor",
        Kind::Text => "texts in `__metadata__`",
        Kind::List => unreachable!("a leaf is no list"),
    };
    let found = dtype.map_or("texts".to_owned(), |dtype| format!("{dtype:?}"));
    let dimensions = match field.ndim {
        Some(1) => " of 1 dimension".to_owned(),
        Some(count) => format!(" of {count} dimensions"),
        None => String::new(),
    };
    let shape = value.shape();
    let message =
        format!("`{name}`: expected {expected}{dimensions}, found {found} of shape {shape:?}");
    Err(Error::new(message))
}

/// A record made of its values, all of which it takes.
fn made(
    what: &str,
    fields: &[Field],
    mut values: HashMap<String, Value>,
    make: impl FnOnce(Source<'_, Value>) -> Result<Shared, Misfit>,
) -> Result<Shared, Error> {
    let required = fields.iter().filter(|field| !field.optional && field.kind != Kind::List);
    let missing: Vec<&str> =
        required.map(|field| field.name).filter(|name| !values.contains_key(*name)).collect();
    match missing[..] {
        [] => {}
        [one] => return Err(Error::new(format!("the {what} `{one}` is missing"))),
        _ => {
            let missing = missing.join("`, `");
            return Err(Error::new(format!("the {what}s `{missing}` are missing")));
        }
    }
    let record = make(&mut |name| values.remove(name))
        .map_err(|(name, why)| Error::new(format!("`{name}`: {why}")))?;
    match values.keys().min() {
        Some(name) => {
            let message = format!("`{name}`: items are numbered from 0 on without a gap");
            Err(Error::new(message))
        }
        None => Ok(record),
    }
}

/// The coarser of two formats; none where what is stored holds no floats.
fn coarser(known: Option<Dtype>, stored: Option<WireDtype>) -> Option<Dtype> {
    let stored = match stored {
        Some(WireDtype::F64) => Dtype::F64,
        Some(WireDtype::F32) => Dtype::F32,
        Some(WireDtype::F16) => Dtype::F16,
        Some(WireDtype::BF16) => Dtype::Bf16,
        _ => return known,
    };
    let finer = |known: &Dtype| known.unit_roundoff() < stored.unit_roundoff();
    Some(known.filter(|known| !finer(known)).unwrap_or(stored))
}
