//! Components made of functions on host arrays.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, set_hook, take_hook};
use std::path::PathBuf;
use std::sync::Once;

use shakedown_core::contract::Contract;
use shakedown_core::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown_core::contract::into_output::{Form, IntoOutput};
use shakedown_core::value::error::Error;
use shakedown_core::value::place::{Device, Dtype, Place};
use shakedown_core::value::record::{Field, Record as _, Value};

/// A function from a case on host arrays to whatever can be made its outputs.
pub trait HostFunction<C: Contract>: FnMut(&C::Case) -> Self::Returned {
    /// What it returns.
    type Returned: IntoOutput<C::Output>;
}

impl<C, F, R> HostFunction<C> for F
where
    C: Contract,
    F: FnMut(&C::Case) -> R,
    R: IntoOutput<C::Output>,
{
    type Returned = R;
}

/// A component made of a function on host arrays.
pub struct HostFn<F> {
    /// The function.
    pub function: F,
    /// The outputs that it returns, in their order, where they are named.
    pub names: &'static [&'static str],
    /// The file and the line where it is written, where they are known.
    pub source: Option<(&'static str, u32)>,
}

impl<F> HostFn<F> {
    /// Of a function, whose outputs have the names that their types tell.
    pub fn new(function: F) -> Self {
        HostFn { function, names: &[], source: None }
    }

    /// Whether it returns gradients: what is left out among them is missing.
    fn has_gradients<C: Contract>(&self) -> bool
    where
        F: HostFunction<C>,
    {
        let named = self.names.iter().any(|name| name.starts_with("grad_"));
        !C::LEAVES.is_empty() && (F::Returned::IS_RECORD || named)
    }
}

/// The shape that an output must have, where the case says so.
fn shape<C: Contract>(case: &C::Case, options: &C::Options, field: &Field) -> Option<Vec<usize>> {
    if let Some(leaf) = field.name.strip_prefix("grad_") {
        let mut found = None;
        case.visit(&mut |name, value| {
            if name == leaf {
                found = value.map(|value| value.shape().to_vec());
            }
        });
        return found;
    }
    let required = C::shapes(case, options).into_iter().find(|(name, _)| *name == field.name);
    required.map(|(_, shape)| shape).or_else(|| {
        let axes = C::AXES.dimensions(field)?;
        axes.into_iter().map(|axis| C::AXES.find_length(case, axis)).collect()
    })
}

impl<C: Contract, F: HostFunction<C> + Send> Component<C> for HostFn<F> {
    fn call(&mut self, call: &Call<'_, C>) -> Result<Returned<C>, Failure> {
        let form = Form {
            names: self.names,
            whole: C::WHOLE,
            shape: &|field| shape::<C>(call.case, call.options, field),
        };
        let returned = guarded(|| (self.function)(call.case))?;
        let output = returned.into_output(&form)?;
        let mut no_gradient = Vec::new();
        if call.gradient && self.has_gradients::<C>() {
            let values = output.values();
            let given = |leaf: &&str| {
                let of_leaf = |(name, value): &(&str, Option<Value>)| {
                    name.strip_prefix("grad_") == Some(leaf) && value.is_some()
                };
                values.iter().any(of_leaf)
            };
            no_gradient =
                C::LEAVES.iter().filter(|leaf| !given(leaf)).map(ToString::to_string).collect();
        }
        Ok(Returned { output, changed: Vec::new(), no_gradient })
    }

    fn home(&self) -> Place {
        Place { device: Device::Cpu, dtype: F::Returned::DTYPE.unwrap_or(Dtype::F64) }
    }

    fn gradients(&self, _: Place) -> Gradients {
        if self.has_gradients::<C>() { Gradients::Returned } else { Gradients::Optional }
    }

    fn notes(&self) -> Vec<String> {
        let how = match self.has_gradients::<C>() {
            true => "gradients: those in `grad_…`; `.by_differences()` takes them from the values",
            false => "gradients: by central differences of the values, at f64 alone",
        };
        if C::LEAVES.is_empty() { Vec::new() } else { vec![how.to_owned()] }
    }

    fn source(&self) -> Option<(PathBuf, usize)> {
        self.source.map(|(file, line)| (PathBuf::from(file), line as usize))
    }
}

/// A component whose gradients are taken from its values.
pub struct ByDifferences(pub Box<dyn Component>);

impl Component for ByDifferences {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let returned = self.0.call(call)?;
        Ok(Returned { no_gradient: Vec::new(), ..returned })
    }

    fn prepare(&mut self, place: Place) -> Result<Option<String>, Error> {
        self.0.prepare(place)
    }

    fn home(&self) -> Place {
        self.0.home()
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }

    fn notes(&self) -> Vec<String> {
        vec!["gradients: by central differences of the values, at f64 alone".to_owned()]
    }
}

/// Runs `f`, turning a panic into a failure without a word on standard error.
pub fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, Failure> {
    quiet_panics();
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    GUARDED.set(false);
    result.map_err(|panic| Failure::Raised {
        message: format!("a panic: {}", panic_message(&*panic)),
        traceback: AT.take(),
    })
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    /// Where the last guarded panic was.
    static AT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Puts a panic hook in front of the current one that is silent about guarded panics: a component
/// that panics does so thousands of times while its case is shrunk. It also keeps libfuzzer-sys,
/// which aborts in its own hook, from taking a guarded panic for a crash.
pub fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if GUARDED.get() {
                AT.set(info.location().map_or_else(String::new, place));
            } else {
                before(info);
            }
        }));
    });
}

/// The file and the line of a panic: in another crate, from the folder of the crate on.
fn place(location: &Location<'_>) -> String {
    let file = location.file();
    let within = |(_, path): (&str, &str)| Some(path.split_once('/')?.1.to_owned());
    let file = file.split_once("/registry/src/").and_then(within).unwrap_or(file.to_owned());
    format!("{file}:{}", location.line())
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with a payload that is no text")
}
