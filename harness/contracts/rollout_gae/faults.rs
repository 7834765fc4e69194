//! Known wrong behaviours of `rollout-gae`: real bugs, and conventions mistaken for others.

use ndarray::{Array2, Axis};

use super::{DoneConvention, Options, RolloutGae, RolloutGaeCase, RolloutGaeOutput, reference};
use shakedown_core::laws::faults::precision;
use shakedown_core::laws::faults::recursion::{self, Recursive, Step, steps};

type Fault = shakedown_core::contract::fault::Fault<RolloutGae>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [episodes(), returns_and_discounts(), steps_and_environments()];
    let rounded = precision::inputs_in_half_precision(
        "plausible: autocast left on around the whole computation",
    );
    themes.into_iter().flatten().chain([rounded]).collect()
}

/// Episodes that end elsewhere, or not at all.
fn episodes() -> Vec<Fault> {
    vec![
        Fault::new(
            "done-flag-shifted",
            "flags stored after the step are read as beginnings of episodes",
        )
        .seen("SB3 #105, #110 (2cd6a4f9)")
        .as_if(&[|options| Options { done_convention: DoneConvention::Before, ..options }]),
        Fault::new("beginnings-read-as-ends", "flags of beginnings are read as ends of episodes")
            .seen("plausible: SB3's buffer handed to a function that expects `after`")
            .under("{done_convention: before}")
            .as_if(&[|options| Options { done_convention: DoneConvention::After, ..options }]),
        Fault::new(
            "bootstrap-with-the-last-stored-value",
            "the value of the last step's own state stands for that of the state it led to",
        )
        .seen("SB3 #183, #185 (fc952715)")
        .on(&[|case, _| {
            case.last_values = case.values.row(case.values.nrows() - 1).to_owned();
        }]),
        Fault::new(
            "lambda-term-crosses-episodes",
            "the value is cut at the end of an episode, the running advantage is not",
        )
        .seen("CleanRL #494 (1ed80620)")
        .made_of([steps(|s| {
            // r + γ·(λ·R' + (1 − λ)·V'·c) − V, where R' = A' + V'.
            let mix = s.lam * (s.ahead + s.next) + (1.0 - s.lam) * s.next * s.goes_on;
            s.reward + s.gamma * mix - s.value
        })]),
        Fault::new(
            "carry-crosses-episodes",
            "the TD error is cut at the end of an episode, what is carried is not",
        )
        .seen("plausible: a recursion over TD errors that were cut before")
        .made_of([steps(|s| s.error() + s.gamma * s.lam * s.ahead)]),
        Fault::new(
            "value-crosses-episodes",
            "what is carried is cut at the end of an episode, the next value is not",
        )
        .seen(
            "plausible: the value of a state after a reset, as auto-resetting environments give it",
        )
        .made_of([steps(|s| Step { goes_on: 1.0, ..*s }.error() + s.carry())]),
        Fault::new("dones-ignored", "episodes are never cut")
            .seen("plausible: GAE for one episode used on rollouts")
            .on(&[|case, _| {
                case.dones.fill(false);
                case.last_dones.fill(false);
            }]),
        Fault::new(
            "last-done-ignored",
            "the last step is bootstrapped also where it ended its episode",
        )
        .seen("plausible: `last_dones` not passed on")
        .under("{done_convention: before}")
        .on(&[|case, options| {
            case.last_dones.fill(false);
            if options.done_convention == DoneConvention::After {
                let last = case.dones.nrows() - 1;
                case.dones.row_mut(last).fill(false);
            }
        }]),
        Fault::new(
            "cut-taken-for-an-end",
            "nothing follows the last step, whether or not it ended its episode",
        )
        .seen("plausible: `gae` over completions used on rollouts")
        .on(&[|case, _| case.last_values.fill(0.0)]),
    ]
}

