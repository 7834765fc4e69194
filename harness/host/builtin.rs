//! Builtin components: the reference of a contract, or one of its faults.

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

/// The builtin component `CONTRACT/reference` or `CONTRACT/fault/ID`.
///
/// # Errors
/// The name is not known: the message.
pub fn builtin<C: Contract>(name: &str) -> Result<Builtin<C>, String> {
    let contract = C::ID;
    let expected = format!("`builtin:{contract}/reference` or `builtin:{contract}/fault/ID`");
    let rest = name.strip_prefix(contract).and_then(|rest| rest.strip_prefix('/'));
    match rest.map(|rest| (rest, rest.strip_prefix("fault/"))) {
        Some(("reference", _)) => Ok(Builtin::reference()),
        Some((_, Some(id))) => {
            let mut faults = C::faults();
            match faults.iter().position(|fault| fault.id == id) {
                Some(index) => Ok(Builtin::fault(faults.swap_remove(index), 0)),
                None => {
                    let near = nearest(id, faults.iter().map(|fault| fault.id));
                    Err(format!("target: unknown fault `{id}` of `{contract}`{near}"))
                }
            }
        }
        rest => {
            let near = rest.map(|(rest, _)| nearest(rest, ["reference"])).unwrap_or_default();
            Err(format!("target: expected {expected}, found `builtin:{name}`{near}"))
        }
    }
}

/// The same, with the options under which it is what its name says.
///
/// # Errors
/// The name is not known: the message.
pub fn builtin_under_its_options<C: Contract>(name: &str) -> Result<Subject<C>, String> {
    let mut subject = Subject::new(name, builtin::<C>(name)?);
    let fault =
        C::faults().into_iter().find(|fault| name.ends_with(&format!("/fault/{}", fault.id)));
    if let Some(fault) = fault {
        subject.options = yaml::parse(fault.options).map_err(|error| error.to_string())?;
    }
    Ok(subject)
}
