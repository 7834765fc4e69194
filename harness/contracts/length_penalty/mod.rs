//! What a completion pays for its length.
//!
//! Completions that run into the length limit are cut and carry no answer, so trainers take
//! something off the reward near the limit, along a line, a cosine or a step. An error of one
//! token, or a line that starts at the wrong end of the buffer, punishes completions that did
//! nothing wrong, or none at all.
//!
//! ### Source
//! With `L = max_length`, `C = buffer` and `n` tokens, all times `factor`. `linear-overlong`: 0 up
//! to `L − C`, then `(L − C − n)/C`, -1 beyond `L` (Yu et al. 2025, DAPO; TRL
//! `get_soft_overlong_punishment`). `linear-unbounded`: the line goes on beyond `L` (verl's DAPO
//! reward manager, NeMo-RL reward shaping). `cosine`: `min + ½(max − min)(1 + cos(π·min(n/L, 1)))`
//! (TRL `get_cosine_scaled_reward`). `step`: 0 up to `L`, -1 beyond.
//!
//! No input is a float, so nothing tells a component the format of its place: one that answers in
//! f32 whatever it is asked is declared at `cpu/f32`, not at `cpu/f64`.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array1, Ix1};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::one;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `length-penalty`.
    ///
    /// # Shapes
    /// `N` completions: `[N]`.
    ///
    /// # Units
    /// Tokens.
    pub struct LengthPenaltyCase {
        /// How long each completion is.
        pub lengths: A::Int<Ix1>,
    }
}

record! {
    /// The output of `length-penalty`.
    ///
    /// # Shapes
    /// `[N]`.
    pub struct LengthPenaltyOutput {
        /// What is added to the reward of each completion.
        pub rewards: A::Float<Ix1>,
    }
}

impl From<Array1<f64>> for LengthPenaltyOutput {
    fn from(rewards: Array1<f64>) -> Self {
        Self { rewards }
    }
}

impl From<Array1<f32>> for LengthPenaltyOutput {
    fn from(rewards: Array1<f32>) -> Self {
        rewards.mapv(f64::from).into()
    }
}

choice! {
    /// The course of the penalty.
    pub enum Shape {
        /// 0, then a line, then -1.
        LinearOverlong = "linear-overlong",
        /// 0, then a line without end.
        LinearUnbounded = "linear-unbounded",
        /// From `max` to `min` along half a cosine.
        Cosine = "cosine",
        /// 0, then -1.
        Step = "step",
    }
}

options! {
    check: buffer_fits;
    draw: drawn;

    /// The options of `length-penalty`.
    pub struct Options {
        /// `linear-overlong` (0, a line through the buffer, -1 beyond the limit),
        /// `linear-unbounded` (the line goes on beyond the limit), `cosine` (from `max` down to
        /// `min` at the limit) or `step` (0, -1 beyond the limit).
        pub shape: Shape = Shape::LinearOverlong;
        /// L, the limit in tokens, at least 1.
        pub max_length: i64 = 64, in 1..=LONGEST;
        /// C, the tokens below the limit in which a linear penalty grows, 0 to `max_length`;
        /// `linear-unbounded` needs 1.
        pub buffer: i64 = 16;
        /// What `cosine` gives at the limit, -100 to 100.
        pub min: f64 = 0.5, in -100.0..=100.0;
        /// What `cosine` gives for an empty completion, -100 to 100; may be less than `min`.
        pub max: f64 = 1.0, in -100.0..=100.0;
        /// Multiplies the result, 0 to 100.
        pub factor: f64 = 1.0, in 0.0..=100.0;
    }
}

/// The longest limit: lengths around it are exact in f32.
const LONGEST: i64 = 1 << 20;

/// The buffer is no longer than the limit.
fn buffer_fits(options: &Options) -> Result<(), (&'static str, String)> {
    let Options { shape, max_length, buffer, .. } = *options;
    let least = i64::from(shape == Shape::LinearUnbounded);
    if !(least..=max_length).contains(&buffer) {
        let expected = format!(
            "expected an integer from {least} to `max_length` ({max_length}), found {buffer}"
        );
        return Err(("buffer", expected));
    }
    Ok(())
}

/// The buffer is drawn for the limit, and both ends of the cosine together.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let shape = one(u, Shape::ALL)?;
    let max_length = one(u, &[64, 1, 2, 7, 100, 1000, 20480])?;
    let least = i64::from(shape == Shape::LinearUnbounded);
    let buffer = one(u, &[max_length / 4, 0, 1, max_length / 2, max_length])?;
    let (min, max) =
        one(u, &[(0.5, 1.0), (-1.0, -0.5), (-0.5, -1.0), (0.0, 1.0), (0.1, 0.1), (-10.0, 10.0)])?;
    let factor = one(u, &[1.0, 0.5, 2.0, 0.1, 10.0, 0.0])?;
    let buffer = buffer.max(least);
    Ok(Options { shape, max_length, buffer, min, max, factor, ..Options::default() })
}

/// The contract: what a completion pays for its length.
#[derive(Clone, Copy, Debug)]
pub struct LengthPenalty;

impl Definition for LengthPenalty {
    type Case = LengthPenaltyCase;
    type Output = LengthPenaltyOutput;
    type Options = Options;
}

impl Contract for LengthPenalty {
    const ID: &'static str = "length-penalty";
    const STAGE: Stage = Stage::Reward;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[("lengths", "N"), ("rewards", "N")]);
    const BLIND: &'static [Blind] = &[Blind::at("factor", 1.0, &[("factor", "0.5")])];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::LENGTH_PENALTY;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: |case, options, dtype| reference::length_penalty(case, options, dtype).into(),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<LengthPenaltyCase> {
        generate::small(options, dtype)
    }

    fn oracle(case: &LengthPenaltyCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::length_penalty(case, options)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for LengthPenalty {}
