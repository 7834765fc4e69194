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
