//! Points: single numbers and texts on which a component and a fault were compared, for people to
//! see how they agree.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json::json_float;

/// One number or text as the definition wants it, as the component and as the fault gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point<T> {
    /// What the definition gives.
    pub expected: T,
    /// What the component gives.
    pub component: T,
    /// What the fault gives.
    pub fault: T,
}

/// A number that JSON keeps, NaN and infinities included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub struct Real(pub f64);

impl From<Real> for Value {
    fn from(real: Real) -> Value {
        json_float(real.0)
    }
}

impl TryFrom<Value> for Real {
    type Error = String;

    fn try_from(value: Value) -> Result<Real, String> {
        let number = value.as_f64().or_else(|| match value.as_str()? {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        });
        number.map(Real).ok_or_else(|| format!("expected a number, found {value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back() {
        for x in [0.0, -0.0, 0.1, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let text = serde_json::to_string(&Real(x)).unwrap();
            let Real(read) = serde_json::from_str(&text).unwrap();
            assert_eq!(x.to_bits(), read.to_bits(), "{text}");
        }
        assert!(serde_json::from_str::<Real>("\"none\"").is_err());
    }
}
