//! Stages of the pipeline, and the kinds of mistakes that broken invariants point to.

use serde::{Deserialize, Serialize};

/// The stage of the pipeline at which a component stands, in pipeline order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// From prompts and turns to batches of tokens.
    Data,
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
    /// From prompts to the gradient of an update: a whole trainer.
    Step,
    /// From tensors to the numbers that somebody reads.
    Metrics,
}

impl Stage {
    /// Whether a call takes as long as a hundred of a function: that of a whole trainer.
    pub fn is_long(self) -> bool {
        self == Stage::Step
    }

    /// Every stage, in pipeline order.
    pub const ALL: &'static [Stage] = &[
        Stage::Data,
        Stage::Reward,
        Stage::Decoding,
        Stage::Advantage,
        Stage::LogProbability,
        Stage::Loss,
        Stage::Update,
        Stage::Step,
        Stage::Metrics,
    ];

    /// The stages that rules about runs, configurations and data sets speak of.
    pub const JUDGED: &'static [Stage] = &[
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
            Stage::Data => "data",
            Stage::Reward => "reward",
            Stage::Decoding => "decoding",
            Stage::Advantage => "advantage",
            Stage::LogProbability => "log-probability",
            Stage::Loss => "loss",
            Stage::Update => "update",
            Stage::Step => "step",
            Stage::Metrics => "metrics",
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
    StabilityConstant = "stability-constant",
        "NaN, infinities, and the constants that keep them away";
    DecodingStringProcessing = "decoding-string-processing",
        "text lost or invented between tokens and reward";
    RewardDecodingMismatch = "reward-decoding-mismatch",
        "the reward reads other text than the decoder gives";
    ReferenceDrift = "reference-drift", "the reference policy moves";
    GradientFlow = "gradient-flow", "a gradient that is not that of the definition";
    Configuration = "configuration", "not what the declared options define";
    AdvantageNormalisation = "advantage-normalisation", "baseline, scale or grouping of advantages";
    MaskingAlignment = "masking-alignment", "what masks and positions keep apart";
    Aggregation = "aggregation", "means of means, wrong denominators";
    ProbabilityRatio = "probability-ratio", "ratios and clipping";
    Sampling = "sampling", "the sampled distribution is not the scored one";
    PurityShapeDtype = "purity-shape-dtype",
        "raises, changes its inputs, wrong shape or dtype, not deterministic";
}
