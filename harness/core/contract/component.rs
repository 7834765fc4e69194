//! Components: one implementation of a contract, wherever it runs.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use ndarray::ArrayD;

use crate::contract::cause::{Cause, Found};
use crate::contract::definition::{Definition, Erased};
use crate::value::error::Error;
use crate::value::place::{Device, Place};
use crate::value::record::Value;

/// One call of a component.
pub struct Call<'a, D: Definition = Erased> {
    /// The inputs, rounded to the place's dtype.
    pub case: &'a D::Case,
    /// The options in force.
    pub options: &'a D::Options,
    /// Where, and in which format.
    pub place: Place,
    /// Whether the gradients of the leaves are asked for.
    pub gradient: bool,
}

/// What a call gave.
pub struct Returned<D: Definition = Erased> {
    /// The outputs, as f64.
    pub output: D::Output,
    /// The inputs that the call changed: each with its name, and where the host knows it with the
    /// first cell that differs, `rewards: [0, 1] was 0.5 and is 1`.
    pub changed: Vec<String>,
    /// The leaves that were asked for a gradient and got none; in the output it is 0.
    pub no_gradient: Vec<String>,
}

/// A gradient of 0 by name for each leaf that got none: what is not in the graph does not matter.
pub fn no_gradients(leaves: &[String], inputs: &[(&str, Value)]) -> HashMap<String, Value> {
    let zeros = |leaf: &String| {
        let (_, input) = inputs.iter().find(|(name, _)| name == leaf)?;
        Some((format!("grad_{leaf}"), Value::Float(ArrayD::zeros(input.shape()))))
    };
    leaves.iter().filter_map(zeros).collect()
}

/// The numbers of an output: those that are `whole` may come as integers or booleans.
pub fn numbers(whole: &[&str], name: &str, value: Value) -> Value {
    match value {
        Value::Int(array) if whole.contains(&name) => Value::Float(array.mapv(|x| x as f64)),
        Value::Bool(array) if whole.contains(&name) => Value::Float(array.mapv(f64::from)),
        value => value,
    }
}

/// One implementation of a contract: of the one whose types it names, or of any.
pub trait Component<D: Definition = Erased>: Send {
    /// Calls it.
    ///
    /// # Errors
    /// What went wrong in the component; never what went wrong in shakedown.
    fn call(&mut self, call: &Call<'_, D>) -> Result<Returned<D>, Failure>;

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

    /// What a reader of its report should know of how it runs, once it is prepared.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The file and the line where it is written, once it is prepared and where that is known.
    fn source(&self) -> Option<(PathBuf, usize)> {
        None
    }

    /// The next call is on the smallest case that breaks an invariant: whoever runs it may keep
    /// what it was given.
    fn shows(&mut self, _: &str) {}

    /// Forgets what earlier calls have left behind, so that the next one is as its first; whether
    /// it can.
    fn begin_anew(&mut self) -> bool {
        false
    }

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
#[derive(Clone, Debug)]
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
        /// How long it took to start, where the next call has to start it anew.
        restart: Option<Duration>,
    },
    /// Its reply belonged to another call, or was too large for one: its process was ended, as what
    /// follows cannot be trusted.
    Confused {
        /// What it answered.
        problem: String,
        /// How long it took to start.
        restart: Duration,
    },
    /// The names, shapes or types of the output are not what the contract promises.
    Malformed {
        /// What was expected and what was found.
        problem: String,
    },
}

impl Failure {
    /// What it is for whoever reports it: the message, and in what way it failed.
    pub fn found(&self) -> Found {
        let cause = match self {
            Failure::Raised { message, .. } => Cause::raised(message),
            Failure::TimedOut { .. } | Failure::Died { .. } => Cause::NoAnswer,
            Failure::Confused { .. } | Failure::Malformed { .. } => Cause::Malformed,
        };
        Found::new(self.to_string(), cause)
    }

    /// The law that it breaks.
    pub fn law(&self) -> &'static str {
        match self {
            Failure::Raised { .. } => "does-not-raise",
            Failure::TimedOut { .. } => "within-time-limit",
            Failure::Died { .. } => "does-not-crash",
            Failure::Confused { .. } | Failure::Malformed { .. } => "well-formed",
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
            Failure::Confused { problem, .. } | Failure::Malformed { problem } => {
                f.write_str(problem)
            }
        }
    }
}
