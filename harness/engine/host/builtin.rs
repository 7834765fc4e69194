//! Builtin components: the reference of a contract, or one of its faults.

use ndarray::{ArrayD, Axis, IxDyn};

use crate::host::function::guarded;
use shakedown_core::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::fault::{AnyFault, Behaviour, Misbehaviour};
use shakedown_core::value::error::nearest;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::{AnyRecord, Shared, Value, ValueRef};

/// A builtin component: the reference of a contract, or one of its faults.
pub struct Builtin {
    contract: &'static dyn AnyContract,
    fault: Option<&'static AnyFault>,
    variant: usize,
    calls: u64,
}

impl Builtin {
    /// The reference.
    pub fn reference(contract: &'static dyn AnyContract) -> Self {
        Builtin { contract, fault: None, variant: 0, calls: 0 }
    }

    /// A fault, in its variant number `variant`.
    pub fn fault(
        contract: &'static dyn AnyContract,
        fault: &'static AnyFault,
        variant: usize,
    ) -> Self {
        Builtin { contract, fault: Some(fault), variant, calls: 0 }
    }

    /// The builtin component `CONTRACT/reference` or `CONTRACT/fault/ID`.
    ///
    /// # Errors
    /// The name is not known: the message.
    pub fn named(contract: &'static dyn AnyContract, name: &str) -> Result<Self, String> {
        let id = contract.id();
        let expected = format!("`builtin:{id}/reference` or `builtin:{id}/fault/ID`");
        let rest = name.strip_prefix(id).and_then(|rest| rest.strip_prefix('/'));
        match rest.map(|rest| (rest, rest.strip_prefix("fault/"))) {
            Some(("reference", _)) => Ok(Builtin::reference(contract)),
            Some((_, Some(fault))) => match contract.fault(fault) {
                Some(fault) => Ok(Builtin::fault(contract, fault, 0)),
                None => {
                    let near = nearest(fault, contract.faults().iter().map(|fault| fault.id));
                    Err(format!("target: unknown fault `{fault}` of `{id}`{near}"))
                }
            },
            rest => {
                let near = rest.map(|(rest, _)| nearest(rest, ["reference"])).unwrap_or_default();
                Err(format!("target: expected {expected}, found `builtin:{name}`{near}"))
            }
        }
    }

    /// The options under which it is what its name says, as YAML.
    pub fn options(&self) -> &'static str {
        self.fault.map_or("{}", |fault| fault.options)
    }
}

impl Component for Builtin {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        self.calls += 1;
        let Call { case, options, place, .. } = *call;
        let right = || self.contract.reference(&**case, &**options, place.dtype);
        let mut changed = Vec::new();
        let output = match self.fault.map(|fault| &fault.behaviour) {
            Some(Behaviour::Gives(variants)) => {
                guarded(|| variants[self.variant].output(&**case, &**options, place.dtype))?
            }
            None => guarded(right)?,
            Some(Behaviour::Misbehaves(kind)) => {
                if *kind == Misbehaviour::ChangesInputs {
                    changed.push(self.contract.inputs()[0].name.to_owned());
                }
                misbehave(self.contract, *kind, self.calls, guarded(right)?)?
            }
        };
        let output = self.contract.stored(&*output, place.dtype);
        Ok(Returned { output, changed, no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }

    fn reads(&self, _: &str) -> bool {
        true
    }
}

fn misbehave(
    contract: &dyn AnyContract,
    kind: Misbehaviour,
    calls: u64,
    output: Shared,
) -> Result<Shared, Failure> {
    let spoil = |spoiled: f64| {
        let mut first = true;
        // Where any output will do, the first one may be small everywhere.
        let any = contract.outputs().iter().all(|field| field.optional);
        output.with_floats(&mut |_, floats| {
            // Only a number that is large enough to be no constant of the contract.
            let large = floats.iter_mut().find(|x| first && x.abs() > LARGE);
            first &= any && large.is_none();
            if let Some(x) = large {
                *x = spoiled;
            }
        })
    };
    match kind {
        Misbehaviour::ChangesInputs => Ok(output),
        Misbehaviour::GivesNan => Ok(spoil(f64::NAN)),
        Misbehaviour::Flips if calls.is_multiple_of(2) => {
            with_first(contract, &*spoil(-7.0), |value| match value {
                Value::Text(texts) => Value::Text(texts.mapv(|text| text.map(|_| "?".to_owned()))),
                other => other,
            })
        }
        Misbehaviour::Flips => Ok(output),
        Misbehaviour::Raises | Misbehaviour::Hangs | Misbehaviour::Dies => {
            let planted = match kind {
                Misbehaviour::Hangs => Failure::TimedOut { limit_ms: 0 },
                Misbehaviour::Dies => {
                    Failure::Died { how: "exit status 3 (planted)".to_owned(), restart: None }
                }
                _ => Failure::Raised {
                    message: "a panic: planted".to_owned(),
                    traceback: String::new(),
                },
            };
            if is_large(&*output) { Err(planted) } else { Ok(output) }
        }
        Misbehaviour::DropsARow => with_first(contract, &*output, |value| {
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
        }),
    }
}

/// A larger number is no constant of a contract. The gradient of a step is seldom above 0.05, that
/// of KTO never above 0.0125 by its defaults.
const LARGE: f64 = 0.005;

/// Whether an output has a number that is no constant of a contract, or a text.
fn is_large(output: &dyn AnyRecord) -> bool {
    let mut large = false;
    output.each(&mut |_, value| match &value {
        Some(ValueRef::Float(numbers)) => large |= numbers.iter().any(|x| x.abs() > LARGE),
        Some(value) => value.for_texts(|text| large |= text.is_some_and(|text| !text.is_empty())),
        None => {}
    });
    large
}

/// The output with another value in its first field.
fn with_first(
    contract: &dyn AnyContract,
    output: &dyn AnyRecord,
    change: impl FnOnce(Value) -> Value,
) -> Result<Shared, Failure> {
    let mut values = output.values();
    let (_, first) = values.first_mut().expect("an output has a field");
    *first = first.take().map(change);
    let get = &mut |field| {
        let value = values.iter_mut().find(|(name, _)| *name == field);
        value.and_then(|(_, value)| value.take())
    };
    contract
        .output(get)
        .map_err(|(name, why)| Failure::Malformed { problem: format!("`{name}`: {why}") })
}
