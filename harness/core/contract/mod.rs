//! Contracts: what a kind of pipeline component takes, gives and must keep.

pub mod blind;
pub mod cause;
pub mod class;
pub mod component;
pub mod coverage;
pub mod cuts;
pub mod definition;
pub mod doc;
pub mod erased;
pub mod fault;
pub mod from_input;
pub mod into_output;
pub mod invariant;
pub mod options;
pub mod outcome;
pub mod prelude;
pub mod probe;
pub mod reading;
pub mod registry;
pub mod rows;
pub mod schema;
pub mod stage;
pub mod step;
pub mod stream;

use arbitrary::Unstructured;
use ndarray::ArrayViewD;

use crate::contract::blind::Blind;
use crate::contract::class::Class;
use crate::contract::cuts::Cuts;
use crate::contract::definition::Definition;
use crate::contract::fault::Fault;
use crate::contract::invariant::Invariant;
use crate::contract::options::Options;
use crate::contract::reading::Reader;
use crate::contract::stage::Stage;
use crate::generate::axes::{Axes, from_fields};
use crate::generate::measure::Measure;
use crate::numeric::tolerance::{Expected, ExpectedTexts};
use crate::value::place::Dtype;
use crate::value::record::Record;

/// One kind of pipeline component: its inputs, outputs and options, what its definition says, and
/// how it is attacked. Everything else is made from this.
pub trait Contract:
    Definition<Case: Record + PartialEq, Output: Record + PartialEq, Options: Options>
    + Sized
    + Send
    + Sync
{
    /// The normative name: `group-advantage`.
    const ID: &'static str;
    /// The stage of the pipeline.
    const STAGE: Stage;
    /// The documentation, from which the catalogue and `explain` are made.
    const DOC: &'static str;
    /// A right function in Python. The examples of the invariants change lines of it.
    const EXAMPLE: &'static str = "";
    /// What every contract has.
    const PARTS: Parts<Self>;
    /// The axes that the arrays of inputs and outputs share, where they do: shapes, shrinking and
    /// cutting follow from them.
    const AXES: Axes = Axes::new(&[]);
    /// Values of options that hide a mistake. A component that takes the options is also checked
    /// under values that show it.
    const BLIND: &'static [Blind] = &[];
    /// Cases that every component is checked on: the name of each, and the text of its case file.
    const REGRESSIONS: &'static [(&'static str, &'static str)] = &[];
    /// The inputs by which outputs are differentiated; the gradient is the output `grad_<leaf>`.
    const LEAVES: &'static [&'static str] = &[];
    /// The float outputs that hold whole numbers: ids, counts, positions, flags. They are exact,
    /// and integers and booleans are taken for them too.
    const WHOLE: &'static [&'static str] = &[];

    /// What the definition gives for the numbers of a case already rounded to `dtype`, in plain
    /// f64, with scales. Of a field that is not among them only its rounding is known.
    fn oracle(_: &Self::Case, _: &Self::Options, _: Dtype) -> Vec<Expected> {
        Vec::new()
    }

    /// How far apart two numbers may be that should be equal, as a part of the largest number of
    /// the output, where the definition leaves all of them open.
    fn noise(_: Dtype) -> Option<f64> {
        None
    }

    /// What the definition gives for the texts of a case.
    fn oracle_texts(_: &Self::Case, _: &Self::Options) -> Vec<ExpectedTexts> {
        Vec::new()
    }

    /// What the definition gives for the gradient of the summed first required output, one entry
    /// a leaf, in the field `grad_<leaf>`.
    fn oracle_gradient(_: &Self::Case, _: &Self::Options, _: Dtype) -> Vec<Expected> {
        Vec::new()
    }

    /// The same for the gradient of another output, where none is required: the first that the
    /// component returned is differentiated.
    fn oracle_gradient_of(
        _output: &str,
        case: &Self::Case,
        options: &Self::Options,
        dtype: Dtype,
    ) -> Vec<Expected> {
        Self::oracle_gradient(case, options, dtype)
    }

    /// Whether the gradient is part of the contract under these options.
    fn wants_gradient(_: &Self::Options) -> bool {
        false
    }

    /// Whether the gradient is the slope of the first output, and not one that is passed straight
    /// through: only then can differences stand in for a gradient that nobody returned.
    fn gradient_is_slope(_: &Self::Options) -> bool {
        true
    }

    /// Whether the component must raise for a case: `empty_mask: refuse`, and no token. No other
    /// invariant speaks about such a case.
    fn refuses(_: &Self::Case, _: &Self::Options) -> bool {
        false
    }

    /// Whether NaN may stand for "no answer" in the first output, of which there is no oracle.
    fn may_give_nan(_: &Self::Options) -> bool {
        false
    }

    /// The shape of each required output field. The gradient is that of the first one, summed.
    /// Where no output is required, any of them will do.
    fn shapes(case: &Self::Case, _: &Self::Options) -> Vec<(&'static str, Vec<usize>)> {
        Self::AXES.shapes(case, &Self::Output::fields())
    }

    /// The case as the component settled it, where its answer says what the case leaves to it: in
    /// which order a trainer takes its rows. The definition is asked about this case then; `None`
    /// where nothing is left open, or what the answer says cannot be.
    fn settled(_: &Self::Case, _: &Self::Options, _: &Self::Output) -> Option<Self::Case> {
        None
    }

    /// What a wrong number means, to be said behind it: the numbers of its output as the component
    /// gave them and as the definition has them, and its place.
    fn meaning(
        _case: &Self::Case,
        _options: &Self::Options,
        _found: ArrayViewD<'_, f64>,
        _expected: &Expected,
        _at: &[usize],
    ) -> Option<String> {
        None
    }

    /// What an output lacks that the shapes of the case do not tell: outputs that must be of one
    /// shape, whatever it is.
    ///
    /// # Errors
    /// What is wrong, for a reader.
    fn check_form(_: &Self::Case, _: &Self::Options, _: &Self::Output) -> Result<(), String> {
        Ok(())
    }

    /// Small cases besides the corners from which shrinking may start: so that the smallest case
    /// of a bug does not depend on the one that was found.
    fn small(_: &Self::Options, _: Dtype) -> Vec<Self::Case> {
        Vec::new()
    }

    /// Simpler cases, the boldest first. They may be invalid, and a few are not of smaller
    /// [`measure`](Self::measure): whoever walks to them looks at both.
    fn simpler(case: &Self::Case, _: &Self::Options, _: Dtype) -> Vec<Self::Case> {
        let simpler = Self::AXES.simpler(case, &Self::Case::fields());
        simpler.into_iter().map(from_fields).collect()
    }

    /// How complex a case is; every step of the shrinker makes it smaller.
    fn measure(case: &Self::Case) -> Measure {
        Self::AXES.measure(case, &Self::Case::fields())
    }

    /// The same case with a text in the place of one of which an invariant takes no notice: where
    /// it makes texts of its own, the one that fails is the case to show.
    fn telling(_: &Self::Case, _: &str) -> Option<Self::Case> {
        None
    }

    /// What the reference would give if an answer were right where `same` says so of it and of the
    /// gold answer; `None` where it compares none.
    fn compared(
        _: &Self::Case,
        _: &Self::Options,
        _same: &dyn Fn(&str, &str) -> bool,
    ) -> Option<Self::Output> {
        None
    }

    /// What the reference gives, on a tape that names its terms: a diagnosis leaves one out, scales
    /// it or detaches it. For references that are written for speed, in one pass.
    fn on_tape(case: &Self::Case, options: &Self::Options, dtype: Dtype) -> Self::Output {
        (Self::PARTS.reference)(case, options, dtype)
    }

    /// What the reference would give if it read texts otherwise; `None` where it does not read in
    /// this way.
    fn reread(_: &Self::Case, _: &Self::Options, _: &Reader<'_>) -> Option<Self::Output> {
        None
    }

    /// What all right outputs have in common, in the form of an output, where there are several;
    /// `None` where nothing is left open, or too much to say so.
    fn in_common(_: &Self::Case, _: &Self::Options, _: &Self::Output) -> Option<Self::Output> {
        None
    }

    /// How batches far larger than those that are generated are cut, where the arrays share axes.
    fn cuts() -> Option<&'static dyn Cuts> {
        None
    }

    /// A few small inputs for the table of `check --values`.
    fn samples(options: &Self::Options, dtype: Dtype) -> Vec<Self::Case> {
        (Self::PARTS.corners)(options, dtype).into_iter().take(6).collect()
    }
}

/// Makes a case of random bytes.
pub type Draw<C> = fn(
    &mut Unstructured<'_>,
    &<C as Definition>::Options,
    Dtype,
) -> arbitrary::Result<<C as Definition>::Case>;

/// Says why a case is outside a contract, where it is.
pub type Valid<C> =
    fn(&<C as Definition>::Case, &<C as Definition>::Options, Dtype) -> Result<(), String>;

/// The functions that every contract has, each in the file of its name.
pub struct Parts<C: Contract> {
    /// A case made of random bytes: always valid, also when the bytes run out or are all equal.
    pub draw: Draw<C>,
    /// The deterministic cases, the smallest first.
    pub corners: fn(&C::Options, Dtype) -> Vec<C::Case>,
    /// Why a case is outside the contract, where it is.
    pub valid: Valid<C>,
    /// The input classes.
    pub classes: fn() -> Vec<Class<C>>,
    /// An implementation as a person would write one, computing in the dtype's arithmetic.
    pub reference: fn(&C::Case, &C::Options, Dtype) -> C::Output,
    /// What must hold.
    pub invariants: fn() -> Vec<Invariant<C>>,
    /// Known wrong behaviours.
    pub faults: fn() -> Vec<Fault<C>>,
}
