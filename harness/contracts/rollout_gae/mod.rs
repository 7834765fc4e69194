//! Generalised advantage estimation over rollouts of environments that start anew.
//!
//! A rollout is a window of `T` steps of `E` environments. Episodes end inside it, and the window
//! ends inside an episode. At the end of an episode nothing of the next one may come in; at the
//! end of the window the value of the state that the last step led to stands for what follows.
//!
//! ### Source
//! Schulman et al. 2015: `δ_t = r_t + γ·c_t·V_{t+1} − V_t`, `A_t = δ_t + γλ·c_t·A_{t+1}`,
//! `returns = A + V`, where `c_t` is 0 if step t ended its episode and 1 otherwise, and `V_T` is
//! `last_values`. With `done_convention: after`, `c_t = 1 − dones_t`; with `before`, as in the
//! buffers of Stable-Baselines3 and CleanRL, `c_t = 1 − dones_{t+1}` with `last_dones` for the row
//! after the last.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array2, Ix1, Ix2};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{self, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `rollout-gae`.
    ///
    /// # Shapes
    /// `T` steps of `E` environments: `[T, E]`, and `[E]` for what follows the last step.
    pub struct RolloutGaeCase {
        /// The reward of each step, `[T, E]`.
        pub rewards: A::Float<Ix2>,
        /// The critic's value of the state in which each step was taken, `[T, E]`.
        pub values: A::Float<Ix2>,
        /// Ends or beginnings of episodes, as `done_convention` says, `[T, E]`.
        pub dones: A::Bool<Ix2>,
        /// The value of the state that the last step led to, `[E]`.
        pub last_values: A::Float<Ix1>,
        /// The flags after the last step, `[E]`: the last row of `dones` once more (`after`), or
        /// the row that would follow (`before`).
        pub last_dones: A::Bool<Ix1>,
    }
}

record! {
    /// The output of `rollout-gae`.
    ///
    /// # Shapes
    /// Both `[T, E]`.
    pub struct RolloutGaeOutput {
        /// The advantage of each step.
        pub advantages: A::Float<Ix2>,
        /// The critic's target for each step: the advantage and the value.
        pub returns: A::Float<Ix2>,
    }
}

impl From<(Array2<f64>, Array2<f64>)> for RolloutGaeOutput {
    /// Advantages, then returns.
    fn from((advantages, returns): (Array2<f64>, Array2<f64>)) -> Self {
        Self { advantages, returns }
    }
}

impl From<(Array2<f32>, Array2<f32>)> for RolloutGaeOutput {
    /// Advantages, then returns.
    fn from((advantages, returns): (Array2<f32>, Array2<f32>)) -> Self {
        (advantages.mapv(f64::from), returns.mapv(f64::from)).into()
    }
}

choice! {
    /// What a flag of row t says.
    pub enum DoneConvention {
        /// Step t ended its episode.
        After = "after",
        /// Step t starts an episode.
        Before = "before",
    }
}

options! {
    /// The options of `rollout-gae`.
    pub struct Options {
        /// The discount of one step, 0 to 1.
        pub gamma: f64 = 0.99, in 0.0..=1.0, draw [0.99, 1.0, 0.9, 0.5, 0.0];
        /// λ, how far ahead rewards are trusted over values: 0 (TD error) to 1 (return − value).
        pub lam: f64 = 0.95, in 0.0..=1.0, draw [0.95, 1.0, 0.0, 0.5];
        /// `after` (row t says that step t ended its episode, and `last_dones` equals the last row)
        /// or `before` (row t says that step t starts an episode, and `last_dones` is the row that
        /// would follow).
        pub done_convention: DoneConvention = DoneConvention::After;
    }
}

impl RolloutGaeCase {
    /// Whether each step ended its episode.
    fn ends(&self, options: &Options) -> Array2<bool> {
        let steps = self.dones.nrows();
        Array2::from_shape_fn(self.dones.dim(), |(step, env)| match options.done_convention {
            DoneConvention::After => self.dones[[step, env]],
            DoneConvention::Before if step + 1 < steps => self.dones[[step + 1, env]],
            DoneConvention::Before => self.last_dones[env],
        })
    }

    /// With `after`, makes `last_dones` say what the last row says.
    fn agree(mut self, options: &Options) -> Self {
        if options.done_convention == DoneConvention::After {
            self.last_dones.assign(&self.dones.row(self.dones.nrows() - 1));
        }
        self
    }
}

/// The contract: generalised advantage estimation over rollouts.
#[derive(Clone, Copy, Debug)]
pub struct RolloutGae;

impl Definition for RolloutGae {
    type Case = RolloutGaeCase;
    type Output = RolloutGaeOutput;
    type Options = Options;
}

impl Contract for RolloutGae {
    const ID: &'static str = "rollout-gae";
    const STAGE: Stage = Stage::Advantage;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[
        ("rewards", "TE"),
        ("values", "TE"),
        ("dones", "TE"),
        ("last_values", "E"),
        ("last_dones", "E"),
        ("advantages", "TE"),
        ("returns", "TE"),
    ])
    .rows('E');
    const BLIND: &'static [Blind] = &[
        Blind::while_equal(["gamma", "lam"], &[("gamma", "0.9"), ("lam", "0.7")]),
        Blind::at("gamma", 1.0, &[("gamma", "0.9")]),
        Blind::at("lam", 1.0, &[("lam", "0.9")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::ROLLOUT_GAE;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::rollout_gae,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<RolloutGaeCase> {
        let few: &[f64] = &[0.0, 0.0, 1.0, 2.0];
        let palette = [("rewards", few), ("values", few), ("last_values", few)];
        rows::small::<Self>(&palette, options, dtype)
    }

    fn simpler(case: &RolloutGaeCase, options: &Options, _: Dtype) -> Vec<RolloutGaeCase> {
        let candidates = rows::simpler::<Self>(case).into_iter();
        candidates.map(|candidate| candidate.agree(options)).collect()
    }

    fn oracle(case: &RolloutGaeCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::rollout_gae(case, options)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for RolloutGae {}
