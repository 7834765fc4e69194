//! Contracts: what a kind of pipeline component takes, gives and must keep.

use arbitrary::Unstructured;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cuts::Cuts;
use crate::fault::Fault;
use crate::invariant::Invariant;
use crate::place::Dtype;
use crate::record::{Host, Record};
use crate::shrink::Measure;
use crate::tolerance::{Expected, ExpectedTexts};

/// The stage of the pipeline at which a component stands, in pipeline order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// From completions to scores.
    Reward,
    /// From tokens to the text that is scored.
    Decoding,
    /// From scores to advantages.
    Advantage,
    /// From logits to log-probabilities.
    LogProbability,
    /// From log-probabilities and advantages to a loss.
    Loss,
    /// From losses to a better policy.
    Update,
}

impl Stage {
    /// Every stage, in pipeline order.
    pub const ALL: &'static [Stage] = &[
        Stage::Reward,
        Stage::Decoding,
        Stage::Advantage,
        Stage::LogProbability,
        Stage::Loss,
        Stage::Update,
    ];

    /// The name in reports: `log-probability`.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Reward => "reward",
            Stage::Decoding => "decoding",
            Stage::Advantage => "advantage",
            Stage::LogProbability => "log-probability",
            Stage::Loss => "loss",
            Stage::Update => "update",
        }
    }
}

/// Declares the pitfalls: variant, id and meaning of each in one place.
macro_rules! pitfalls {
    ($( $variant:ident = $id:literal, $meaning:literal; )+) => {
        /// The kind of mistake that a broken invariant points to; the report's `pitfall`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Pitfall {
            $( #[doc = $meaning] #[serde(rename = $id)] $variant ),+
        }

        impl Pitfall {
            /// Every pitfall.
            pub const ALL: &'static [Pitfall] = &[$( Pitfall::$variant ),+];

            /// The id in reports: `log-space-sign`.
            pub fn id(self) -> &'static str {
                match self {
                    $( Pitfall::$variant => $id ),+
                }
            }

            /// What it means, in one line.
            pub fn meaning(self) -> &'static str {
                match self {
                    $( Pitfall::$variant => $meaning ),+
                }
            }
        }
    };
}

pitfalls! {
    LogSpaceSign = "log-space-sign", "a sign or a direction wrong among logarithms";
    StabilityConstant = "stability-constant", "a stability constant missing or of the wrong size";
    DecodingStringProcessing = "decoding-string-processing",
        "text lost or invented between tokens and reward";
    RewardDecodingMismatch = "reward-decoding-mismatch",
        "the reward reads other text than the decoder gives";
    ReferenceDrift = "reference-drift", "the reference policy moves";
    GradientFlow = "gradient-flow", "the value is right and the gradient is not";
    Configuration = "configuration", "an option without effect, or with another one";
    AdvantageNormalisation = "advantage-normalisation", "baseline, scale or grouping of advantages";
    MaskingAlignment = "masking-alignment", "a mask, or positions, off by some";
    Aggregation = "aggregation", "means of means, wrong denominators";
    ProbabilityRatio = "probability-ratio", "ratios and clipping";
    Sampling = "sampling", "the sampled distribution is not the scored one";
    PurityShapeDtype = "purity-shape-dtype",
        "raises, changes its inputs, wrong shape or dtype, not deterministic";
}

/// Whether a row's result may depend on other rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowInfluence {
    /// It may not: a batch gives what its rows give one at a time.
    Independent,
    /// It may.
    Batch,
}

/// The options that every contract has, from the `options!` macro.
pub trait SharedOptions {
    /// Whether a row's result may depend on other rows.
    fn rows(&self) -> RowInfluence;

    /// Whether two equal calls must agree.
    fn deterministic(&self) -> bool;
}

/// The options of a contract: the conventions in which honest implementations differ.
/// Declared with the `options!` macro.
pub trait Options:
    SharedOptions
    + Clone
    + Default
    + PartialEq
    + std::fmt::Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
{
    /// Name, default and meaning of each, in order.
    fn docs() -> Vec<OptionDoc>;

    /// Why these values are refused, where they are: the option's name and what is expected.
    fn check(&self) -> Result<(), (&'static str, String)>;

    /// Options drawn at random, always valid.
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self>;
}

/// One option in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionDoc {
    /// The name.
    pub name: &'static str,
    /// The default, as in YAML.
    pub default: String,
    /// The values and what they mean.
    pub meaning: String,
}

/// A class of inputs that a contract names: reports count how often each was generated.
pub struct Class<C: Contract> {
    /// The label: `constant-group`.
    pub id: &'static str,
    /// What belongs to it.
    pub meaning: &'static str,
    /// Whether a case does.
    pub contains: fn(&C::Case, &C::Options) -> bool,
    /// Whether cases of this class are generated under these options at this dtype.
    pub generated: fn(&C::Options, Dtype) -> bool,
}

