//! Known wrong behaviours of `rollout-gae`: real bugs, and conventions mistaken for others.

use ndarray::{Array2, Axis};

use super::{DoneConvention, Options, RolloutGae, RolloutGaeCase, RolloutGaeOutput, reference};

type Fault = crate::contract::fault::Fault<RolloutGae>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "done-flag-shifted",
            "flags stored after the step are read as beginnings of episodes",
        )
        .seen("SB3 #105, #110 (2cd6a4f9)")
        .gives(&[|case, options, dtype| {
            let before = DoneConvention::Before;
            let options = Options { done_convention: before, ..options.clone() };
            reference::rollout_gae(case, &options, dtype)
        }]),
        Fault::new("beginnings-read-as-ends", "flags of beginnings are read as ends of episodes")
            .seen("plausible: SB3's buffer handed to a function that expects `after`")
            .under("{done_convention: before}")
            .gives(&[|case, options, dtype| {
                let after = DoneConvention::After;
                let options = Options { done_convention: after, ..options.clone() };
                reference::rollout_gae(case, &options, dtype)
            }]),
        Fault::new(
            "bootstrap-with-the-last-stored-value",
            "the value of the last step's own state stands for that of the state it led to",
        )
        .seen("SB3 #183, #185 (fc952715)")
        .gives(&[|case, options, dtype| {
            let last_values = case.values.row(case.values.nrows() - 1).to_owned();
            let case = RolloutGaeCase { last_values, ..case.clone() };
            reference::rollout_gae(&case, options, dtype)
        }]),
        Fault::new(
            "lambda-term-crosses-episodes",
            "the value is cut at the end of an episode, the running advantage is not",
        )
        .seen("CleanRL #494 (1ed80620)")
        .gives(&[|case, options, _| {
            // r + γ·(λ·R' + (1 − λ)·V'·c) − V, where R' = A' + V'.
            recursion(case, options, |s, o| {
                let mix = o.lam * (s.ahead + s.next) + (1.0 - o.lam) * s.next * s.goes_on;
                s.reward + o.gamma * mix - s.value
            })
        }]),
        Fault::new(
            "carry-crosses-episodes",
            "the TD error is cut at the end of an episode, what is carried is not",
        )
        .seen("plausible: a recursion over TD errors that were cut before")
        .gives(&[|case, options, _| {
            recursion(case, options, |s, o| s.error(o.gamma, s.goes_on) + o.gamma * o.lam * s.ahead)
        }]),
        Fault::new(
            "value-crosses-episodes",
            "what is carried is cut at the end of an episode, the next value is not",
        )
        .seen(
            "plausible: the value of a state after a reset, as auto-resetting environments give it",
        )
        .gives(&[|case, options, _| {
            recursion(case, options, |s, o| {
                s.error(o.gamma, 1.0) + o.gamma * o.lam * s.goes_on * s.ahead
            })
        }]),
        Fault::new("dones-ignored", "episodes are never cut")
            .seen("plausible: GAE for one episode used on rollouts")
            .gives(&[|case, options, dtype| {
                let mut endless = case.clone();
                endless.dones.fill(false);
                endless.last_dones.fill(false);
                reference::rollout_gae(&endless, options, dtype)
            }]),
        Fault::new(
            "last-done-ignored",
            "the last step is bootstrapped also where it ended its episode",
        )
        .seen("plausible: `last_dones` not passed on")
        .under("{done_convention: before}")
        .gives(&[|case, options, dtype| {
            let mut open = case.clone();
            open.last_dones.fill(false);
            if options.done_convention == DoneConvention::After {
                let last = open.dones.nrows() - 1;
                open.dones.row_mut(last).fill(false);
            }
            reference::rollout_gae(&open, options, dtype)
        }]),
        Fault::new(
            "cut-taken-for-an-end",
            "nothing follows the last step, whether or not it ended its episode",
        )
        .seen("plausible: `gae` over completions used on rollouts")
        .gives(&[|case, options, dtype| {
            let last_values = case.last_values.mapv(|_| 0.0);
            let case = RolloutGaeCase { last_values, ..case.clone() };
            reference::rollout_gae(&case, options, dtype)
        }]),
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
        Fault::new("gamma-not-applied", "no discount, as with γ = 1")
            .seen("an option without effect")
            .gives(&[|case, options, dtype| {
                reference::rollout_gae(case, &Options { gamma: 1.0, ..options.clone() }, dtype)
            }]),
        Fault::new("lambda-not-applied", "the discounted return less the value, as with λ = 1")
            .seen("an option without effect")
            .gives(&[|case, options, dtype| {
                reference::rollout_gae(case, &Options { lam: 1.0, ..options.clone() }, dtype)
            }]),
        Fault::new("carry-left-out", "the TD error alone, as with λ = 0")
            .seen("one-step advantages where GAE is declared")
            .gives(&[|case, options, dtype| {
                reference::rollout_gae(case, &Options { lam: 0.0, ..options.clone() }, dtype)
            }]),
        Fault::new("carry-decays-without-gamma", "δ + λA' for δ + γλA'")
            .seen("plausible: a discount left out of the carry")
            .under("{gamma: 0.9}")
            .gives(&[|case, options, _| {
                recursion(case, options, |s, o| {
                    s.error(o.gamma, s.goes_on) + o.lam * s.goes_on * s.ahead
                })
            }]),
        Fault::new(
            "last-reward-dropped",
            "the reward of the step that ends an episode is cut with what follows it",
        )
        .seen("plausible: `(r + γV') · nonterminal`")
        .gives(&[|case, options, _| {
            recursion(case, options, |s, o| {
                let rest = o.gamma * (s.next + o.lam * s.ahead);
                (s.reward + rest) * s.goes_on - s.value
            })
        }]),
        Fault::new(
            "last-step-left-out",
            "the loop begins one step before the last, whose advantage stays 0",
        )
        .seen("plausible: `reversed(range(T - 1))`")
        .gives(&[|case, options, _| {
            let last = case.rewards.nrows() - 1;
            recursion(case, options, |s, o| if s.step == last { 0.0 } else { s.right(o) })
        }]),
        Fault::new(
            "carry-crosses-environments",
            "the running advantage is not reset between environments",
        )
        .seen("plausible: a loop over environments around the loop over steps")
        .gives(&[|case, options, _| crossing(case, options)]),
        Fault::new(
            "environments-and-steps-exchanged",
            "a rollout stored environment by environment is read step by step",
        )
        .seen("plausible: `reshape` for `swapaxes`, as buffers flatten their steps")
        .gives(&[|case, options, dtype| {
            let [rewards, values] = [&case.rewards, &case.values].map(|array| {
                let stored: Vec<f64> = array.t().iter().copied().collect();
                Array2::from_shape_vec(array.dim(), stored).expect("as many as before")
            });
            let case = RolloutGaeCase { rewards, values, ..case.clone() };
            reference::rollout_gae(&case, options, dtype)
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
        Fault::new("td-error-clipped", "TD errors are clipped to ±1 or ±10")
            .seen("Atari-style clipping left on by default")
            .gives(&[
                |case, options, _| {
                    recursion(case, options, |s, o| {
                        let error = s.error(o.gamma, s.goes_on).clamp(-1.0, 1.0);
                        error + o.gamma * o.lam * s.goes_on * s.ahead
                    })
                },
                |case, options, _| {
                    recursion(case, options, |s, o| {
                        let error = s.error(o.gamma, s.goes_on).clamp(-10.0, 10.0);
                        error + o.gamma * o.lam * s.goes_on * s.ahead
                    })
                },
            ]),
    ]
}

/// One step of the recursion, which runs from the end of the rollout.
struct Step {
    step: usize,
    reward: f64,
    value: f64,
    /// 0 where the step ended its episode, else 1.
    goes_on: f64,
    /// The value of the state after, ended or not.
    next: f64,
    /// The advantage of the step after.
    ahead: f64,
}

impl Step {
    fn error(&self, gamma: f64, goes_on: f64) -> f64 {
        self.reward + gamma * goes_on * self.next - self.value
    }

    fn right(&self, options: &Options) -> f64 {
        let carry = options.gamma * options.lam * self.goes_on * self.ahead;
        self.error(options.gamma, self.goes_on) + carry
    }
}

/// The outputs of a recursion with a step of its own.
fn recursion(
    case: &RolloutGaeCase,
    options: &Options,
    step: impl Fn(&Step, &Options) -> f64,
) -> RolloutGaeOutput {
    carried(case, options, false, step)
}

/// The right recursion, in which what is carried is left as it is between environments.
fn crossing(case: &RolloutGaeCase, options: &Options) -> RolloutGaeOutput {
    carried(case, options, true, Step::right)
}

fn carried(
    case: &RolloutGaeCase,
    options: &Options,
    crossing: bool,
    right: impl Fn(&Step, &Options) -> f64,
) -> RolloutGaeOutput {
    let ends = case.ends(options);
    let mut advantages = Array2::zeros(case.rewards.dim());
    let mut ahead = 0.0;
    for env in 0..advantages.ncols() {
        ahead = if crossing { ahead } else { 0.0 };
        let mut next = case.last_values[env];
        for step in (0..advantages.nrows()).rev() {
            let at = [step, env];
            let (reward, value) = (case.rewards[at], case.values[at]);
            let goes_on = f64::from(!ends[at]);
            ahead = right(&Step { step, reward, value, goes_on, next, ahead }, options);
            next = value;
            advantages[at] = ahead;
        }
    }
    let returns = &advantages + &case.values;
    (advantages, returns).into()
}
