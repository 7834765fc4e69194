//! Invariants: what must hold of every component of a contract, and how one is checked.

use std::fmt::Write as _;

use crate::contract::component::Failure;
use crate::contract::definition::Definition;
use crate::contract::doc::Doc;
use crate::contract::options::AnyOptions;
use crate::contract::outcome::{Outcome, Stop};
use crate::contract::probe::{AnyProbe, Probe};
use crate::contract::stage::Pitfall;
use crate::value::place::Place;
use crate::value::record::{AnyRecord, Shared};

/// What an invariant's file says besides its documentation: under which conditions it is checked,
/// and how. `own_contract` of the crate `shakedown` shows some.
pub struct Rule<D: Definition> {
    pub pitfall: Pitfall,
    pub catches: &'static [&'static str],
    pub needs_gradient: bool,
    pub under: fn(&D::Options) -> bool,
    pub at: fn(Place) -> bool,
    pub check: fn(&mut Probe<'_, D>) -> Outcome,
}

impl<D: Definition> Rule<D> {
    /// A check that is always made, the kind of mistake that breaking it points to, and the
    /// faults that it must catch.
    pub const fn new(
        pitfall: Pitfall,
        catches: &'static [&'static str],
        check: fn(&mut Probe<'_, D>) -> Outcome,
    ) -> Self {
        Rule { pitfall, catches, needs_gradient: false, under: |_| true, at: |_| true, check }
    }

    /// The same, made only under some options.
    pub const fn under(mut self, options: fn(&D::Options) -> bool) -> Self {
        self.under = options;
        self
    }

    /// The same, made only at some places.
    pub const fn at(mut self, places: fn(Place) -> bool) -> Self {
        self.at = places;
        self
    }

    /// The same, for components that can give gradients.
    pub const fn needs_gradient(mut self) -> Self {
        self.needs_gradient = true;
        self
    }
}