/// One kind of pipeline component: its inputs, outputs, options, generator, shrinker, oracle,
/// invariants and known faults. Everything else is made from this.
pub trait Contract: Sized + Send + Sync + 'static {
    /// The inputs, over the host's arrays.
    type Case: Record<Host> + Clone + PartialEq + std::fmt::Debug + Send + Sync;
    /// The outputs, over the host's arrays.
    type Output: Record<Host> + Clone + PartialEq + std::fmt::Debug + Send;
    /// The options.
    type Options: Options;

    /// The normative name: `group-advantage`.
    const ID: &'static str;
    /// The stage of the pipeline.
    const STAGE: Stage;
    /// The documentation, from which the catalogue and `explain` are made.
    const DOC: &'static str;
    /// The inputs by which outputs are differentiated; the gradient is the output `grad_<leaf>`.
    const LEAVES: &'static [&'static str] = &[];
    /// The float outputs that are flags, 0 or 1: integers and booleans are taken for them too.
    const FLAGS: &'static [&'static str] = &[];

    /// A case made of random bytes: always valid, also when the bytes run out or are all equal.
    fn draw(
        u: &mut Unstructured<'_>,
        options: &Self::Options,
        dtype: Dtype,
    ) -> arbitrary::Result<Self::Case>;

    /// The deterministic cases, the smallest first.
    fn corners(options: &Self::Options, dtype: Dtype) -> Vec<Self::Case>;

    /// Small cases besides the corners from which shrinking may start: so that the smallest case
    /// of a bug does not depend on the one that was found.
    fn small(_: &Self::Options, _: Dtype) -> Vec<Self::Case> {
        Vec::new()
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

    /// Why a case is outside the contract, where it is.
    fn valid(case: &Self::Case, options: &Self::Options, dtype: Dtype) -> Result<(), String>;

    /// Candidates for a simpler case, the boldest first. Some may be invalid, or not of smaller
    /// [`measure`](Self::measure): the shrinker takes only those that are valid and smaller.
    fn simpler(case: &Self::Case, options: &Self::Options, dtype: Dtype) -> Vec<Self::Case>;

    /// How batches far larger than those that are generated are cut, where the arrays share axes.
    fn cuts() -> Option<Cuts<Self>> {
        None
    }

    /// How complex a case is; every step of the shrinker makes it smaller.
    fn measure(case: &Self::Case) -> Measure;

    /// The shape of each required output field. The gradient is that of the first one, summed.
    fn shapes(case: &Self::Case, options: &Self::Options) -> Vec<(&'static str, Vec<usize>)>;

    /// What the definition gives for the numbers of a case already rounded to `dtype`, in plain
    /// f64, with scales. Of a field that is not among them only its rounding is known.
    fn oracle(_: &Self::Case, _: &Self::Options, _: Dtype) -> Vec<Expected> {
        Vec::new()
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

    /// An implementation as a person would write one, computing in the dtype's arithmetic.
    fn reference(case: &Self::Case, options: &Self::Options, dtype: Dtype) -> Self::Output;

    /// Whether the gradient is part of the contract under these options.
    fn wants_gradient(_: &Self::Options) -> bool {
        false
    }

    /// Whether the gradient is the slope of the first output, and not one that is passed straight
    /// through: only then can differences stand in for a gradient that nobody returned.
    fn gradient_is_slope(_: &Self::Options) -> bool {
        true
    }

    /// What must hold.
    fn invariants() -> Vec<Invariant<Self>>;

    /// Known wrong behaviours.
    fn faults() -> Vec<Fault<Self>>;

    /// The input classes.
    fn classes() -> Vec<Class<Self>>;

    /// A few small inputs for the table of `check --values`.
    fn samples(options: &Self::Options, dtype: Dtype) -> Vec<Self::Case> {
        Self::corners(options, dtype).into_iter().take(6).collect()
    }
}

/// Rounds the floats of a case to a dtype.
pub fn round<R: Record>(case: &mut R, dtype: Dtype) {
    if dtype != Dtype::F64 {
        case.for_floats(&mut |_, floats| {
            for x in floats {
                *x = dtype.round(*x);
            }
        });
    }
}

/// Declares an option's set of named values: an enum, its names, and how it is read and written.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[doc = $doc:literal])* $variant:ident = $text:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[doc = $doc])* #[serde(rename = $text)] $variant ),+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [$name] = &[$( $name::$variant ),+];
        }
    };
}

/// Declares the options of a contract: a struct, its defaults and its documentation. The options
/// `rows` and `deterministic`, which every contract has, come with it; `rows: Batch;` in front
/// gives the former another default.
#[macro_export]
macro_rules! options {
    (rows: $rows:ident; $($struct:tt)+) => {
        $crate::options! { @with $rows; $($struct)+ }
    };
    (
        @with $rows:ident;
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ pub $field:ident : $type:ty = $default:expr ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $type, )+
            /// `independent` or `batch`: whether a row's result may depend on other rows.
            pub rows: $crate::contract::RowInfluence,
            /// `true` or `false`: whether two equal calls must agree.
            pub deterministic: bool,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: $default, )+
                    rows: $crate::contract::RowInfluence::$rows,
                    deterministic: true,
                }
            }
        }

        impl $crate::contract::SharedOptions for $name {
            fn rows(&self) -> $crate::contract::RowInfluence {
                self.rows
            }

            fn deterministic(&self) -> bool {
                self.deterministic
            }
        }

        impl $name {
            fn option_docs() -> Vec<$crate::contract::OptionDoc> {
                let defaults = Self::default();
                vec![
                    $( $crate::contract::OptionDoc {
                        name: stringify!($field),
                        default: $crate::yaml::inline(&defaults.$field),
                        meaning: [$( $doc.trim() ),+].join(" "),
                    }, )+
                    $crate::contract::OptionDoc {
                        name: "rows",
                        default: $crate::yaml::inline(&defaults.rows),
                        meaning: "`independent` or `batch`: whether a row's result may depend on \
                                  other rows."
                            .to_owned(),
                    },
                    $crate::contract::OptionDoc {
                        name: "deterministic",
                        default: $crate::yaml::inline(&defaults.deterministic),
                        meaning: "`true` or `false`: whether two equal calls must agree."
                            .to_owned(),
                    },
                ]
            }
        }
    };
    ($($struct:tt)+) => {
        $crate::options! { @with Independent; $($struct)+ }
    };
}
