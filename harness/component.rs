//! Components: one implementation of a contract, wherever it runs.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use ndarray::ArrayD;

use crate::contract::Contract;
use crate::error::Error;
use crate::place::{Device, Place};
use crate::record::Value;

/// One call of a component.
pub struct Call<'a, C: Contract> {
    /// The inputs, rounded to the place's dtype.
    pub case: &'a C::Case,
    /// The options in force.
    pub options: &'a C::Options,
    /// Where, and in which format.
    pub place: Place,
    /// Whether the gradients of the leaves are asked for.
    pub gradient: bool,
}

/// What a call gave.
pub struct Returned<C: Contract> {
    /// The outputs, as f64.
    pub output: C::Output,
    /// The inputs that the call changed.
    pub changed: Vec<String>,
    /// The leaves that were asked for a gradient and got none; in the output it is 0.
    pub no_gradient: Vec<String>,
}

/// A gradient of 0 by name for each leaf that got none: what is not in the graph does not matter.
pub(crate) fn no_gradients(leaves: &[String], inputs: &[(&str, Value)]) -> HashMap<String, Value> {
    let zeros = |leaf: &String| {
        let (_, input) = inputs.iter().find(|(name, _)| name == leaf)?;
        Some((format!("grad_{leaf}"), Value::Float(ArrayD::zeros(input.shape()))))
    };
    leaves.iter().filter_map(zeros).collect()
}

/// The numbers of an output: flags may come as integers or booleans.
pub(crate) fn numbers<C: Contract>(name: &str, value: Value) -> Value {
    match value {
        Value::Int(array) if C::FLAGS.contains(&name) => Value::Float(array.mapv(|x| x as f64)),
        Value::Bool(array) if C::FLAGS.contains(&name) => Value::Float(array.mapv(f64::from)),
        value => value,
    }
}

/// One implementation of the contract `C`.
pub trait Component<C: Contract>: Send {
    /// Calls it.
    ///
    /// # Errors
    /// What went wrong in the component; never what went wrong in shakedown.
    fn call(&mut self, call: &Call<'_, C>) -> Result<Returned<C>, Failure>;

    /// Makes it ready for a place: `Some(why)` where the place is not here.
    ///
    /// # Errors
    /// It does not load.
    fn prepare(&mut self, place: Place) -> Result<Option<String>, Error> {
        Ok(match place.device {
            Device::Cpu => None,
            Device::Cuda(_) => Some("a component on host arrays runs on the CPU only".to_owned()),
        })
    }

    /// The place at which it is checked unless another is asked for.
    fn home(&self) -> Place {
        Place::CPU_F32
    }

    /// How its gradients come about.
    fn gradients(&self, place: Place) -> Gradients;

    /// Whether it asks for the value of an option, and so follows another one.
    fn reads(&self, _: &str) -> bool {
        false
    }
}

/// How the gradients of a component come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gradients {
    /// They come back with a call that asks for them; one that is missing is a finding.
    Returned,
    /// It may return them; one that is missing is taken by central differences at f64.
    Optional,
    /// There are none, for this reason.
    None(String),
}

/// A call that gave no usable output: the component raised, hung, died, or answered nonsense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It raised an exception, or panicked.
    Raised {
        /// The exception's type and message.
        message: String,
        /// The last lines of the traceback, empty where there is none.
        traceback: String,
    },
    /// It did not answer in time.
    TimedOut {
        /// The limit.
        limit_ms: u64,
    },
    /// Its process ended.
    Died {
        /// How: `exit status 3`, `killed by signal 11 (SIGSEGV)`.
        how: String,
        /// Whether the next call has to start it anew, which may take seconds.
        restart: bool,
    },
    /// The names, shapes or types of the output are not what the contract promises.
    Malformed {
        /// What was expected and what was found.
        problem: String,
    },
}

impl Failure {
    /// The law that it breaks.
    pub fn law(&self) -> &'static str {
        match self {
            Failure::Raised { .. } => "total",
            Failure::TimedOut { .. } => "in-time",
            Failure::Died { .. } => "survives",
            Failure::Malformed { .. } => "well-formed",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Raised { message, traceback } => {
                write!(f, "raised {message}")?;
                if !traceback.is_empty() {
                    write!(f, "\n{traceback}")?;
                }
                Ok(())
            }
            Failure::TimedOut { limit_ms } => write!(f, "did not answer within {limit_ms} ms"),
            Failure::Died { how, .. } => write!(f, "its process ended: {how}"),
            Failure::Malformed { problem } => f.write_str(problem),
        }
    }
}

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
pub(crate) fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, Failure> {
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
