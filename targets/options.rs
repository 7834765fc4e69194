//! The options of the contracts that `shakedown` does not have yet, named as it will name them.
//!
//! Each module stands in for `shakedown::contracts::<module>` until that exists.

/// The options of `outcome-advantage`.
pub mod outcome_advantage {
    pub use shakedown::contracts::group_advantage::{
        Baseline, EpsilonMode, Layout, Scale, Singleton, Unscored,
    };
    pub use shakedown::masked::MaskedOutput;

    /// Whether a row without a token takes part in the statistics of its group.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum EmptyRows {
        /// It does, with outcome 0.
        #[default]
        Count,
        /// It does not.
        Exclude,
    }

    /// The options of `outcome-advantage`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Options {
        pub baseline: Baseline,
        pub scale: Scale,
        pub ddof: u8,
        pub epsilon: f64,
        pub epsilon_mode: EpsilonMode,
        pub singleton: Singleton,
        pub layout: Layout,
        pub unscored: Unscored,
        pub empty_rows: EmptyRows,
        pub masked_output: MaskedOutput,
    }

    impl Default for Options {
        fn default() -> Self {
            let group = shakedown::contracts::group_advantage::Options::default();
            Options {
                baseline: group.baseline,
                scale: group.scale,
                ddof: group.ddof,
                epsilon: group.epsilon,
                epsilon_mode: group.epsilon_mode,
                singleton: group.singleton,
                layout: group.layout,
                unscored: group.unscored,
                empty_rows: EmptyRows::Count,
                masked_output: MaskedOutput::Zero,
            }
        }
    }
}

/// The options of `gae`.
pub mod gae {
    pub use shakedown::masked::{EmptyMask, MaskedOutput, MaskedTokens};

    /// The options of `gae`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Options {
        pub gamma: f64,
        pub lam: f64,
        pub masked: MaskedTokens,
        pub whiten: bool,
        pub empty_mask: EmptyMask,
        pub masked_output: MaskedOutput,
    }

    impl Default for Options {
        fn default() -> Self {
            Options {
                gamma: 1.0,
                lam: 0.95,
                masked: MaskedTokens::Skip,
                whiten: false,
                empty_mask: EmptyMask::Zero,
                masked_output: MaskedOutput::Zero,
            }
        }
    }
}

/// The options of `rollout-gae`.
pub mod rollout_gae {
    /// What a flag of row t says.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum DoneConvention {
        /// Step t ended its episode.
        #[default]
        After,
        /// Step t starts an episode.
        Before,
    }

    /// The options of `rollout-gae`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Options {
        pub gamma: f64,
        pub lam: f64,
        pub done_convention: DoneConvention,
    }

    impl Default for Options {
        fn default() -> Self {
            Options { gamma: 0.99, lam: 0.95, done_convention: DoneConvention::After }
        }
    }
}

/// The options of `whiten`.
pub mod whiten {
    pub use shakedown::contracts::group_advantage::EpsilonMode;
    pub use shakedown::masked::{EmptyMask, MaskedOutput};

    /// The options of `whiten`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Options {
        pub ddof: u8,
        pub epsilon: f64,
        pub epsilon_mode: EpsilonMode,
        pub shift_mean: bool,
        pub empty_mask: EmptyMask,
        pub masked_output: MaskedOutput,
    }

    impl Default for Options {
        fn default() -> Self {
            Options {
                ddof: 1,
                epsilon: 1e-8,
                epsilon_mode: EpsilonMode::Add,
                shift_mean: true,
                empty_mask: EmptyMask::Zero,
                masked_output: MaskedOutput::Zero,
            }
        }
    }
}

/// The options of `length-penalty`.
pub mod length_penalty {
    /// The course of the penalty.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum Shape {
        /// 0, then a line, then -1.
        #[default]
        LinearOverlong,
        /// 0, then a line without end.
        LinearUnbounded,
        /// Half a cosine.
        Cosine,
        /// 0, then -1.
        Step,
    }

    /// The options of `length-penalty`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Options {
        pub shape: Shape,
        pub max_length: i64,
        pub buffer: i64,
        pub min: f64,
        pub max: f64,
        pub factor: f64,
    }
}

/// The options of `token-entropy`.
pub mod token_entropy {
    /// What a logit of minus infinity does.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum NegInf {
        /// It does not come.
        #[default]
        Avoid,
        /// It contributes 0.
        Zero,
        /// It gives NaN.
        Nan,
    }

    /// The options of `token-entropy`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Options {
        pub temperature: f64,
        pub neg_inf: NegInf,
    }

    impl Default for Options {
        fn default() -> Self {
            Options { temperature: 1.0, neg_inf: NegInf::Avoid }
        }
    }
}

