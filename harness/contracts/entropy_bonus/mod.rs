//! The mean entropy of the tokens that count, and the bonus that it is in the loss.
//!
//! A policy that is sure of everything explores nothing. A small multiple of its entropy, taken
//! from the loss, keeps it undecided: small enough that a wrong normaliser, a temperature left out
//! or pads that are counted show in no curve but the entropy's own.
//!
//! ### Source
//! `loss = -coefficient·entropy`, where the entropy of a token is that of softmax(logits /
//! temperature). verl `compute_entropy_loss` and `agg_loss`, OpenRLHF, slime and NeMo-RL in their
//! policy losses; TRL `get_high_entropy_mask` (`top_share`, Wang et al. 2025). Coefficients that
//! adapt to a target are no part of it.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array0, Array2, Ix0, Ix2, Ix3};

use crate::token_entropy;
use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::rows::{Masked, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::pick::Pick;
use shakedown_core::laws::faults::entropy::OfLogits as _;
use shakedown_core::laws::faults::temperature::Tempered;
pub use shakedown_core::numeric::aggregate::Aggregate;
pub use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows, MaskedValues};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `entropy-bonus`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens over a vocabulary of `V`: logits `[N, T, V]`, mask `[N, T]`.
    pub struct EntropyBonusCase {
        /// What the model gave. `-inf` where a token cannot come, unless `neg_inf: avoid`.
        pub logits: A::Float<Ix3>,
        /// True where the token counts.
        pub mask: A::Bool<Ix2>,
    }
}

record! {
    /// The outputs of `entropy-bonus`, of which any will do.
    ///
    /// # Shapes
    /// A single number each; grad_logits `[N, T, V]`.
    ///
    /// # Units
    /// Nats.
    pub struct EntropyBonusOutput {
        /// The bonus, as it is added to what is minimised.
        pub loss: Option<A::Float<Ix0>>,
        /// The aggregated entropy.
        pub entropy: Option<A::Float<Ix0>>,
        /// The gradient of the loss; where there is none, of the entropy.
        pub grad_logits: Option<A::Float<Ix3>>,
    }
}

impl From<f64> for EntropyBonusOutput {
    fn from(loss: f64) -> Self {
        Self { loss: Some(Array0::from_elem((), loss)), entropy: None, grad_logits: None }
    }
}

impl From<f32> for EntropyBonusOutput {
    fn from(loss: f32) -> Self {
        f64::from(loss).into()
    }
}

choice! {
    /// What a logit of -∞ does.
    pub enum NegInf {
        /// It is never generated.
        Avoid = "avoid",
        /// It contributes 0.
        Zero = "zero",
    }
}

options! {
    check: |options| options.aggregate.check(options.norm_length);

    /// The options of `entropy-bonus`.
    pub struct Options {
        /// A number > 0: the loss is the entropy times this, negative.
        pub coefficient: f64 = 0.01, in above(0.0), draw [0.01, 0.001, 1.0, 0.5];
        /// A number > 0 that divides the logits.
        pub temperature: f64 = 1.0, in above(0.0), draw [1.0, 0.6, 1.5, 1.0, 0.7, 2.0, 0.1, 0.5];
        /// `token-mean`, `token-sum`, `seq-mean-token-mean`, `seq-mean-token-sum` or
        /// `seq-mean-token-sum-norm` (the sum over tokens, divided by norm_length).
        pub aggregate: Aggregate = Aggregate::TokenMean;
        /// An integer > 0: the constant of `seq-mean-token-sum-norm`.
        pub norm_length: Option<u32> = None, by |_, options| {
            Ok((options.aggregate == Aggregate::SeqMeanTokenSumNorm).then_some(6))
        };
        /// `null` (all), or a share > 0 and at most 1: only tokens count whose entropy is at least
        /// the (1 - top_share)-quantile, interpolated linearly, of those under the mask; the
        /// choice has no gradient.
        pub top_share: Option<f64> = None, in (above(0.0).0, std::ops::Bound::Included(1.0)),
            draw [None, None, Some(0.2), Some(0.35), None, Some(0.8), Some(0.5), Some(1.0)];
        /// `avoid` (-inf logits are never generated) or `zero` (they contribute 0).
        pub neg_inf: NegInf = NegInf::Avoid;
        /// `zero`, `nan`, `refuse` or `avoid`: what a batch without a token gives.
        pub empty_mask: EmptyMask = EmptyMask::Zero;
        /// `skip` or `count`: whether a row without a token counts in the number of rows.
        pub empty_rows: EmptyRows = EmptyRows::Skip;
        /// `true` or `false`: whether a mask may have gaps inside a row.
        pub holes: bool = false;
        /// `finite` or `any`: what may stand under the mask.
        pub masked_values: MaskedValues = MaskedValues::Finite;
    }
}

