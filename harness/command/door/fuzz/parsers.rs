//! The bodies of the fuzz targets for our own parsers: what is read is written and read back the
//! same, and what is refused is refused at a place of the text. Readers of what others write take
//! any bytes.

use std::collections::HashMap;
use std::path::Path;

use shakedown_contracts as contracts;
use shakedown_contracts::REGISTRY;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::{Value, Values, same_bits};
use shakedown_core::value::redact;
use shakedown_core::value::wire;
use shakedown_core::value::wire::Message;
use shakedown_core::value::yaml;
use shakedown_engine::files::batch;
use shakedown_engine::files::case_file::CaseFile;
use shakedown_engine::files::manifest::{Declared, Manifest};
#[cfg(feature = "lint")]
use shakedown_lint::{datasets, runs, settings};

/// Reads a manifest, writes it on one line, and reads that.
///
/// # Panics
/// The two differ, or an error is nowhere in the text.
pub fn manifest(bytes: &[u8]) {
    let Ok(text) = yaml::text(bytes.to_vec()) else { return };
    let path = Path::new("shakedown.yaml");
    let manifest = match Manifest::parse(&REGISTRY, path, &text) {
        Ok(manifest) => manifest,
        Err(error) => return assert_located(&error, &text),
    };
    let mut document: serde_yaml::Value = yaml::parse(&text).expect("it was read before");
    without_empty(&mut document);
    let line = yaml::inline(&document);
    let again = Manifest::parse(&REGISTRY, path, &line).unwrap_or_else(|e| panic!("{line}\n{e}"));
    assert_eq!(manifest.components.len(), again.components.len(), "{line}");
    assert_eq!(manifest.corpora(), again.corpora(), "{line}");
    for (first, second) in manifest.components.iter().zip(&again.components) {
        assert!(parts(first) == parts(second), "{line}");
    }
}

/// Takes out the keys without a value: nothing stands for an empty mapping, `null` does not.
fn without_empty(document: &mut serde_yaml::Value) {
    let Some(top) = document.as_mapping_mut() else { return };
    top.retain(|_, value| !value.is_null());
    let components = top.get_mut("components").and_then(serde_yaml::Value::as_sequence_mut);
    for component in components.into_iter().flatten() {
        if let Some(component) = component.as_mapping_mut() {
            component.retain(|_, value| !value.is_null());
        }
    }
}

/// What is declared about a component, apart from where.
fn parts(declared: &Declared) -> impl PartialEq {
    let Declared { name, contract, target, signature, places, tolerance, .. } = declared.clone();
    let Declared { options, skip, known, wiring, .. } = declared.clone();
    let rest = (skip, known, wiring);
    (name, contract.id(), target, signature, places, tolerance, options.yaml(), rest)
}

