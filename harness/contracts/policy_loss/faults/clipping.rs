//! Faults of the objective: signs, bounds, and which tokens they take the gradient from.

use super::super::{ClipBounds, Objective, Options, PolicyLoss, PolicyLossCase, PolicyLossOutput};
use super::graph::on_tape;
use super::{as_if, fault, gradient, right, with_loss};
use crate::contract::fault::Fault;
use crate::value::place::Dtype;

/// No bound at all, in f32 too.
const FAR: f64 = 1e30;

pub(super) fn all() -> Vec<Fault<PolicyLoss>> {
    vec![
        fault(
            "objective-sign-flipped",
            "what should be raised is lowered: the loss, or the advantages, with the other sign",
            "papers maximise, optimizers minimise; LLaMA-Factory 52d402e2a, there in ORPO",
            "{}",
            &[flipped, |case, options, dtype| {
                let advantages = case.advantages.mapv(|a| -a);
                right(&PolicyLossCase { advantages, ..case.clone() }, options, dtype)
            }],
        ),
        fault(
            "minimum-for-maximum",
            "the smaller of the two losses: clipping acts on the wrong side",
            "the minimum of the paper's objective, kept when the sign was turned",
            "{}",
            &[|case, options, dtype| {
                on_tape(case, options, dtype, |g, at| {
                    let (ratio, a) = (g.ratio(at), -g.advantage(at));
                    (ratio * a).min(g.clipped(ratio) * a)
                })
            }],
        ),
        fault(
            "clipping-ignored",
            "the ratio is never clipped",
            "verl: `clip_ratio` alone changes nothing",
            "{}",
            &[|case, options, dtype| {
                as_if(case, options, dtype, |o| (o.clip_low, o.clip_high) = (1.0, FAR))
            }],
        ),
        fault(
            "maximum-left-out",
            "always the clipped ratio: bad moves that are large get no gradient",
            "the clipped term alone",
            "{}",
            &[|case, options, dtype| {
                on_tape(case, options, dtype, |g, at| g.clipped(g.ratio(at)) * -g.advantage(at))
            }],
        ),
        fault(
            "clipped-tokens-keep-their-gradient",
            "the value is clipped, the gradient is not",
            "a straight-through clip; trl #3032 reports the reverse",
            "{}",
            &[|case, options, dtype| {
                on_tape(case, options, dtype, |g, at| {
                    let unclipped = g.ratio(at) * -g.advantage(at);
                    g.loss(g.ratio(at), at).detach() + (unclipped - unclipped.detach())
                })
            }],
        ),
        fault(
            "lower-bound-ignored",
            "the ratio is clipped from above only",
            "torch.clamp with `max` and without `min`",
            "{}",
            &[|case, options, dtype| as_if(case, options, dtype, |o| o.clip_low = 1.0)],
        ),
        fault(
            "upper-bound-ignored",
            "the ratio is clipped from below only",
            "torch.clamp with `min` and without `max`",
            "{}",
            &[|case, options, dtype| as_if(case, options, dtype, |o| o.clip_high = FAR)],
        ),
        fault(
            "clip-bounds-swapped",
            "`clip_low` and `clip_high` stand for each other",
            "DAPO's two ranges in the wrong order",
            "{clip_high: 0.28}",
            &[|case, options, dtype| {
                as_if(case, options, dtype, |o| {
                    (o.clip_low, o.clip_high) = (o.clip_high.min(1.0), o.clip_low);
                })
            }],
        ),
        fault(
            "one-range-for-both-bounds",
            "one of the two ranges is used for both bounds",
            "verl before `clip_ratio_high` was read",
            "{clip_high: 0.28}",
            &[
                |case, options, dtype| as_if(case, options, dtype, |o| o.clip_high = o.clip_low),
                |case, options, dtype| {
                    as_if(case, options, dtype, |o| o.clip_low = o.clip_high.min(1.0))
                },
            ],
        ),
        fault(
            "clipped-in-log-space",
            "the logarithm of the ratio is clipped to the range, not the ratio",
            "clamp before the exponential",
            "{}",
            &[|case, options, dtype| {
                as_if(case, options, dtype, |o| {
                    o.clip_low = -(-o.clip_low).exp_m1();
                    o.clip_high = o.clip_high.exp_m1();
                })
            }],
        ),
        fault(
            "dual-clip-ignored",
            "no bound on the loss of tokens with A < 0, although one is declared",
            "slime's default where verl's is declared",
            "{dual_clip: 3}",
            &[|case, options, dtype| as_if(case, options, dtype, |o| o.dual_clip = None)],
        ),
        fault(
            "dual-clip-for-every-sign",
            "the bound -c·A also where A > 0",
            "torch.min without the test of the sign",
            "{dual_clip: 3}",
            &[|case, options, dtype| {
                on_tape(case, options, dtype, |g, at| {
                    let loss = g.loss(g.ratio(at), at);
                    let bound = g.options.dual().map(|c| g.tape.constant(-c * g.advantage(at)));
                    bound.map_or(loss, |bound| loss.min(bound))
                })
            }],
        ),
        fault(
            "dual-clip-undeclared",
            "the loss of tokens with A < 0 is bounded by -3·A",
            "verl's default where TRL's is declared",
            "{}",
            &[|case, options, dtype| {
                as_if(case, options, dtype, |o| {
                    o.dual_clip = Some(o.dual_clip.map_or(3.0, |c| c.min(3.0)));
                })
            }],
        ),
        fault(
            "cispo-cut-off",
            "tokens beyond the bounds get no gradient, where CISPO keeps them",
            "PPO's clipping where CISPO's is declared",
            "{objective: cispo}",
            &[|case, options, dtype| {
                on_tape(case, options, dtype, |g, at| {
                    let (lo, hi) = g.options.bounds();
                    let (ratio, loss) = (g.ratio(at).value, g.loss(g.ratio(at), at));
                    let up = g.advantage(at) > 0.0;
                    if (up && ratio > hi) || (!up && ratio < lo) { loss.detach() } else { loss }
                })
            }],
        ),
        fault(
            "cispo-weight-not-clipped",
            "the weight is the ratio itself",
            "an importance weight without its bounds",
            "{objective: cispo}",
            &[|case, options, dtype| {
                as_if(case, options, dtype, |o| {
                    o.clip_bounds = ClipBounds::Absolute;
                    o.clip_high = FAR;
                })
            }],
        ),
        fault(
            "absolute-bounds-for-relative",
            "`clip_high` is the upper bound itself",
            "TRL's `epsilon_high` where verl's is declared",
            "{objective: cispo, clip_low: 1, clip_high: 4}",
            &[|case, options, dtype| {
                as_if(case, options, dtype, |o| o.clip_bounds = ClipBounds::Absolute)
            }],
        ),
        fault(
            "relative-bounds-for-absolute",
            "the upper bound is 1 more than `clip_high`",
            "verl's `clip_ratio_high` where TRL's is declared",
            "{objective: cispo, clip_bounds: absolute, clip_high: 5}",
            &[|case, options, dtype| {
                as_if(case, options, dtype, |o| {
                    (o.clip_bounds, o.clip_low) = (ClipBounds::Relative, 1.0);
                })
            }],
        ),
        fault(
            "reinforce-with-the-probability",
            "the probability stands where its logarithm should",
            "∇π for the ∇log π of REINFORCE (Williams 1992)",
            "{objective: reinforce}",
            &[|case, options, dtype| {
                on_tape(case, options, dtype, |g, at| g.log_prob(at).exp() * -g.advantage(at))
            }],
        ),
        fault(
            "ratio-in-reinforce",
            "the unclipped ratio stands where the log-probability should",
            "NeMo-RL's `disable_ppo_ratio` without effect",
            "{objective: reinforce}",
            &[|case, options, dtype| {
                as_if(case, options, dtype, |o| {
                    o.objective = Objective::PpoClip;
                    (o.clip_low, o.clip_high, o.dual_clip) = (1.0, FAR, None);
                })
            }],
        ),
    ]
}

fn flipped(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> PolicyLossOutput {
    let right = right(case, options, dtype);
    let (loss, slopes) = (-&right.loss, -gradient(&right));
    with_loss(right, loss, Some(slopes))
}
