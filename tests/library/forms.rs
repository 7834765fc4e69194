//! What a test of each contract looks like in Rust: the page of `shakedown::contract` has them all.

use std::path::Path;

use shakedown::contracts::{self, IDS};
use shakedown::value::record::{Field, Kind};

/// Types that a field does not say: texts that may be null, and what lists hold.
const OTHERS: [(&str, &str); 4] = [
    ("answers", "Vec<Option<String>>"),
    ("micro_batches", "&[shakedown::contracts::accumulated_loss::MicroBatch]"),
    ("shards", "&[shakedown::contracts::metric_reduction::Shard]"),
    ("turns", "&[shakedown::contracts::turn_mask::Turn]"),
];

/// The type of `OTHERS`, where the field has none of its own.
fn other(field: &Field, kind: Kind) -> Option<String> {
    let (_, of) = OTHERS.iter().find(|(name, _)| *name == field.name && field.kind == kind)?;
    Some((*of).to_owned())
}

fn parameter(field: &Field) -> String {
    let cell = match field.kind {
        Kind::Float => "f32",
        Kind::Int => "i64",
        Kind::Bool => "bool",
        Kind::Text => "&str",
        Kind::List => "",
    };
    let of = match (other(field, Kind::List), field.ndim) {
        (Some(of), _) => of,
        (None, Some(0)) => cell.to_owned(),
        (None, _) => format!("&[{cell}]"),
    };
    let of = if field.optional { format!("Option<{of}>") } else { of };
    format!("{}: {of}", field.name)
}

fn returned(field: &Field) -> String {
    let cell = match field.kind {
        Kind::Float => "f32",
        Kind::Int => "i64",
        Kind::Bool => "bool",
        Kind::Text | Kind::List => "String",
    };
    let of = || if field.ndim == Some(0) { cell.to_owned() } else { format!("Vec<{cell}>") };
    other(field, Kind::Text).unwrap_or_else(of)
}

/// A test of a contract, to be filled in.
fn form(id: &str, below: &str) -> String {
    let contract = contracts::find(id).unwrap();
    let (inputs, outputs) = (contract.inputs(), contract.outputs());
    let name = id.replace('-', "_");
    let mut parameters: Vec<String> = inputs.iter().map(parameter).collect();
    let dimensions = inputs.iter().filter_map(|field| field.ndim).max().unwrap_or(0);
    let lengths = ["rows", "columns", "vocabulary"];
    if dimensions > 1 {
        let of = lengths[..dimensions.min(3)].iter().map(|length| format!("{length}: usize"));
        parameters.extend(of);
    }
    let required: Vec<&Field> = outputs.iter().filter(|field| !field.optional).collect();
    let first = &outputs[..1];
    let (names, types): (Vec<&str>, Vec<String>) = match required.as_slice() {
        [] => first.iter().map(|field| (field.name, returned(field))).unzip(),
        some => some.iter().map(|field| (field.name, returned(field))).unzip(),
    };
    let (types, returns) = match types.as_slice() {
        [one] => (one.clone(), String::new()),
        several => {
            (format!("({})", several.join(", ")), format!(", returns({})", names.join(", ")))
        }
    };
    let parameters: String = parameters.iter().map(|of| format!("    {of},\n")).collect();
    let attribute = format!("#[shakedown::contract({name}{returns})]\n{below}");
    attribute + &format!("fn my_{name}(\n{parameters}) -> {types} {{\n    todo!()\n}}\n")
}

/// Compares a generated file with what it should be, or writes it: `INSTA_UPDATE=always`.
fn assert_file(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{} is old: INSTA_UPDATE=always writes it", path.display());
}

#[test]
fn the_page_has_a_form_of_every_contract() {
    let forms: Vec<String> = IDS.iter().map(|id| form(id, "")).collect();
    let page = format!("```ignore\n{}```\n", forms.join("\n"));
    assert_file("harness/command/forms.md", &page);
    let below = "#[should_panic(expected = \"not yet implemented\")]\n";
    let forms: Vec<String> = IDS.iter().map(|id| form(id, below)).collect();
    assert_file("tests/library/filled.in", &forms.join("\n"));
}
