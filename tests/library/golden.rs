//! Outputs of real library functions, on small inputs: our oracles agree with every one of them
//! under the options that describe the library. Where there are several right answers (`compare:
//! accept`), every invariant holds on that of the library, and one is broken by what is wrong on
//! purpose (`compare: reject`).

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use shakedown::author::{Dtype, Number, Place, Stop, Value};
use shakedown::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown::contract::erased::AnyContract;
use shakedown::contracts;
use shakedown::engine::subject::{Subject, read_options};
use shakedown::value::record::{Field, Kind, Shared, same_bits};

/// A number that may be written `{"nonfinite": "-inf"}`, or a flag.
fn float(json: &Json) -> f64 {
    if let Some(flag) = json.as_bool() {
        return f64::from(flag);
    }
    match json.get("nonfinite").and_then(Json::as_str) {
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        _ => json.as_f64().expect("a number"),
    }
}

/// An array that is written as nested lists.
struct Array<'a> {
    shape: Vec<usize>,
    leaves: Vec<&'a Json>,
}

fn array(json: &Json) -> Array<'_> {
    fn visit<'a>(json: &'a Json, depth: usize, array: &mut Array<'a>) {
        match json.as_array() {
            None => array.leaves.push(json),
            Some(items) => {
                if array.shape.len() == depth {
                    array.shape.push(items.len());
                }
                items.iter().for_each(|item| visit(item, depth + 1, array));
            }
        }
    }
    let mut array = Array { shape: Vec::new(), leaves: Vec::new() };
    visit(json, 0, &mut array);
    array
}

/// The field of a flat name, and what stands there: `shards.0.mask`.
fn at<'a>(fields: &[Field], json: &'a Map<String, Json>, name: &str) -> Option<(Kind, &'a Json)> {
    let mut parts = name.split('.');
    let first = parts.next()?;
    let (field, json) = (fields.iter().find(|field| field.name == first)?, json.get(first)?);
    match (parts.next(), parts.next()) {
        (Some(index), Some(inner)) => {
            let item = json.get(index.parse::<usize>().ok()?)?;
            at(&field.items, item.as_object()?, inner)
        }
        _ => Some((field.kind, json)),
    }
}

/// The values by their flat names.
fn values(fields: &[Field], json: &Map<String, Json>) -> impl FnMut(&'static str) -> Option<Value> {
    move |name| {
        let (kind, json) = at(fields, json, name)?;
        let Array { shape, leaves } = array(json);
        Some(match kind {
            Kind::Float => {
                let numbers = leaves.into_iter().map(float).collect();
                Value::Float(ndarray::ArrayD::from_shape_vec(shape, numbers).unwrap())
            }
            Kind::Int => {
                let numbers = leaves.into_iter().map(|leaf| leaf.as_i64().unwrap()).collect();
                Value::Int(ndarray::ArrayD::from_shape_vec(shape, numbers).unwrap())
            }
            Kind::Bool => {
                let flags = leaves.into_iter().map(|leaf| leaf.as_bool().unwrap()).collect();
                Value::Bool(ndarray::ArrayD::from_shape_vec(shape, flags).unwrap())
            }
            Kind::Text => unreachable!("no golden case holds texts"),
            Kind::List => return None,
        })
    }
}

fn case(contract: &dyn AnyContract, json: &Map<String, Json>) -> Shared {
    contract.case(&mut values(&contract.inputs(), json)).unwrap()
}

/// How far a library's own arithmetic may be off, relative to 1 + |value|: rounding, and what the
/// note of the case says.
fn allowed(golden: &Json) -> f64 {
    let note = golden["note"].as_str().unwrap_or("");
    if note.contains("/(1 + epsilon)") {
        1.1e-6
    } else if golden["dtype"] == "f32" {
        3e-7
    } else {
        1e-9
    }
}

/// Outputs of a library of which the contract promises nothing: case and field.
const NOT_PROMISED: &[&str] = &[
    // The share of clipped tokens is defined for `ratio: token`.
    "verl.gspo clip_fraction",
    "verl.gspo.rowmasked clip_fraction",
];

/// What a case came to: numbers compared, and why the oracle disagrees.
#[derive(Default)]
struct Outcome {
    compared: usize,
    disagreements: Vec<String>,
    not_promised: Vec<String>,
}

