//! Components made of functions on host arrays.

use std::any::type_name;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use shakedown_core::contract::Contract;
use shakedown_core::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown_core::value::error::Error;
use shakedown_core::value::place::{Device, Dtype, Place};
use shakedown_core::value::record::{Record as _, Value};

/// A function from a case on host arrays to anything that an output can be made of.
pub trait HostFunction<C: Contract>: FnMut(&C::Case) -> Self::Returned + Send {
    /// What it returns.
    type Returned: Into<C::Output>;
}

impl<C, F, R> HostFunction<C> for F
where
    C: Contract,
    F: FnMut(&C::Case) -> R + Send,
    R: Into<C::Output>,
{
    type Returned = R;
}

/// A component made of a function on host arrays.
pub struct HostFn<F>(pub F);

impl<F> HostFn<F> {
    /// Whether it returns the output itself, with its fields for gradients: what is left out there
    /// is missing.
    fn has_gradients<C: Contract>() -> bool
    where
        F: HostFunction<C>,
    {
        !C::LEAVES.is_empty() && type_name::<F::Returned>() == type_name::<C::Output>()
    }
}

impl<C: Contract, F: HostFunction<C>> Component<C> for HostFn<F> {
    fn call(&mut self, call: &Call<'_, C>) -> Result<Returned<C>, Failure> {
        let output: C::Output = guarded(|| (self.0)(call.case).into())?;
        let mut no_gradient = Vec::new();
        if call.gradient && HostFn::<F>::has_gradients::<C>() {
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
        Place { device: Device::Cpu, dtype: dtype_of::<F::Returned>() }
    }

    fn gradients(&self, _: Place) -> Gradients {
        if HostFn::<F>::has_gradients::<C>() { Gradients::Returned } else { Gradients::Optional }
    }

    fn notes(&self) -> Vec<String> {
        let how = match HostFn::<F>::has_gradients::<C>() {
            true => "gradients: those in `grad_…`; `.by_differences()` takes them from the values",
            false => "gradients: by central differences of the values, at f64 alone",
        };
        if C::LEAVES.is_empty() { Vec::new() } else { vec![how.to_owned()] }
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

/// The format in which a type holds its floats, `f32` of a `Vec<f32>`: the coarsest that its name
/// names; `f64` where it names none, as the name of an output does.
fn dtype_of<T>() -> Dtype {
    let name = type_name::<T>();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let has = |wanted: &str| words.clone().any(|word| word == wanted);
    [Dtype::F16, Dtype::Bf16, Dtype::F32]
        .into_iter()
        .find(|dtype| has(dtype.name()))
        .unwrap_or(Dtype::F64)
}

/// Runs `f`, turning a panic into a failure without a word on standard error.
pub fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, Failure> {
    quiet_panics();
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    GUARDED.set(false);
    result.map_err(|panic| Failure::Raised {
        message: format!("a panic: {}", panic_message(&*panic)),
        traceback: String::new(),
    })
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Puts a panic hook in front of the current one that is silent about guarded panics: a component
/// that panics does so thousands of times while its case is shrunk. It also keeps libfuzzer-sys,
/// which aborts in its own hook, from taking a guarded panic for a crash.
pub fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                before(info);
            }
        }));
    });
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with a payload that is no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    mod half {
        #[expect(non_camel_case_types, reason = "as the crate calls them")]
        pub(super) struct bf16;
        #[expect(non_camel_case_types, reason = "as the crate calls them")]
        pub(super) struct f16;
    }

    #[test]
    fn the_dtype_is_that_of_what_is_returned() {
        assert_eq!(dtype_of::<Vec<f32>>(), Dtype::F32);
        assert_eq!(dtype_of::<(ndarray::Array2<f64>, Option<Vec<f32>>)>(), Dtype::F32);
        assert_eq!(dtype_of::<Vec<half::bf16>>(), Dtype::Bf16);
        assert_eq!(dtype_of::<half::f16>(), Dtype::F16);
        assert_eq!(dtype_of::<ndarray::Array1<f64>>(), Dtype::F64);
        assert_eq!(dtype_of::<Vec<String>>(), Dtype::F64);
    }
}