impl Options {
    /// The options of the entropy of each token.
    fn of_tokens(&self) -> token_entropy::Options {
        token_entropy::Options {
            temperature: self.temperature,
            neg_inf: match self.neg_inf {
                NegInf::Avoid => token_entropy::NegInf::Avoid,
                NegInf::Zero => token_entropy::NegInf::Zero,
            },
            ..token_entropy::Options::default()
        }
    }

    /// Whether the aggregate is a mean of entropies, or less where empty rows count.
    fn is_mean(&self) -> bool {
        matches!(self.aggregate, Aggregate::TokenMean | Aggregate::SeqMeanTokenMean)
    }
}

impl Tempered for Options {
    fn temperature(&mut self) -> &mut f64 {
        &mut self.temperature
    }
}

/// The contract: the mean entropy of the tokens that count, and the bonus that it is.
#[derive(Clone, Copy, Debug)]
pub struct EntropyBonus;

impl Definition for EntropyBonus {
    type Case = EntropyBonusCase;
    type Output = EntropyBonusOutput;
    type Options = Options;
}

impl Contract for EntropyBonus {
    const ID: &'static str = "entropy-bonus";
    const STAGE: Stage = Stage::Loss;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const LEAVES: &'static [&'static str] = &["logits"];
    const AXES: Axes = Axes::new(&[("logits", "NTV"), ("mask", "NT"), ("grad_logits", "NTV")]);
    const BLIND: &'static [Blind] = &[
        Blind::at("temperature", 1.0, &[("temperature", "0.7")]),
        Blind::at("coefficient", 1.0, &[("coefficient", "0.5")]),
        Blind::at("top_share", 1.0, &[("top_share", "0.35")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::ENTROPY_BONUS;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::bonus,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<EntropyBonusCase> {
        generate::small(options, dtype)
    }

    fn refuses(case: &EntropyBonusCase, options: &Options) -> bool {
        options.empty_mask == EmptyMask::Refuse && !case.mask.iter().any(|kept| *kept)
    }

    fn oracle(case: &EntropyBonusCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::outputs(case, options, dtype)
    }

    fn oracle_gradient(case: &EntropyBonusCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::gradient(case, options, dtype, -options.coefficient)
    }

    fn oracle_gradient_of(
        output: &str,
        case: &EntropyBonusCase,
        options: &Options,
        dtype: Dtype,
    ) -> Vec<Expected> {
        let factor = if output == "entropy" { 1.0 } else { -options.coefficient };
        oracle::gradient(case, options, dtype, factor)
    }

    fn wants_gradient(_: &Options) -> bool {
        true
    }

    fn on_tape(case: &EntropyBonusCase, options: &Options, dtype: Dtype) -> EntropyBonusOutput {
        Self::mapped(case, options, dtype, |at| at.entropy())
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for EntropyBonus {}

impl Masked for EntropyBonus {
    const POISON: &'static [f64] = &[0.0, 1.0, -1.0, 0.5, -7.0, 30.0, -30.0];

    fn mask(case: &EntropyBonusCase) -> &Array2<bool> {
        &case.mask
    }

    fn mask_mut(case: &mut EntropyBonusCase) -> &mut Array2<bool> {
        &mut case.mask
    }

    fn masked_values(options: &Options) -> MaskedValues {
        options.masked_values
    }

    fn holes(options: &Options) -> bool {
        options.holes
    }

    fn empty_batches(options: &Options) -> bool {
        options.empty_mask != EmptyMask::Avoid
    }

    fn poisoned(case: &EntropyBonusCase, options: &Options, pick: &mut Pick) -> EntropyBonusCase {
        generate::poisoned(case, options, pick)
    }
}

/// The number of tokens that count.
fn tokens(mask: &Array2<bool>) -> usize {
    mask.iter().filter(|kept| **kept).count()
}
