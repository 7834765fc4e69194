//! Outputs of real library functions, on small inputs: our oracles agree with every one of them
//! under the options that describe the library.

use serde_json::{Map, Value as Json};
use shakedown::contract::{Contract, round};
use shakedown::contracts::{Visit, visit};
use shakedown::place::Dtype;
use shakedown::record::{Kind, Record, Value};

/// A number that may be written `{"nonfinite": "-inf"}`.
fn number(json: &Json) -> f64 {
    match json.get("nonfinite").and_then(Json::as_str) {
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        _ => json.as_f64().expect("a number"),
    }
}

fn flatten<'a>(json: &'a Json, shape: &mut Vec<usize>, depth: usize, leaves: &mut Vec<&'a Json>) {
    match json.as_array() {
        None => leaves.push(json),
        Some(items) => {
            if shape.len() == depth {
                shape.push(items.len());
            }
            items.iter().for_each(|item| flatten(item, shape, depth + 1, leaves));
        }
    }
}

fn record<R: Record>(json: &Map<String, Json>) -> R {
    let fields = R::fields();
    R::from_values(&mut |name| {
        let field = fields.iter().find(|field| field.name == name)?;
        let (mut shape, mut leaves) = (Vec::new(), Vec::new());
        flatten(json.get(name)?, &mut shape, 0, &mut leaves);
        Some(match field.kind {
            Kind::Float => {
                let numbers = leaves.into_iter().map(number).collect();
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
            Kind::List => return None,
        })
    })
    .unwrap()
}

/// How far a library's own arithmetic may be off: 1e-9 at f64, 3e-7 at f32, and what its note says.
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

struct Agrees<'a>(&'a Json);

impl Visit for Agrees<'_> {
    type Output = Option<String>;

    fn visit<C: Contract>(self) -> Option<String> {
        let name = self.0["name"].as_str().unwrap();
        let options: C::Options = serde_json::from_value(self.0["options"].clone()).unwrap();
        let mut case: C::Case = record(self.0["inputs"].as_object().unwrap());
        let dtype = if self.0["dtype"] == "f32" { Dtype::F32 } else { Dtype::F64 };
        round(&mut case, dtype);
        let output: C::Output = record(self.0["outputs"].as_object().unwrap());
        for expected in C::oracle(&case, &options, dtype) {
            let fields = output.values();
            let (_, found) = fields.iter().find(|(name, _)| *name == expected.field).unwrap();
            let found = found.as_ref().and_then(Value::floats).unwrap();
            for (found, number) in found.iter().zip(&expected.numbers) {
                let near = (found - number.value).abs() <= allowed(self.0) * (1.0 + found.abs());
                if *found != number.value && !near {
                    return Some(format!("{name}: library {found}, oracle {}", number.value));
                }
            }
        }
        None
    }
}

#[test]
fn oracles_agree_with_the_libraries() {
    let golden: Vec<Json> =
        serde_json::from_str(include_str!("golden/library_outputs.json")).unwrap();
    let mut checked = 0;
    let mut disagreements = Vec::new();
    for one in &golden {
        if let Some(outcome) = visit(one["contract"].as_str().unwrap(), Agrees(one)) {
            checked += 1;
            disagreements.extend(outcome);
        }
    }
    assert!(disagreements.is_empty(), "{disagreements:#?}");
    assert_eq!(checked, golden.len(), "every case is of a contract that exists");
}
