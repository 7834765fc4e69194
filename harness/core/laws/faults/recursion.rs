//! Faults of advantages that a recursion makes, from the last step to the first.

use crate::contract::Contract;
use crate::contract::fault::{Fault, Variant};

/// A contract of such advantages.
pub trait Recursive: Contract {
    /// The options with other γ and λ.
    fn discounted(options: Self::Options, change: fn(f64, f64) -> (f64, f64)) -> Self::Options;

    /// The outputs of a recursion that takes other steps.
    fn recursion(
        case: &Self::Case,
        options: &Self::Options,
        step: impl Fn(&Step) -> f64,
    ) -> Self::Output;
}

/// One step of the recursion.
pub struct Step {
    /// Where it is in the arrays.
    pub at: (usize, usize),
    /// The mask.
    pub kept: bool,
    /// The reward.
    pub reward: f64,
    /// The value.
    pub value: f64,
    /// The value of the step after.
    pub next: f64,
    /// The advantage of the step after.
    pub ahead: f64,
    /// 0 where the step ended its episode, else 1.
    pub goes_on: f64,
    /// γ.
    pub gamma: f64,
    /// λ.
    pub lam: f64,
}

impl Step {
    /// The TD error.
    pub fn error(&self) -> f64 {
        self.reward + self.gamma * self.goes_on * self.next - self.value
    }

    /// What is carried over from the step after.
    pub fn carry(&self) -> f64 {
        self.gamma * self.lam * self.goes_on * self.ahead
    }

    /// The right advantage.
    pub fn right(&self) -> f64 {
        self.error() + self.carry()
    }
}

/// A recursion that takes other steps.
pub fn steps<C: Recursive>(step: fn(&Step) -> f64) -> Variant<C> {
    Variant::gives(move |case, options, _| C::recursion(case, options, step))
}

/// γ is 1.
pub fn gamma_not_applied<C: Recursive>() -> Fault<C> {
    Fault::new("gamma-not-applied", "no discount, as with γ = 1")
        .seen("an option without effect")
        .as_if(&[|options| C::discounted(options, |_, lam| (1.0, lam))])
}

/// λ is 1.
pub fn lambda_not_applied<C: Recursive>() -> Fault<C> {
    Fault::new("lambda-not-applied", "the discounted return less the value, as with λ = 1")
        .seen("an option without effect")
        .as_if(&[|options| C::discounted(options, |gamma, _| (gamma, 1.0))])
}

/// λ is 0.
pub fn carry_left_out<C: Recursive>() -> Fault<C> {
    Fault::new("carry-left-out", "the TD error alone, as with λ = 0")
        .seen("one-step advantages where GAE is declared")
        .as_if(&[|options| C::discounted(options, |gamma, _| (gamma, 0.0))])
}

/// λ stands for γλ.
pub fn carry_decays_without_gamma<C: Recursive>() -> Fault<C> {
    Fault::new("carry-decays-without-gamma", "δ + λA' for δ + γλA'")
        .seen("plausible: a discount left out of the carry")
        .under("{gamma: 0.9}")
        .made_of([steps(|s| s.error() + s.lam * s.goes_on * s.ahead)])
}

/// TD errors are small.
pub fn td_error_clipped<C: Recursive>() -> Fault<C> {
    Fault::new("td-error-clipped", "TD errors are clipped to ±1 or ±10")
        .seen("Atari-style clipping left on by default")
        .made_of([
            steps(|s| s.error().clamp(-1.0, 1.0) + s.carry()),
            steps(|s| s.error().clamp(-10.0, 10.0) + s.carry()),
        ])
}
