//! Does it learn: a few steps of policy gradient on a softmax policy over arms.
//!
//! The smallest training run there is: each arm has a fixed reward, the policy samples arms and
//! follows them. Every part of a trainer is in it (sampling, advantage, loss, optimizer, the pull
//! to a reference), and the parts must work together: the better arms must become more likely.
//! What single runs do is chance, so most invariants ask many seeds and count.
//!
//! ### Source
//! With J = Σ π_a r_a the gradient is ∂J/∂z_a = π_a (r_a − J), less β π_a (log(π_a / ref_a) − KL)
//! where the reference pulls. REINFORCE, PPO and GRPO follow estimates of it.

mod faults;
mod generate;
mod invariants;
#[doc(hidden)]
pub mod learner;
mod trials;

use std::ops::Bound::{Excluded, Included};

use ndarray::{Array1, Ix0, Ix1, arr0};

use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::measure::Measure;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `policy-update`.
    ///
    /// # Shapes
    /// `A` arms: logits and rewards `[A]`; the others are single numbers.
    pub struct PolicyUpdateCase {
        /// The policy to begin with, and the reference.
        pub logits: A::Float<Ix1>,
        /// The reward of each arm.
        pub rewards: A::Float<Ix1>,
        /// How many steps to take, 1 or more.
        pub steps: A::Int<Ix0>,
        /// The learning rate of the optimizer.
        pub learning_rate: A::Float<Ix0>,
        /// The seed of the sampled arms, 0 to 2^31 - 1.
        pub seed: A::Int<Ix0>,
    }
}

record! {
    /// The outputs of `policy-update`.
    ///
    /// # Shapes
    /// `[A]`.
    pub struct PolicyUpdateOutput {
        /// The policy after the steps.
        pub logits: A::Float<Ix1>,
        /// The reference after the steps.
        pub ref_logits: Option<A::Float<Ix1>>,
    }
}

impl From<Array1<f64>> for PolicyUpdateOutput {
    fn from(logits: Array1<f64>) -> Self {
        Self { logits, ref_logits: None }
    }
}

impl From<Vec<f64>> for PolicyUpdateOutput {
    fn from(logits: Vec<f64>) -> Self {
        Array1::from(logits).into()
    }
}

impl PolicyUpdateCase {
    /// The same case with another seed.
    fn seeded(&self, seed: i64) -> Self {
        Self { seed: arr0(seed), ..self.clone() }
    }
}

options! {
    /// The options of `policy-update`.
    pub struct Options {
        /// A number ≥ 0: the weight of the KL to the starting policy.
        pub beta: f64 = 0.0, in 0.0.., expected "a finite number ≥ 0",
            draw [0.0, 0.1, 0.0, 0.04, 0.5];
        /// A number from 0 to 0.5: the share of runs in which a right component may fail by
        /// chance to show what an invariant asks for.
        pub tolerance: f64 = 0.1, in (Excluded(0.0), Included(0.5)), draw [0.1, 0.05, 0.2];
    }
}

/// The contract: a few steps of policy gradient on a bandit. There is no oracle: what a run gives
/// is chance, and every algorithm has its own.
#[derive(Clone, Copy, Debug)]
pub struct PolicyUpdate;

impl Definition for PolicyUpdate {
    type Case = PolicyUpdateCase;
    type Output = PolicyUpdateOutput;
    type Options = Options;
}

impl Contract for PolicyUpdate {
    const ID: &'static str = "policy-update";
    const STAGE: Stage = Stage::Update;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::POLICY_UPDATE;
    const PARTS: Parts<Self> = Parts {
        draw: |u, _, dtype| generate::draw(u, dtype),
        corners: |_, dtype| generate::corners(dtype),
        valid: |case, _, _| generate::valid(case),
        classes: generate::classes,
        reference: |case, options, _| learner::Learner::default().learn(case, options),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn simpler(case: &PolicyUpdateCase, _: &Options, _: Dtype) -> Vec<PolicyUpdateCase> {
        generate::simpler(case)
    }

    fn measure(case: &PolicyUpdateCase) -> Measure {
        generate::measure(case)
    }

    fn shapes(case: &PolicyUpdateCase, _: &Options) -> Vec<(&'static str, Vec<usize>)> {
        vec![("logits", vec![case.logits.len()])]
    }
}

/// The probabilities of some logits.
fn softmax(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|z| (z - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// The expected reward of a policy.
fn expected_reward(logits: &Array1<f64>, rewards: &Array1<f64>) -> f64 {
    softmax(&logits.to_vec()).iter().zip(rewards).map(|(p, r)| p * r).sum()
}

/// How far a policy is from another one: KL(new ‖ old).
fn divergence(new: &Array1<f64>, old: &Array1<f64>) -> f64 {
    let (new, old) = (softmax(&new.to_vec()), softmax(&old.to_vec()));
    let terms = new.iter().zip(&old).filter(|(p, _)| **p > 0.0);
    terms.map(|(p, q)| p * (p / q.max(f64::MIN_POSITIVE)).ln()).sum()
}