/// The options of `kl-estimate`.
pub mod kl_estimate {
    /// The estimator of the divergence.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum Estimator {
        /// exp(-d) - 1 + d.
        #[default]
        K3,
        /// d.
        K1,
        /// d²/2.
        K2,
        /// |d|.
        Abs,
    }

    /// Which gradient the estimate has.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum Gradient {
        /// That of its value.
        #[default]
        Value,
        /// d, whatever the value.
        K2,
        /// None.
        None,
    }

    /// The options of `kl-estimate`.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Options {
        pub estimator: Estimator,
        pub log_ratio_clamp: Option<f64>,
        pub clamp: Option<[f64; 2]>,
        pub gradient: Gradient,
    }
}

/// The options of `policy-loss`.
pub mod policy_loss {
    pub use super::kl_estimate::Estimator;
    pub use shakedown::aggregate::Aggregate;
    pub use shakedown::masked::{EmptyMask, EmptyRows};

    /// What is minimised.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum Objective {
        /// The clipped surrogate of PPO.
        #[default]
        PpoClip,
        /// -A log π.
        Reinforce,
        /// The same, weighted by the clipped ratio.
        Cispo,
    }

    /// Over what the ratio of the policies is taken.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum Ratio {
        /// Each token.
        #[default]
        Token,
        /// The row, by the mean of the log-ratios.
        Sequence,
        /// The same value, with the gradient of the token.
        SequenceToken,
    }

    /// What the clip options mean.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum ClipBounds {
        /// 1 - clip_low to 1 + clip_high.
        #[default]
        Relative,
        /// Up to clip_high.
        Absolute,
    }

    /// The estimator of the returned metric.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum ApproxKl {
        /// old - new.
        #[default]
        K1,
        /// Half the square.
        K2,
        /// ρ - 1 - log ρ.
        K3,
    }

    /// The options of `policy-loss`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Options {
        pub objective: Objective,
        pub ratio: Ratio,
        pub clip_low: f64,
        pub clip_high: f64,
        pub clip_bounds: ClipBounds,
        pub dual_clip: Option<f64>,
        pub beta: f64,
        pub kl_estimator: Estimator,
        pub kl_log_ratio_clamp: Option<f64>,
        pub kl_clamp: Option<[f64; 2]>,
        pub approx_kl: ApproxKl,
        pub aggregate: Aggregate,
        pub norm_length: Option<u32>,
        pub log_ratio_clamp: Option<f64>,
        pub empty_mask: EmptyMask,
        pub empty_rows: EmptyRows,
    }

    impl Default for Options {
        fn default() -> Self {
            Options {
                objective: Objective::PpoClip,
                ratio: Ratio::Token,
                clip_low: 0.2,
                clip_high: 0.2,
                clip_bounds: ClipBounds::Relative,
                dual_clip: None,
                beta: 0.0,
                kl_estimator: Estimator::K3,
                kl_log_ratio_clamp: None,
                kl_clamp: None,
                approx_kl: ApproxKl::K1,
                aggregate: Aggregate::TokenMean,
                norm_length: None,
                log_ratio_clamp: None,
                empty_mask: EmptyMask::Zero,
                empty_rows: EmptyRows::Skip,
            }
        }
    }
}

/// The options of `value-loss`.
pub mod value_loss {
    pub use shakedown::aggregate::Aggregate;
    pub use shakedown::masked::{EmptyMask, EmptyRows};

    /// The options of `value-loss`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Options {
        pub clip: Option<f64>,
        pub factor: f64,
        pub aggregate: Aggregate,
        pub norm_length: Option<u32>,
        pub empty_mask: EmptyMask,
        pub empty_rows: EmptyRows,
    }

    impl Default for Options {
        fn default() -> Self {
            Options {
                clip: None,
                factor: 0.5,
                aggregate: Aggregate::TokenMean,
                norm_length: None,
                empty_mask: EmptyMask::Zero,
                empty_rows: EmptyRows::Skip,
            }
        }
    }
}

/// The options of `preference-loss`.
pub mod preference_loss {
    /// The loss of a pair.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum Kind {
        /// -log σ(βΔ), smoothed.
        #[default]
        Sigmoid,
        /// max(0, 1 - βΔ).
        Hinge,
        /// (Δ - 1/(2β))².
        Ipo,
        /// -log σ(βΔ), unbiased under flipped labels.
        Robust,
    }

    /// What becomes of the pairs.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub enum Reduction {
        /// One loss each.
        #[default]
        None,
        /// Their mean.
        Mean,
    }

    /// The options of `preference-loss`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Options {
        pub kind: Kind,
        pub beta: f64,
        pub label_smoothing: f64,
        pub margin: f64,
        pub reference_free: bool,
        pub reduction: Reduction,
    }

    impl Default for Options {
        fn default() -> Self {
            Options {
                kind: Kind::Sigmoid,
                beta: 0.1,
                label_smoothing: 0.0,
                margin: 0.0,
                reference_free: false,
                reduction: Reduction::None,
            }
        }
    }
}
