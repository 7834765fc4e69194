//! Components made of functions on host arrays.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use shakedown_core::contract::Contract;
use shakedown_core::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown_core::value::place::Place;

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

impl<C: Contract, F: HostFunction<C>> Component<C> for HostFn<F> {
    fn call(&mut self, call: &Call<'_, C>) -> Result<Returned<C>, Failure> {
        let output = guarded(|| (self.0)(call.case).into())?;
        Ok(Returned { output, changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn home(&self) -> Place {
        Place::CPU_F64
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
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
