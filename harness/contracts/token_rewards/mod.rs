//! The reward of each token: one score for the completion, and what the distance to the reference
//! costs along the way.
//!
//! PPO and REINFORCE++ see the score once, at the end of the row, and a penalty at every token. A
//! penalty that is lost, paid by tokens of a tool or taken from another row still gives numbers of
//! the right size, and so does a score that stands where no token was sampled.
//!
//! ### Source
//! `r_t = -β·kl_t + [t = last]·score`: Stiennon et al. 2020, Ziegler et al. 2019. verl
//! `apply_kl_penalty` (`report: row-mean`, `empty_rows: count`), OpenRLHF `compute_reward`
//! (`kl_clamp: [-10, 10]`, `score_clip`), TRL PPO (`place: after-last`, `unfinished: subtract`),
//! NeMo-RL's advantage estimator (`kl_clamp: [-10, 10]`, `log_ratio_clamp: 20`).

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array1, Array2, Ix0, Ix1, Ix2};

use crate::kl_estimate;
use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::rows::{Masked, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
pub use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows, MaskedOutput, MaskedValues};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

pub use kl_estimate::Estimator as KlEstimator;

record! {
    /// The inputs of `token-rewards`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens: scores and finished `[N]`, the others `[N, T]`.
    ///
    /// # Units
    /// Log-probabilities in nats, scores and the result in those of the score.
    pub struct TokenRewardsCase {
        /// The score of each completion.
        pub scores: A::Float<Ix1>,
        /// The log-probability of each token under the policy that sampled it.
        pub log_probs: A::Float<Ix2>,
        /// The same under the reference.
        pub ref_log_probs: A::Float<Ix2>,
        /// True where the token was sampled, and pays for its distance.
        pub mask: A::Bool<Ix2>,
        /// Whether each completion came to its end; only where `unfinished` is not `none`.
        pub finished: Option<A::Bool<Ix1>>,
    }
}

record! {
    /// The outputs of `token-rewards`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens: rewards `[N, T]`, kl a number.
    pub struct TokenRewardsOutput {
        /// The reward of each token.
        pub rewards: A::Float<Ix2>,
        /// The divergence that is reported: without β, and without the score.
        pub kl: Option<A::Float<Ix0>>,
    }
}

impl From<Array2<f64>> for TokenRewardsOutput {
    fn from(rewards: Array2<f64>) -> Self {
        Self { rewards, kl: None }
    }
}

impl From<Array2<f32>> for TokenRewardsOutput {
    fn from(rewards: Array2<f32>) -> Self {
        rewards.mapv(f64::from).into()
    }
}

choice! {
    /// The column of the score.
    pub enum Place {
        /// The row's last unmasked one.
        Last = "last",
        /// The next one, where the row has one more column.
        AfterLast = "after-last",
    }
}

choice! {
    /// What becomes of the score of a completion that did not come to its end.
    pub enum Unfinished {
        /// It is kept, and nothing says which completions these are.
        None = "none",
        /// The penalty is taken off.
        Subtract = "subtract",
        /// It is minus the penalty.
        Replace = "replace",
        /// It is multiplied by the penalty.
        Scale = "scale",
    }
}

choice! {
    /// What the reported divergence is.
    pub enum Report {
        /// The mean over all tokens.
        TokenMean = "token-mean",
        /// The mean over rows of their means.
        RowMean = "row-mean",
        /// The mean over rows of their sums.
        RowSum = "row-sum",
    }
}

options! {
    check: bounds_are_ordered;

    /// The options of `token-rewards`.
    pub struct Options {
        /// The weight of the penalty, ≥ 0.
        pub beta: f64 = 0.05, in 0.0.., draw [0.05, 0.1, 0.0, 1.0, 0.5, 0.2];
        /// `k1` (d), `k2` (d²/2), `k3` (e^{-d} - 1 + d) or `abs` (|d|), where d is `log_probs` -
        /// `ref_log_probs`.
        pub kl_estimator: KlEstimator = KlEstimator::K1;
        /// `null`, or c > 0: d is clamped to ±c first.
        pub log_ratio_clamp: Option<f64> = None, in above(0.0),
            draw [None, None, Some(20.0), Some(5.0), Some(0.7)];
        /// `null`, or `[lo, hi]` with lo ≤ 0 ≤ hi: a token's divergence is clamped to it, before
        /// β.
        pub kl_clamp: Option<[f64; 2]> = None,
            draw [None, None, Some([-10.0, 10.0]), Some([-0.3, 5.0]), Some([0.0, 10.0])];
        /// `last` (the row's last unmasked column) or `after-last` (the next one, where the row
        /// has one more; that one is no part of `masked_output`): where the score stands.
        pub place: Place = Place::Last;
        /// `none`, `subtract`, `replace` or `scale`: the score r of a row with `finished` false
        /// is kept, r - p, -p or r·p.
        pub unfinished: Unfinished = Unfinished::None;
        /// p, from -1000 to 1000.
        pub penalty: f64 = 1.0, in -1e3..=1e3, draw [1.0, 0.5, 5.0, 0.0, 2.0];
        /// `null`, or `[lo, hi]`: the score alone is clipped, after `unfinished`.
        pub score_clip: Option<[f64; 2]> = None,
            draw [None, None, Some([-1.5, 1.5]), Some([-10.0, 10.0]), Some([0.0, 5.0])];
        /// `token-mean` (over tokens), `row-mean` (over rows of their means) or `row-sum` (over
        /// rows of their sums): what `kl` is the mean of.
        pub report: Report = Report::TokenMean;
        /// `zero`, `nan`, `refuse` or `avoid`: what `kl` is in a batch without a token.
        pub empty_mask: EmptyMask = EmptyMask::Zero;
        /// `skip` or `count`: whether a row without a token counts in the number of rows.
        pub empty_rows: EmptyRows = EmptyRows::Skip;
        /// `true` or `false`: whether a mask may have gaps inside a row.
        pub holes: bool = false;
        /// `finite` or `any`: what may stand under the mask.
        pub masked_values: MaskedValues = MaskedValues::Finite;
        /// `zero` or `any`: what stands at masked positions of `rewards`.
        pub masked_output: MaskedOutput = MaskedOutput::Zero;
    }
}