/// Reads a case file, writes it, and reads that.
///
/// # Panics
/// The two differ, or an error is nowhere in the text.
pub fn case_file(bytes: &[u8]) {
    let Ok(text) = yaml::text(bytes.to_vec()) else { return };
    let file = match CaseFile::parse(&REGISTRY, &text) {
        Ok(file) => file,
        Err(error) => return assert_located(&error, &text),
    };
    let text = file.text();
    let again = CaseFile::parse(&REGISTRY, &text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    assert!(same_bits(&*file.case, &*again.case), "{text}");
    assert_eq!(text, again.text());
    let rest = |file: CaseFile| {
        let CaseFile { invariant, component, recorded, place, why, link, .. } = file;
        let CaseFile { diagnosis, behaves, stateful, reported, options, .. } = file;
        let flags = (stateful, reported);
        (invariant, component, recorded, place, why, link, diagnosis, behaves, flags, options)
    };
    assert_eq!(rest(file), rest(again), "{text}");
}

/// Reads a message of a component's process, writes it, and reads that.
///
/// # Panics
/// The two differ.
pub fn message(bytes: &[u8]) {
    let Ok(Some(read)) = wire::read_message(&mut &*bytes, u64::MAX) else { return };
    assert!(bytes.starts_with(&read), "a message is what stands on the stream");
    let Ok(message) = Message::decode(&read) else { return };
    let lists = message.lists();
    let mut texts = message.texts.clone();
    // It is the place of the lists, which are written from their values.
    if lists.is_ok() {
        texts.remove("texts");
    }
    let tensors = message.tensors.iter().map(|(name, tensor)| (&**name, tensor.value.clone()));
    let mut values: Vec<(&str, Value)> = tensors.collect();
    values.extend(lists.iter().flatten().map(|(name, value)| (&**name, value.clone())));
    // f64 has every float of the other formats.
    let written = wire::encode(&values, texts, Dtype::F64);
    let again = wire::read_message(&mut &*written, u64::MAX);
    let again = again.expect("it was written").expect("it was written");
    let again = Message::decode(&again).expect("it was written");
    assert_eq!(message.tensors.len(), again.tensors.len());
    for (name, tensor) in &message.tensors {
        let twin = again.tensors.iter().find(|(known, _)| known == name);
        let (_, twin) = twin.unwrap_or_else(|| panic!("{name} is lost"));
        assert!(tensor.value.same_bits(&twin.value), "{name}: {tensor:?} {twin:?}");
    }
    if let Ok(lists) = lists {
        let sorted = |mut lists: Vec<(String, Value)>| {
            lists.sort_by(|a, b| a.0.cmp(&b.0));
            lists
        };
        assert_eq!(sorted(lists), sorted(again.lists().expect("it was written")));
    }
}

/// Reads a recorded batch as one of each contract, writes it, and reads that.
///
/// # Panics
/// The two differ.
pub fn batch(bytes: &[u8]) {
    for contract in contracts::all() {
        let batch = match batch::parse(contract, bytes) {
            Ok(batch) => batch,
            Err(error) => {
                assert!(error.to_string().len() < 2000 + bytes.len(), "{error}");
                continue;
            }
        };
        let values = |prefix: &str, values: Values<Value>| -> Vec<(String, Value)> {
            let present = values.into_iter().filter_map(|(name, value)| Some((name, value?)));
            present.map(|(name, value)| (format!("{prefix}{name}"), value)).collect()
        };
        let mut stored = values("", batch.case.values());
        stored.extend(batch.recorded.iter().flat_map(|output| values("output.", output.values())));
        let stored: Vec<(&str, Value)> =
            stored.iter().map(|(name, value)| (&**name, value.clone())).collect();
        // f64 has every float of the other formats.
        let written = wire::encode(&stored, HashMap::new(), Dtype::F64);
        let again = batch::parse(contract, &written).unwrap_or_else(|error| panic!("{error}"));
        assert!(same_bits(&*batch.case, &*again.case));
        assert_eq!(batch.recorded.is_some(), again.recorded.is_some());
        for (first, second) in batch.recorded.iter().zip(&again.recorded) {
            assert!(same_bits(&**first, &**second));
        }
    }
}

/// Reads a log in every form: it is refused or read.
#[cfg(feature = "lint")]
pub fn log(bytes: &[u8]) {
    runs::formats::fuzz(bytes);
}

/// Reads a configuration in every form that no other program parses.
#[cfg(feature = "lint")]
pub fn settings(bytes: &[u8]) {
    settings::formats::fuzz(bytes);
}

/// Reads and judges a data set.
#[cfg(feature = "lint")]
pub fn data_set(bytes: &[u8]) {
    datasets::judge::fuzz(bytes);
}

/// Takes secrets, persons and places out of a text, and finds no more of them in what is left.
///
/// # Panics
/// There is more of them.
pub fn redaction(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for clean in [redact::secrets, redact::identity] {
        let once = clean(&text).into_owned();
        assert_eq!(clean(&once), once, "cleaned again");
    }
}

/// An error about a text says where in it, in a message that a person can read. Only of aliases
/// that unfold into too much the YAML library says no place.
fn assert_located(error: &Error, text: &str) {
    let Some((line, column)) = error.position() else {
        assert!(error.to_string().contains("the aliases"), "nowhere: {error}");
        return;
    };
    let lines = text.split('\n').count();
    assert!(
        (1..=lines).contains(&line) && column >= 1,
        "{line}:{column} of {lines} lines: {error}"
    );
    // Names of components are quoted whole.
    assert!(error.to_string().len() < 2000 + 2 * text.len(), "a long message: {error}");
}
