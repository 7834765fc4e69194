//! Invariants: what must hold of every component of a contract, and how one is checked.

use std::fmt::Write as _;
use std::rc::Rc;

use ndarray::ArrayD;

use crate::component::{Call, Component, Failure, Gradients, Returned};
use crate::contract::{Contract, Pitfall, round};
use crate::error::nearest;
use crate::journal::Journal;
use crate::pick::Pick;
use crate::place::Place;
use crate::record::{Record, Value};
use crate::tolerance::{Expected, Number, Tolerance};

/// One thing that must hold of every component of the contract `C`.
pub struct Invariant<C: Contract> {
    /// The id inside its contract: `zero-sum`.
    pub id: &'static str,
    /// Its documentation, the head of its file.
    pub doc: Doc,
    /// The kind of mistake that breaking it points to.
    pub pitfall: Pitfall,
    /// Faults that it must catch; our own tests check that it does.
    pub catches: &'static [&'static str],
    /// Whether it needs a component that can give gradients.
    pub needs_gradient: bool,
    /// Whether it is checked under these options at this place.
    pub applies: fn(&C::Options, Place) -> bool,
    /// Checks it on one case.
    pub check: fn(&mut Probe<'_, C>) -> Outcome,
}

impl<C: Contract> Clone for Invariant<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Contract> Copy for Invariant<C> {}

impl<C: Contract> Invariant<C> {
    /// The same, declared to catch these faults.
    pub fn catching(self, faults: &'static [&'static str]) -> Self {
        Self { catches: faults, ..self }
    }

    /// All that there is to say about it, as `shakedown explain` does.
    pub fn explained(&self) -> String {
        let mut text = String::new();
        for heading in Doc::HEADINGS {
            let section = self.doc.section(heading).replace('\n', "\n  ");
            let _ = writeln!(text, "\n{}\n  {section}", heading.to_lowercase());
        }
        let _ = writeln!(text, "\npitfall: {}", self.pitfall.id());
        if !self.catches.is_empty() {
            let _ = writeln!(text, "catches: {}", self.catches.join(", "));
        }
        text
    }
}

/// Whether a contract has an invariant of this name.
///
/// # Errors
/// The message, with the nearest known name.
pub fn check_invariant<C: Contract>(id: &str) -> Result<(), String> {
    let invariants = C::invariants();
    if invariants.iter().any(|invariant| invariant.id == id) {
        return Ok(());
    }
    let near = match nearest(id, invariants.iter().map(|invariant| invariant.id)) {
        none if none.is_empty() => format!("; `shakedown list {}` has them all", C::ID),
        near => near,
    };
    Err(format!("unknown invariant `{id}` of `{}`{near}", C::ID))
}

/// What checking one case said: it holds, or why checking stopped.
pub type Outcome = Result<(), Stop>;

/// Why a check stopped.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The case is none of those that the invariant speaks about.
    Vacuous,
    /// The invariant is broken: what was found, both numbers in it.
    Broken(String),
    /// A call failed. The probe keeps the case and the failure for the laws about totality and
    /// form.
    Failed,
}

/// Breaks the invariant with a formatted message.
#[macro_export]
macro_rules! broken {
    ($($message:tt)+) => {
        return Err($crate::invariant::Stop::Broken(format!($($message)+)))
    };
}

