//! The options of the contracts that `shakedown` does not have yet, named as it will name them.
//!
//! Each module stands in for `shakedown::contracts::<module>` until that exists.

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

/// The options of `policy-loss`.
pub mod policy_loss {
    pub use shakedown::contracts::kl_estimate::Estimator;
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