/// Compares the oracle of a contract with one output of a library.
fn compare(contract: &'static dyn AnyContract, golden: &Json) -> Outcome {
    let name = golden["name"].as_str().unwrap();
    // JSON is YAML.
    let options = read_options(contract, &golden["options"].to_string())
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let dtype = if golden["dtype"] == "f32" { Dtype::F32 } else { Dtype::F64 };
    let case = case(contract, golden["inputs"].as_object().unwrap()).rounded(dtype);
    let mut expected = contract.oracle(&*case, &*options, dtype);
    let mut outputs = contract.outputs().into_iter().map(|field| field.name);
    let first = outputs.find(|name| golden["outputs"].get(name).is_some());
    let first = first.expect("a library gives something");
    expected.extend(contract.oracle_gradient_of(first, &*case, &*options, dtype));
    let mask = (golden["compare"] == "mask").then(|| array(&golden["inputs"]["mask"]));
    let mut outcome = Outcome::default();
    for (field, json) in golden["outputs"].as_object().unwrap() {
        let found = array(json);
        let Some(expected) = expected.iter().find(|one| one.field == field) else {
            outcome.not_promised.push(format!("{name} {field}"));
            continue;
        };
        if expected.numbers.shape() != found.shape {
            let (found, expected) = (&found.shape, expected.numbers.shape());
            outcome.disagreements.push(format!("{name} {field}: {found:?}, not {expected:?}"));
            continue;
        }
        let mask = mask.as_ref().filter(|mask| mask.shape == found.shape);
        for (i, (&found, number)) in found.leaves.iter().zip(&expected.numbers).enumerate() {
            let counts = mask.is_none_or(|mask| mask.leaves[i].as_bool().unwrap());
            if counts && number.scale != f64::INFINITY {
                outcome.compared += 1;
                if !agree(float(found), number, allowed(golden)) {
                    let why = format!("{name} {field}[{i}]: {found}, oracle {}", number.value);
                    outcome.disagreements.push(why);
                }
            }
        }
    }
    outcome
}

/// A component of which nothing is known but what it gave for one case.
struct Recorded {
    case: Shared,
    output: Shared,
}

impl Component for Recorded {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        if !same_bits(&**call.case, &*self.case) {
            let [message, traceback] = ["there is no record of it", ""].map(str::to_owned);
            return Err(Failure::Raised { message, traceback });
        }
        let output = Shared::clone(&self.output);
        Ok(Returned { output, changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::None("it is a record".to_owned())
    }
}

/// The invariants that an answer breaks, with what is said of it.
fn broken(contract: &'static dyn AnyContract, golden: &Json) -> Vec<String> {
    let case = case(contract, golden["inputs"].as_object().unwrap());
    let output = golden["outputs"].as_object().unwrap();
    let output = contract.output(&mut values(&contract.outputs(), output)).unwrap();
    let recorded = Recorded { case: Shared::clone(&case), output };
    let mut subject = Subject::new(contract, "recorded", Box::new(recorded));
    subject.options = read_options(contract, &golden["options"].to_string()).unwrap();
    let options = Arc::clone(&subject.options);
    let applying = contract.invariants().iter();
    let applying = applying.filter(|one| one.applies(&*options, Place::CPU_F64));
    let said = applying.filter_map(|invariant| {
        match subject.try_case(invariant, &case, Place::CPU_F64, &mut 0).0 {
            Err(Stop::Broken(found)) => Some(format!("{}: {}", invariant.id, found.message)),
            _ => None,
        }
    });
    // That nothing is known of other cases is said of the record, not of the library.
    said.filter(|said| !said.contains("there is no record of it")).collect()
}

/// Whether a library's number is the oracle's; NaN is NaN.
fn agree(found: f64, number: &Number, allowed: f64) -> bool {
    let near = (found - number.value).abs() <= allowed * (1.0 + found.abs()) + number.slack;
    near || found == number.value || (found.is_nan() && number.value.is_nan())
}

#[test]
fn oracles_agree_with_the_libraries() {
    let golden: Vec<Json> =
        serde_json::from_str(include_str!("../golden/library_outputs.json")).unwrap();
    let mut all = Outcome::default();
    for one in &golden {
        let (name, contract) = (&one["name"], one["contract"].as_str().unwrap());
        let contract = contracts::find(contract).unwrap_or_else(|| panic!("{name}: {contract}"));
        if let Some(wanted @ ("accept" | "reject")) = one["compare"].as_str() {
            let broken = broken(contract, one);
            assert_eq!(broken.is_empty(), wanted == "accept", "{name}: {broken:#?}");
            continue;
        }
        let outcome = compare(contract, one);
        assert!(outcome.compared > 0, "nothing of {name} was compared");
        all.disagreements.extend(outcome.disagreements);
        all.not_promised.extend(outcome.not_promised);
    }
    assert!(all.disagreements.is_empty(), "{:#?}", all.disagreements);
    all.not_promised.retain(|one| !NOT_PROMISED.contains(&one.as_str()));
    assert!(all.not_promised.is_empty(), "no oracle speaks about {:#?}", all.not_promised);
}