/// How an invariant is checked.
enum Check<D: Definition> {
    /// On the types of its contract.
    Own(fn(&mut Probe<'_, D>) -> Outcome),
    /// On those of any contract.
    Law(fn(&mut AnyProbe<'_>) -> Outcome),
}

/// One thing that must hold of every component of a contract.
pub struct Invariant<D: Definition> {
    /// The id inside its contract: `zero-sum`.
    pub id: &'static str,
    /// Its documentation, the head of its file.
    pub doc: Doc,
    /// The kind of mistake that breaking it points to.
    pub pitfall: Pitfall,
    /// Faults that it must catch; our own tests check that it does.
    pub catches: Vec<&'static str>,
    /// Whether it needs a component that can give gradients.
    pub needs_gradient: bool,
    under: fn(&D::Options) -> bool,
    at: fn(Place) -> bool,
    check: Check<D>,
}

impl<D: Definition> Invariant<D> {
    /// An invariant of a contract's own.
    pub fn own(id: &'static str, doc: &'static str, rule: Rule<D>) -> Self {
        let Rule { pitfall, catches, needs_gradient, under, at, check } = rule;
        let (doc, check, catches) = (Doc(doc), Check::Own(check), catches.to_vec());
        Invariant { id, doc, pitfall, catches, needs_gradient, under, at, check }
    }

    /// An invariant of any contract, which is compiled once for all of them.
    pub fn law(
        id: &'static str,
        doc: &'static str,
        pitfall: Pitfall,
        check: fn(&mut AnyProbe<'_>) -> Outcome,
    ) -> Self {
        let (doc, check) = (Doc(doc), Check::Law(check));
        let (under, at) = (|_: &D::Options| true, |_| true);
        let catches = Vec::new();
        Invariant { id, doc, pitfall, catches, needs_gradient: false, under, at, check }
    }

    /// The same, declared to catch these faults.
    pub fn catching(self, faults: &'static [&'static str]) -> Self {
        Self { catches: faults.to_vec(), ..self }
    }

    /// The same, made only under some options.
    pub fn under(self, options: fn(&D::Options) -> bool) -> Self {
        Self { under: options, ..self }
    }

    /// The same, for components that can give gradients.
    pub fn needs_gradient(self) -> Self {
        Self { needs_gradient: true, ..self }
    }

    /// Whether it is checked under these options.
    pub fn is_under(&self, options: &D::Options) -> bool {
        (self.under)(options)
    }

    /// Whether it is checked at this place.
    pub fn is_at(&self, place: Place) -> bool {
        (self.at)(place)
    }

    /// Checks it on the case of a probe.
    ///
    /// # Errors
    /// As [`Outcome`] says.
    pub fn check(&self, probe: &mut Probe<'_, D>) -> Outcome {
        match self.check {
            Check::Own(check) => check(probe),
            Check::Law(check) => check(&mut probe.any),
        }
    }
}

/// What checking came to, with the case and the failure of a call that failed.
pub type Checked = (Outcome, Option<(Shared, Failure)>);

type Under = dyn Fn(&dyn AnyOptions) -> bool + Send + Sync;
type AnyCheck = dyn Fn(AnyProbe<'_>) -> Checked + Send + Sync;

/// An invariant of any contract.
pub struct AnyInvariant {
    /// The id inside its contract: `zero-sum`.
    pub id: &'static str,
    /// Its documentation, the head of its file.
    pub doc: Doc,
    /// The kind of mistake that breaking it points to.
    pub pitfall: Pitfall,
    /// Faults that it must catch; our own tests check that it does.
    pub catches: Vec<&'static str>,
    /// Whether it needs a component that can give gradients.
    pub needs_gradient: bool,
    under: Box<Under>,
    at: fn(Place) -> bool,
    check: Box<AnyCheck>,
}

impl AnyInvariant {
    /// Whether it is checked under these options at this place.
    pub fn applies(&self, options: &dyn AnyOptions, place: Place) -> bool {
        (self.at)(place) && (self.under)(options)
    }

    /// Checks it on one case.
    pub fn check(&self, probe: AnyProbe<'_>) -> Checked {
        (self.check)(probe)
    }

    /// All that there is to say about it, as `shakedown explain` does.
    pub fn explained(&self) -> String {
        let mut text = String::new();
        for heading in Doc::HEADINGS {
            let section = self.doc.section(heading).replace('\n', "\n  ");
            let _ = writeln!(text, "\n{}\n  {section}", heading.to_lowercase());
        }
        if let Some(example) = self.doc.example() {
            let _ = writeln!(text, "\n{}", example.shown());
        }
        let _ = writeln!(text, "\npitfall: {}", self.pitfall.id());
        if !self.catches.is_empty() {
            let _ = writeln!(text, "catches: {}", self.catches.join(", "));
        }
        text
    }
}

impl<D> From<Invariant<D>> for AnyInvariant
where
    D: Definition<Case: AnyRecord, Output: AnyRecord, Options: AnyOptions>,
{
    fn from(invariant: Invariant<D>) -> Self {
        let Invariant { id, doc, pitfall, catches, needs_gradient, under, at, check } = invariant;
        let check: Box<AnyCheck> = match check {
            Check::Own(check) => Box::new(move |any| {
                let mut probe = Probe::of(any);
                let outcome = told(check(&mut probe), &mut probe.any);
                (outcome, probe.any.failed)
            }),
            Check::Law(check) => Box::new(move |mut any| {
                let outcome = told(check(&mut any), &mut any);
                (outcome, any.failed)
            }),
        };
        let under = Box::new(move |options: &dyn AnyOptions| under(options.typed()));
        AnyInvariant { id, doc, pitfall, catches, needs_gradient, under, at, check }
    }
}

/// An outcome that has its cause, and whose message shows the call that it tells of.
fn told(outcome: Outcome, probe: &mut AnyProbe<'_>) -> Outcome {
    outcome.map_err(|stop| match stop {
        Stop::Broken(found) => Stop::Broken(probe.told(found)),
        stop => stop,
    })
}

/// The list of a contract's own invariants, one file each in `invariants/`: declares the modules
/// and a function `own` that gives the list. The id is the file's name with dashes.
#[doc(hidden)]
#[macro_export]
macro_rules! __invariants {
    ($contract:ty; $( $name:ident ),+ $(,)?) => {
        $( mod $name; )+

        pub(super) fn own() -> Vec<$crate::author::Invariant<$contract>> {
            vec![$( $crate::author::Invariant::own(
                const {
                    const NAME: &[u8] = &$crate::author::bytes::<{ stringify!($name).len() }>(
                        stringify!($name),
                    );
                    $crate::author::dashed(NAME)
                },
                include_str!(concat!(stringify!($name), ".rs")),
                $name::RULE,
            ) ),+]
        }
    };
}
#[doc(inline)]
pub use __invariants as invariants;
