//! What a component gives on the regressions of its contract, as text for a snapshot.

use std::fmt::Write as _;
use std::path::Path;

use shakedown::case_file::{CaseFile, regressions_folder};
use shakedown::component::{Call, Component};
use shakedown::contract::{Contract, round};
use shakedown::place::Place;
use shakedown::record::{Record, Value};
use shakedown::text;

/// The outputs of the components that `make` makes of options, one regression after the other.
/// Numbers have five digits, so that they are the same on every machine.
pub(crate) fn on_regressions<C: Contract, K: Component<C>>(
    corpora: &Path,
    place: Place,
    make: impl Fn(C::Options) -> K,
) -> String {
    let folder = regressions_folder(corpora, C::ID);
    let entries = std::fs::read_dir(&folder).expect("there are regressions");
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut outputs = String::new();
    for path in paths {
        let CaseFile { mut case, options, .. } = CaseFile::<C>::read(&path).unwrap();
        round(&mut case, place.dtype);
        let gradient = C::wants_gradient(&options);
        let call = Call { case: &case, options: &options, place, gradient };
        let mut component = make(options.clone());
        component.prepare(place).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy();
        writeln!(outputs, "{name}").unwrap();
        match component.call(&call) {
            Err(failure) => writeln!(outputs, "  {failure}").unwrap(),
            Ok(returned) => {
                for (field, value) in returned.output.values() {
                    let Some(value) = value else { continue };
                    let value = match value {
                        Value::Float(numbers) => Value::Float(numbers.mapv(five_digits)),
                        other => other,
                    };
                    writeln!(outputs, "  {field} {}", text::value(&value)).unwrap();
                }
            }
        }
    }
    outputs
}

/// The number rounded to five digits; what is far below 1 is rounding and shown as 0.
fn five_digits(x: f64) -> f64 {
    if !x.is_finite() || x.abs() < 1e-6 {
        return if x.is_finite() { 0.0 } else { x };
    }
    format!("{x:.4e}").parse().expect("a formatted number can be read")
}