/// The returns, γ and λ.
fn returns_and_discounts() -> Vec<Fault> {
    vec![
        Fault::new(
            "returns-from-stale-advantages",
            "the returns are made before the advantages are, so they are the values",
        )
        .seen("CleanRL #337 (95fcdd75)")
        .gives(&[|case, options, dtype| {
            let right = reference::rollout_gae(case, options, dtype);
            RolloutGaeOutput { returns: case.values.clone(), ..right }
        }]),
        Fault::new(
            "returns-without-lambda",
            "the returns are the discounted sums of rewards up to the last value, whatever λ is",
        )
        .seen("plausible: the critic's target made by another function")
        .gives(&[|case, options, dtype| {
            let whole = Options { lam: 1.0, ..options.clone() };
            let RolloutGaeOutput { returns, .. } = reference::rollout_gae(case, &whole, dtype);
            RolloutGaeOutput { returns, ..reference::rollout_gae(case, options, dtype) }
        }]),
        recursion::gamma_not_applied(),
        recursion::lambda_not_applied(),
        recursion::carry_left_out(),
        recursion::carry_decays_without_gamma(),
    ]
}

/// Steps left out, and in another order.
fn steps_and_environments() -> Vec<Fault> {
    vec![
        Fault::new(
            "last-reward-dropped",
            "the reward of the step that ends an episode is cut with what follows it",
        )
        .seen("plausible: `(r + γV') · nonterminal`")
        .made_of([steps(|s| {
            let rest = s.gamma * (s.next + s.lam * s.ahead);
            (s.reward + rest) * s.goes_on - s.value
        })]),
        Fault::new(
            "last-step-left-out",
            "the loop begins one step before the last, whose advantage stays 0",
        )
        .seen("plausible: `reversed(range(T - 1))`")
        .gives(&[|case, options, _| {
            let last = case.rewards.nrows() - 1;
            RolloutGae::recursion(case, options, |s| if s.at.0 == last { 0.0 } else { s.right() })
        }]),
        Fault::new(
            "carry-crosses-environments",
            "the running advantage is not reset between environments",
        )
        .seen("plausible: a loop over environments around the loop over steps")
        .gives(&[|case, options, _| carried(case, options, true, Step::right)]),
        Fault::new(
            "environments-and-steps-exchanged",
            "a rollout stored environment by environment is read step by step",
        )
        .seen("plausible: `reshape` for `swapaxes`, as buffers flatten their steps")
        .on(&[|case, _| {
            for array in [&mut case.rewards, &mut case.values] {
                let stored = array.t().iter().copied().collect();
                *array = Array2::from_shape_vec(array.dim(), stored).expect("as many as before");
            }
        }]),
        Fault::new("recursion-from-the-start", "what came before a step, for what comes after")
            .seen("plausible: a loop that is not reversed")
            .gives(&[|case, options, dtype| {
                let mut turned = case.clone();
                turned.rewards.invert_axis(Axis(0));
                turned.values.invert_axis(Axis(0));
                turned.dones.invert_axis(Axis(0));
                let mut output = reference::rollout_gae(&turned, options, dtype);
                for array in [&mut output.advantages, &mut output.returns] {
                    array.invert_axis(Axis(0));
                    *array = array.as_standard_layout().into_owned();
                }
                output
            }]),
        recursion::td_error_clipped(),
    ]
}

impl Recursive for RolloutGae {
    fn discounted(options: Options, change: fn(f64, f64) -> (f64, f64)) -> Options {
        let (gamma, lam) = change(options.gamma, options.lam);
        Options { gamma, lam, ..options }
    }

    fn recursion(
        case: &RolloutGaeCase,
        options: &Options,
        step: impl Fn(&Step) -> f64,
    ) -> RolloutGaeOutput {
        carried(case, options, false, step)
    }
}

/// The outputs of other steps; `crossing` leaves what is carried as it is between environments.
fn carried(
    case: &RolloutGaeCase,
    options: &Options,
    crossing: bool,
    step: impl Fn(&Step) -> f64,
) -> RolloutGaeOutput {
    let Options { gamma, lam, .. } = *options;
    let ends = case.ends(options);
    let mut advantages = Array2::zeros(case.rewards.dim());
    let mut ahead = 0.0;
    for env in 0..advantages.ncols() {
        ahead = if crossing { ahead } else { 0.0 };
        let mut next = case.last_values[env];
        for row in (0..advantages.nrows()).rev() {
            let at = (row, env);
            let (reward, value) = (case.rewards[at], case.values[at]);
            let (kept, goes_on) = (true, f64::from(!ends[at]));
            ahead = step(&Step { at, kept, reward, value, next, ahead, goes_on, gamma, lam });
            next = value;
            advantages[at] = ahead;
        }
    }
    let returns = &advantages + &case.values;
    (advantages, returns).into()
}