/// A clamp holds 0, the divergence of equal policies; the score is clipped to a range.
fn bounds_are_ordered(options: &Options) -> Result<(), (&'static str, String)> {
    match (options.kl_clamp, options.score_clip) {
        (Some([lo, hi]), _) if !(lo <= 0.0 && 0.0 <= hi && lo < hi && (hi - lo).is_finite()) => {
            let expected = "null or [lo, hi] with lo ≤ 0 ≤ hi and lo < hi";
            Err(("kl_clamp", format!("expected {expected}, found [{lo}, {hi}]")))
        }
        (_, Some([lo, hi])) if !(lo < hi && (hi - lo).is_finite()) => {
            let expected = "null or [lo, hi] with lo < hi";
            Err(("score_clip", format!("expected {expected}, found [{lo}, {hi}]")))
        }
        _ => Ok(()),
    }
}

/// The contract: one score and a penalty at each token.
#[derive(Clone, Copy, Debug)]
pub struct TokenRewards;

impl Definition for TokenRewards {
    type Case = TokenRewardsCase;
    type Output = TokenRewardsOutput;
    type Options = Options;
}

impl Contract for TokenRewards {
    const ID: &'static str = "token-rewards";
    const STAGE: Stage = Stage::Advantage;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[
        ("scores", "N"),
        ("log_probs", "NT"),
        ("ref_log_probs", "NT"),
        ("mask", "NT"),
        ("finished", "N"),
        ("rewards", "NT"),
    ]);
    const BLIND: &'static [Blind] = &[
        Blind::at("beta", 0.0, &[("beta", "0.1")]),
        Blind::at("penalty", 1.0, &[("penalty", "0.5")]),
        Blind::at("penalty", 0.0, &[("penalty", "0.5")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::TOKEN_REWARDS;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::token_rewards,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<TokenRewardsCase> {
        generate::small(options, dtype)
    }

    fn refuses(case: &TokenRewardsCase, options: &Options) -> bool {
        options.empty_mask == EmptyMask::Refuse && is_empty(case)
    }

    fn oracle(case: &TokenRewardsCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::token_rewards(case, options, dtype)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for TokenRewards {}

impl Masked for TokenRewards {
    /// No two of them are so far apart that an exponential times 0 is not 0.
    const POISON: &'static [f64] = &[0.0, 1.0, -1.0, 0.5, -7.0, 3.0, -3.0];

    fn mask(case: &TokenRewardsCase) -> &Array2<bool> {
        &case.mask
    }

    fn mask_mut(case: &mut TokenRewardsCase) -> &mut Array2<bool> {
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
}

/// Whether no token counts.
fn is_empty(case: &TokenRewardsCase) -> bool {
    !case.mask.iter().any(|kept| *kept)
}

/// Whether a row's completion came to its end, as far as anybody says.
fn is_finished(finished: Option<&Array1<bool>>, row: usize) -> bool {
    finished.is_none_or(|finished| finished[row])
}

/// The column of each row's score; none in a row without a token.
fn places(case: &TokenRewardsCase, options: &Options) -> Vec<Option<usize>> {
    let last = case.mask.rows().into_iter().map(|row| row.iter().rposition(|kept| *kept));
    let columns = case.mask.ncols();
    let place = |last: usize| match options.place {
        Place::AfterLast if last + 1 < columns => last + 1,
        Place::AfterLast | Place::Last => last,
    };
    last.map(|last| last.map(place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_core::contract::options::Options as _;

    #[test]
    fn bounds_that_are_none_are_refused() {
        let refused = |options: Options| options.check().unwrap_err().0;
        let clamp = |kl_clamp| Options { kl_clamp: Some(kl_clamp), ..Options::default() };
        let clip = |score_clip| Options { score_clip: Some(score_clip), ..Options::default() };
        for bounds in [[0.5, 1.0], [-1.0, -0.5], [1.0, -1.0], [0.0, f64::INFINITY]] {
            assert_eq!(refused(clamp(bounds)), "kl_clamp");
        }
        for bounds in [[1.0, 1.0], [1.0, 0.0], [f64::NAN, 0.0]] {
            assert_eq!(refused(clip(bounds)), "score_clip");
        }
        assert_eq!(refused(Options { penalty: 1e4, ..Options::default() }), "penalty");
        assert_eq!(clip([1.0, 2.0]).check(), Ok(()));
        assert_eq!(clamp([0.0, 2.0]).check(), Ok(()));
    }
}
