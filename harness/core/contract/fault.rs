//! Faults: known wrong behaviours of a contract, each a small function and a real bug.

use std::sync::Arc;

use crate::contract::definition::Definition;
use crate::contract::options::AnyOptions;
use crate::value::place::Dtype;
use crate::value::record::{AnyRecord, Field, Shared, is_float};

/// A known wrong behaviour. `own_contract` of the crate `shakedown` shows some.
pub struct Fault<D: Definition> {
    /// The id inside its contract: `baseline-missing`.
    pub id: &'static str,
    /// What it does wrong, in one line: reports quote it.
    pub summary: &'static str,
    /// The real bug: repository and number, or where it was seen.
    pub source: &'static str,
    /// The options under which it shows, as YAML.
    pub options: &'static str,
    /// What it does, in as many variants as there are sizes of a constant, say.
    pub variants: Vec<Variant<D>>,
}

/// A wrong implementation.
pub type Function<D> =
    fn(&<D as Definition>::Case, &<D as Definition>::Options, Dtype) -> <D as Definition>::Output;

/// The same, which may hold what it was made of.
pub struct Wrong<D: Definition>(pub Box<Closure<D::Case, D::Options, D::Output>>);

type Closure<Case, Options, Output> = dyn Fn(&Case, &Options, Dtype) -> Output + Send + Sync;

/// Makes other inputs of some.
pub type Change<D> = fn(&mut <D as Definition>::Case, &<D as Definition>::Options);

/// Other options in place of some.
pub type Others<D> = fn(<D as Definition>::Options) -> <D as Definition>::Options;

/// What a fault does.
pub enum Variant<D: Definition> {
    /// Gives wrong numbers.
    Gives(Wrong<D>),
    /// Does what the reference does under other options.
    AsIf(Others<D>),
    /// Does what the reference does with other inputs.
    On(Change<D>),
}

impl<D: Definition> Variant<D> {
    /// Gives wrong numbers.
    pub fn gives(
        function: impl Fn(&D::Case, &D::Options, Dtype) -> D::Output + Send + Sync + 'static,
    ) -> Self {
        Variant::Gives(Wrong(Box::new(function)))
    }
}

impl<D: Definition> Fault<D> {
    /// A fault that does nothing yet.
    pub const fn new(id: &'static str, summary: &'static str) -> Self {
        Fault { id, summary, source: "", options: "{}", variants: Vec::new() }
    }

    /// The real bug: repository and number, or where it was seen.
    pub fn seen(self, source: &'static str) -> Self {
        Fault { source, ..self }
    }

    /// The options under which it shows, as YAML; the defaults, unless said.
    pub fn under(self, options: &'static str) -> Self {
        Fault { options, ..self }
    }

    /// It gives wrong numbers, in one of these ways.
    pub fn gives(self, variants: &'static [Function<D>]) -> Self {
        self.made_of(variants.iter().map(|function| Variant::gives(function)))
    }

    /// It gives wrong numbers, in one of these ways, each made of its one wrong step.
    pub fn made_of(mut self, variants: impl IntoIterator<Item = Variant<D>>) -> Self {
        self.variants.extend(variants);
        self
    }

    /// It does what the reference does under other options.
    pub fn as_if(self, variants: &'static [Others<D>]) -> Self {
        self.made_of(variants.iter().copied().map(Variant::AsIf))
    }

    /// It does what the reference does with other inputs.
    pub fn on(self, variants: &'static [Change<D>]) -> Self {
        self.made_of(variants.iter().copied().map(Variant::On))
    }
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

/// A fault of any contract.
pub struct AnyFault {
    /// The id inside its contract: `baseline-missing`.
    pub id: &'static str,
    /// What it does wrong, in one line: reports quote it.
    pub summary: &'static str,
    /// The real bug: repository and number, or where it was seen.
    pub source: &'static str,
    /// The options under which it shows, as YAML.
    pub options: &'static str,
    /// What it does.
    pub behaviour: Behaviour,
}

/// What a fault of any contract does.
pub enum Behaviour {
    /// Gives wrong numbers, in as many variants as there are functions.
    Gives(Vec<AnyFunction>),
    /// Misbehaves around the reference's right numbers.
    Misbehaves(Misbehaviour),
}

type AnyWrong = dyn Fn(&dyn AnyRecord, &dyn AnyOptions, Dtype) -> Shared + Send + Sync;

/// A wrong implementation of any contract.
pub struct AnyFunction {
    pub function: Box<AnyWrong>,
    pub as_if: Option<Conventions>,
}

/// The same, of any contract.
pub type Conventions = Box<dyn Fn(&dyn AnyOptions) -> Arc<dyn AnyOptions> + Send + Sync>;

impl AnyFunction {
    /// What it gives for a case, rounded to the dtype.
    pub fn output(&self, case: &dyn AnyRecord, options: &dyn AnyOptions, dtype: Dtype) -> Shared {
        (self.function)(case, options, dtype)
    }

    /// The options that it goes by, where it is the reference under other ones.
    pub fn as_if(&self, options: &dyn AnyOptions) -> Option<Arc<dyn AnyOptions>> {
        self.as_if.as_ref().map(|as_if| as_if(options))
    }
}

impl AnyFault {
    /// The functions of a fault that gives wrong numbers; none of one that misbehaves.
    pub fn variants(&self) -> &[AnyFunction] {
        match &self.behaviour {
            Behaviour::Gives(variants) => variants,
            Behaviour::Misbehaves(_) => &[],
        }
    }
}

/// The misbehaviours, as faults of every contract with these outputs.
pub fn misbehaviours(outputs: &[Field]) -> Vec<AnyFault> {
    let fault = |id, summary, kind| AnyFault {
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
    faults.retain(|fault| fault.id != "gives-nan" || outputs.iter().any(is_float));
    faults
}
