//! Faults: known wrong behaviours of a contract, each a small function and a real bug.

use std::collections::HashMap;

use ndarray::{ArrayD, Axis, IxDyn};

use crate::component::{Call, Component, Failure, Gradients, Returned, guarded};
use crate::contract::{Contract, round};
use crate::laws::is_float;
use crate::place::{Dtype, Place};
use crate::record::{Record, Value};

/// A known wrong behaviour.
pub struct Fault<C: Contract> {
    /// The id inside its contract: `baseline-missing`.
    pub id: &'static str,
    /// What it does wrong, in one line: reports quote it.
    pub summary: &'static str,
    /// The real bug: repository and number, or where it was seen.
    pub source: &'static str,
    /// The options under which it shows, as YAML.
    pub options: &'static str,
    /// What it does.
    pub behaviour: Behaviour<C>,
}

/// A wrong implementation.
pub type Function<C> =
    fn(&<C as Contract>::Case, &<C as Contract>::Options, Dtype) -> <C as Contract>::Output;

/// What a fault does.
pub enum Behaviour<C: Contract> {
    /// Gives wrong numbers, in as many variants as there are functions (sizes of a constant, say).
    Gives(&'static [Function<C>]),
    /// Misbehaves around the reference's right numbers.
    Misbehaves(Misbehaviour),
}

/// What any component can do wrong besides its numbers. Proves the shared laws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// Panics on some cases.
    Raises,
    /// Does not answer some cases in time, or so it reports: nothing waits for it.
    Hangs,
    /// Ends its process on some cases, or so it reports.
    Dies,
    /// Gives the first output field without its last element along the first axis.
    DropsARow,
    /// Puts NaN into some outputs.
    GivesNan,
    /// Changes its inputs.
    ChangesInputs,
    /// Answers another number every second time.
    Flips,
}

/// The misbehaviours, as faults of every contract.
pub fn misbehaviours<C: Contract>() -> Vec<Fault<C>> {
    let floats = C::Output::fields().iter().any(is_float);
    let fault = |id, summary, kind| Fault {
        id,
        summary,
        source: "any contract; see the laws",
        options: "{}",
        behaviour: Behaviour::Misbehaves(kind),
    };
    let mut faults = vec![
        fault("raises", "panics on some inputs", Misbehaviour::Raises),
        fault("hangs", "does not answer some inputs in time", Misbehaviour::Hangs),
        fault("dies", "ends its process on some inputs", Misbehaviour::Dies),
        fault("drops-a-row", "gives one row fewer than it got", Misbehaviour::DropsARow),
        fault("gives-nan", "gives NaN for some inputs", Misbehaviour::GivesNan),
        fault("changes-its-inputs", "writes into its inputs", Misbehaviour::ChangesInputs),
        fault("flips", "answers differently every second time", Misbehaviour::Flips),
    ];
    faults.retain(|fault| fault.id != "gives-nan" || floats);
    faults
}

/// A builtin component: the reference of a contract, or one of its faults.
pub struct Builtin<C: Contract> {
    fault: Option<Fault<C>>,
    variant: usize,
    calls: u64,
}

impl<C: Contract> Builtin<C> {
    /// The reference.
    pub fn reference() -> Self {
        Builtin { fault: None, variant: 0, calls: 0 }
    }

    /// A fault, in its variant number `variant`.
    pub fn fault(fault: Fault<C>, variant: usize) -> Self {
        Builtin { fault: Some(fault), variant, calls: 0 }
    }
}

impl<C: Contract> Component<C> for Builtin<C> {
    fn call(&mut self, call: &Call<'_, C>) -> Result<Returned<C>, Failure> {
        self.calls += 1;
        let Call { case, options, place, .. } = *call;
        let mut changed = Vec::new();
        let mut output = match self.fault.as_ref().map(|fault| &fault.behaviour) {
            Some(Behaviour::Gives(variants)) => {
                guarded(|| variants[self.variant](case, options, place.dtype))?
            }
            None => guarded(|| C::reference(case, options, place.dtype))?,
            Some(Behaviour::Misbehaves(kind)) => {
                if *kind == Misbehaviour::ChangesInputs {
                    changed.push(C::Case::fields()[0].name.to_owned());
                }
                let output = guarded(|| C::reference(case, options, place.dtype))?;
                misbehave::<C>(*kind, self.calls, output)?
            }
        };
        round(&mut output, place.dtype);
        Ok(Returned { output, changed, no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }

    fn reads(&self, _: &str) -> bool {
        true
    }
}

fn misbehave<C: Contract>(
    kind: Misbehaviour,
    calls: u64,
    mut output: C::Output,
) -> Result<C::Output, Failure> {
    let mut first = true;
    let mut spoil = |spoiled: f64| {
        output.for_floats(&mut |_, floats| {
            if let (true, Some(x)) = (first, floats.first_mut()) {
                // Only where the number is large enough to be no constant of the contract.
                *x = if x.abs() > 0.5 { spoiled } else { *x };
            }
            first = false;
        });
    };
    match kind {
        Misbehaviour::ChangesInputs => {}
        Misbehaviour::GivesNan => spoil(f64::NAN),
        Misbehaviour::Flips if calls.is_multiple_of(2) => {
            spoil(-7.0);
            output = with_first(output, |value| match value {
                Value::Text(texts) => Value::Text(texts.mapv(|text| text.map(|_| "?".to_owned()))),
                other => other,
            })?;
        }
        Misbehaviour::Flips => {}
        Misbehaviour::Raises | Misbehaviour::Hangs | Misbehaviour::Dies => {
            let large = output.values().into_iter().any(|(_, value)| match value {
                Some(Value::Float(numbers)) => numbers.iter().any(|x| x.abs() > 0.5),
                Some(Value::Text(texts)) => texts.iter().flatten().any(|text| !text.is_empty()),
                _ => false,
            });
            let planted = match kind {
                Misbehaviour::Hangs => Failure::TimedOut { limit_ms: 0 },
                Misbehaviour::Dies => {
                    Failure::Died { how: "exit status 3 (planted)".to_owned(), restart: false }
                }
                _ => Failure::Raised {
                    message: "a panic: planted".to_owned(),
                    traceback: String::new(),
                },
            };
            if large {
                return Err(planted);
            }
        }
        Misbehaviour::DropsARow => {
            output = with_first(output, |value| {
                let rows = value.shape().first().copied();
                match (value, rows) {
                    (Value::Float(array), Some(rows)) => {
                        Value::Float(array.slice_axis(Axis(0), (0..rows - 1).into()).to_owned())
                    }
                    (Value::Text(array), Some(rows)) => {
                        Value::Text(array.slice_axis(Axis(0), (0..rows - 1).into()).to_owned())
                    }
                    // A single number: it comes as an array of none.
                    (Value::Float(_), None) => Value::Float(ArrayD::zeros(IxDyn(&[0]))),
                    (other, _) => other,
                }
            })?;
        }
    }
    Ok(output)
}

/// The output with another value in its first field.
fn with_first<R: Record>(output: R, change: impl FnOnce(Value) -> Value) -> Result<R, Failure> {
    let mut values = output.values();
    let (_, first) = values.first_mut().expect("an output has a field");
    *first = first.take().map(change);
    let mut values: HashMap<_, _> = values.into_iter().collect();
    R::from_values(&mut |field| values.remove(field).flatten())
        .map_err(|(name, why)| Failure::Malformed { problem: format!("`{name}`: {why}") })
}