/// The documentation of an invariant: the `//!` lines at the head of its file, whose headings are
/// `### Claim`, `### Why it matters`, `### Does not hold for`, `### Bugs it has caught`.
#[derive(Clone, Copy, Debug)]
pub struct Doc(pub &'static str);

impl Doc {
    /// The headings that every invariant's documentation has.
    pub const HEADINGS: [&'static str; 4] =
        ["Claim", "Why it matters", "Does not hold for", "Bugs it has caught"];

    /// The text under a heading, unwrapped to one line a paragraph.
    pub fn section(self, heading: &str) -> String {
        let mut lines = self.lines().skip_while(|line| *line != format!("### {heading}"));
        lines.next();
        let mut text = String::new();
        for line in lines.take_while(|line| !line.starts_with("### ")) {
            match (line.is_empty(), text.is_empty()) {
                (true, _) => text.push('\n'),
                (false, true) => text.push_str(line),
                (false, false) if text.ends_with('\n') => text.push_str(line),
                (false, false) => {
                    text.push(' ');
                    text.push_str(line);
                }
            }
        }
        text.trim().to_owned()
    }

    /// The first sentence.
    pub fn summary(self) -> String {
        self.lines().next().unwrap_or("").to_owned()
    }

    /// What stands before the first heading.
    pub fn body(self) -> String {
        let lines: Vec<&str> = self.lines().take_while(|line| !line.starts_with("### ")).collect();
        lines.join("\n").trim().to_owned()
    }

    /// The claim, as reports quote it: its first sentence without the full stop.
    pub fn claim(self) -> String {
        let claim = self.section("Claim");
        let end = claim.find(". ").unwrap_or(claim.len());
        claim[..end].trim_end_matches('.').to_owned()
    }

    fn lines(self) -> impl Iterator<Item = &'static str> {
        self.0
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .map(|line| line.trim_start_matches("//!").trim())
    }
}

/// The list of a contract's own invariants, one file each in `invariants/`: declares the modules
/// and a function `own` that gives the list. The id is the file's name with dashes.
#[macro_export]
macro_rules! invariants {
    ($contract:ty; $( $name:ident ),+ $(,)?) => {
        $( mod $name; )+

        pub(super) fn own() -> Vec<$crate::invariant::Invariant<$contract>> {
            vec![$( $crate::invariant::Invariant {
                id: $crate::invariant::dashed(stringify!($name)),
                doc: $crate::invariant::Doc(include_str!(concat!(stringify!($name), ".rs"))),
                pitfall: $name::PITFALL,
                catches: $name::CATCHES,
                needs_gradient: false,
                applies: $name::applies,
                check: $name::check,
            } ),+]
        }
    };
}

/// `zero_sum` as `zero-sum`. Ids live as long as the program; there are a few dozen.
pub fn dashed(name: &'static str) -> &'static str {
    if name.contains('_') { Box::leak(name.replace('_', "-").into_boxed_str()) } else { name }
}

/// What the engine keeps of one case, so that invariants share the component's first answer and
/// the oracle's.
pub struct Memo<C: Contract> {
    output: Option<Result<Rc<Returned<C>>, Failure>>,
    with_gradient: Option<Result<Rc<Returned<C>>, Failure>>,
    expected: Option<Rc<Vec<Expected>>>,
}

impl<C: Contract> Default for Memo<C> {
    fn default() -> Self {
        Memo { output: None, with_gradient: None, expected: None }
    }
}

/// What an invariant gets to see: a case, the options in force, and the component itself.
pub struct Probe<'a, C: Contract> {
    /// The inputs, rounded to the place's dtype.
    pub case: &'a C::Case,
    /// The options in force.
    pub options: &'a C::Options,
    /// Where the component runs, and in which format.
    pub place: Place,
    /// How close is close.
    pub tolerance: Tolerance,
    /// Deterministic choices: permutations, factors, positions.
    pub pick: Pick,
    /// The case and the failure behind [`Stop::Failed`].
    pub failed: Option<(C::Case, Failure)>,
    pub(crate) component: &'a mut dyn Component<C>,
    pub(crate) journal: Option<&'a mut Journal>,
    pub(crate) memo: &'a mut Memo<C>,
    pub(crate) calls: &'a mut u64,
}

impl<C: Contract> Probe<'_, C> {
    /// What the component gives for the case. One call serves all invariants.
    ///
    /// # Errors
    /// The call failed.
    pub fn output(&mut self) -> Result<Rc<Returned<C>>, Stop> {
        self.not_refused(self.case)?;
        if self.memo.output.is_none() {
            self.memo.output = Some(self.answer(self.case, self.options, false).map(Rc::new));
        }
        let answer = self.memo.output.clone().expect("it was just filled");
        self.kept(answer)
    }

    /// What the component gives for the case when its gradients are asked for.
    ///
    /// # Errors
    /// The call failed.
    pub fn gradient_output(&mut self) -> Result<Rc<Returned<C>>, Stop> {
        self.not_refused(self.case)?;
        if self.memo.with_gradient.is_none() {
            self.memo.with_gradient = Some(self.answer(self.case, self.options, true).map(Rc::new));
        }
        let answer = self.memo.with_gradient.clone().expect("it was just filled");
        self.kept(answer)
    }

    /// Whether the component raises for the case, which it must have promised.
    ///
    /// # Errors
    /// The case is not one that it refuses; or the call failed in another way.
    pub fn raises(&mut self) -> Result<bool, Stop> {
        if !C::refuses(self.case, self.options) {
            return Err(Stop::Vacuous);
        }
        match self.answer(self.case, self.options, false) {
            Ok(_) => Ok(false),
            Err(Failure::Raised { .. }) => Ok(true),
            Err(failure) => {
                self.failed = Some((self.case.clone(), failure));
                Err(Stop::Failed)
            }
        }
    }

    fn not_refused(&self, case: &C::Case) -> Result<(), Stop> {
        if C::refuses(case, self.options) { Err(Stop::Vacuous) } else { Ok(()) }
    }

    fn kept(&mut self, answer: Result<Rc<Returned<C>>, Failure>) -> Result<Rc<Returned<C>>, Stop> {
        answer.map_err(|failure| {
            self.failed = Some((self.case.clone(), failure));
            Stop::Failed
        })
    }

    /// The same, for relations that say nothing about NaN and infinities: those are the business
    /// of the law `finite`. Where NaN is an answer, it is one like any other.
    ///
    /// # Errors
    /// The call failed, or its output is not finite.
    pub fn finite_output(&mut self) -> Result<Rc<Returned<C>>, Stop> {
        let returned = self.output()?;
        let comparable = is_finite(&returned.output) || C::may_give_nan(self.options);
        if comparable { Ok(returned) } else { Err(Stop::Vacuous) }
    }

    /// What the component gives for another case, which must be exact in the place's dtype.
    ///
    /// # Errors
    /// The case is outside the contract, or changed by rounding; or the call failed.
    pub fn call(&mut self, case: &C::Case) -> Result<C::Output, Stop> {
        self.call_with(case, false).map(|returned| returned.output)
    }

    /// As [`call`](Self::call), with all that came back, and with gradients where asked for.
    ///
    /// # Errors
    /// The case is outside the contract, or changed by rounding; or the call failed.
    pub fn call_with(&mut self, case: &C::Case, gradient: bool) -> Result<Returned<C>, Stop> {
        self.exact(case, self.options)?;
        self.answer(case, self.options, gradient).map_err(|failure| {
            self.failed = Some((case.clone(), failure));
            Stop::Failed
        })
    }

    /// What the component gives for another case under other options: for relations between two
    /// values of an option that the component [reads](Self::reads). A call that fails says
    /// nothing, as a finding is of the declared options.
    ///
    /// # Errors
    /// The case is outside the contract, or changed by rounding; or the call failed.
    pub fn call_under(&mut self, case: &C::Case, options: &C::Options) -> Result<C::Output, Stop> {
        self.exact(case, options)?;
        let answer = self.answer(case, options, false);
        answer.map(|returned| returned.output).map_err(|_| Stop::Vacuous)
    }

    /// Whether a case is one of the contract under these options, and exact in the place's dtype.
    fn exact(&self, case: &C::Case, options: &C::Options) -> Result<(), Stop> {
        let mut stored = case.clone();
        round(&mut stored, self.place.dtype);
        let valid = C::valid(&stored, options, self.place.dtype).is_ok();
        let refused = C::refuses(case, options);
        if !valid || refused || !crate::record::same_bits(&stored, case) {
            return Err(Stop::Vacuous);
        }
        Ok(())
    }

    /// Whether the component asks for the value of an option, and does not only declare it.
    pub fn reads(&self, option: &str) -> bool {
        self.component.reads(option)
    }

    fn answer(
        &mut self,
        case: &C::Case,
        options: &C::Options,
        gradient: bool,
    ) -> Result<Returned<C>, Failure> {
        *self.calls += 1;
        if let Some(journal) = &mut self.journal {
            journal.note(case);
        }
        let call = Call { case, options, place: self.place, gradient };
        let returned = self.component.call(&call)?;
        check_shapes::<C>(case, options, &returned.output)?;
        Ok(returned)
    }

    /// How the component's gradients come about here.
    pub fn gradients(&self) -> Gradients {
        self.component.gradients(self.place)
    }

    /// What the oracle expects for the case.
    pub fn expected(&mut self) -> Rc<Vec<Expected>> {
        let expected = self
            .memo
            .expected
            .get_or_insert_with(|| Rc::new(C::oracle(self.case, self.options, self.place.dtype)));
        Rc::clone(expected)
    }

    /// What the oracle expects for another case.
    pub fn expected_of(&self, case: &C::Case) -> Vec<Expected> {
        C::oracle(case, self.options, self.place.dtype)
    }

    /// The rounding bound of every number of the output field `field`: infinite where the
    /// contract leaves the number open.
    pub fn bounds(&mut self, field: &str) -> ArrayD<f64> {
        let expected = self.expected();
        self.bounds_in(&expected, field)
    }

    /// The same, in what [`expected_of`](Self::expected_of) gave. A field of which the oracle says
    /// nothing has numbers of no known size: the rounding of 1.
    ///
    /// # Panics
    /// If the contract has no such field.
    pub fn bounds_in(&self, expected: &[Expected], field: &str) -> ArrayD<f64> {
        match expected.iter().find(|expected| expected.field == field) {
            Some(expected) => {
                expected.numbers.mapv(|number| self.tolerance.bound(number, expected.terms))
            }
            None => {
                let shapes = C::shapes(self.case, self.options);
                let shape = shapes.into_iter().find(|(name, _)| *name == field);
                let (_, shape) = shape.unwrap_or_else(|| panic!("{} has no `{field}`", C::ID));
                ArrayD::from_elem(shape, self.tolerance.bound(Number::new(0.0, 1.0), 1))
            }
        }
    }
}

/// Whether every float of a record is finite.
pub fn is_finite<R: Record>(record: &R) -> bool {
    record.values().iter().all(|(_, value)| match value {
        Some(Value::Float(array)) => array.iter().all(|x| x.is_finite()),
        _ => true,
    })
}

/// Whether the output has the shapes that the contract promises.
fn check_shapes<C: Contract>(
    case: &C::Case,
    options: &C::Options,
    output: &C::Output,
) -> Result<(), Failure> {
    let values = output.values();
    for (field, expected) in C::shapes(case, options) {
        let found = values.iter().find(|(name, _)| *name == field).and_then(|(_, v)| v.as_ref());
        let problem = match found {
            None => format!("`{field}` is missing from the output"),
            Some(value) if value.shape() != expected => {
                format!("`{field}` has shape {:?}, expected {expected:?}", value.shape())
            }
            Some(_) => continue,
        };
        return Err(Failure::Malformed { problem });
    }
    Ok(())
}
