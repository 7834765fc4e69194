//! Faults of the objective: signs, bounds, and which tokens they take the gradient from.

use super::super::{ClipBounds, Objective};
use super::graph::on_tape;
use super::{Fault, gradient, loss_as_if, right, with_loss};

/// No bound at all, in f32 too.
const FAR: f64 = 1e30;

/// The sign, and the bounds of the ratio.
pub(super) fn bounds() -> Vec<Fault> {
    vec![
        Fault::new(
            "objective-sign-flipped",
            "what should be raised is lowered: the loss, or the advantages, with the other sign",
        )
        .seen("papers maximise, optimizers minimise; LLaMA-Factory 52d402e2a, there in ORPO")
        .gives(&[|case, options, dtype| {
            let right = right(case, options, dtype);
            let (loss, slopes) = (-&right.loss, -gradient(&right));
            with_loss(right, loss, Some(slopes))
        }])
        .on(&[|case, _| case.advantages.mapv_inplace(|a| -a)]),
        Fault::new(
            "minimum-for-maximum",
            "the smaller of the two losses: clipping acts on the wrong side",
        )
        .seen("the minimum of the paper's objective, kept when the sign was turned")
        .made_of([on_tape(|g, at| {
            let (ratio, a) = (g.ratio(at), -g.advantage(at));
            (ratio * a).min(g.clipped(ratio) * a)
        })]),
        Fault::new("clipping-ignored", "the ratio is never clipped")
            .seen("verl: `clip_ratio` alone changes nothing")
            .made_of([loss_as_if(|o| (o.clip_low, o.clip_high) = (1.0, FAR))]),
        Fault::new(
            "maximum-left-out",
            "always the clipped ratio: bad moves that are large get no gradient",
        )
        .seen("the clipped term alone")
        .made_of([on_tape(|g, at| g.clipped(g.ratio(at)) * -g.advantage(at))]),
        Fault::new(
            "clipped-tokens-keep-their-gradient",
            "the value is clipped, the gradient is not",
        )
        .seen("a straight-through clip; trl #3032 reports the reverse")
        .made_of([on_tape(|g, at| {
            let unclipped = g.ratio(at) * -g.advantage(at);
            g.loss(g.ratio(at), at).detach() + (unclipped - unclipped.detach())
        })]),
        Fault::new("lower-bound-ignored", "the ratio is clipped from above only")
            .seen("torch.clamp with `max` and without `min`")
            .made_of([loss_as_if(|o| o.clip_low = 1.0)]),
        Fault::new("upper-bound-ignored", "the ratio is clipped from below only")
            .seen("torch.clamp with `min` and without `max`")
            .made_of([loss_as_if(|o| o.clip_high = FAR)]),
        Fault::new("clip-bounds-swapped", "`clip_low` and `clip_high` stand for each other")
            .seen("DAPO's two ranges in the wrong order")
            .under("{clip_high: 0.28}")
            .made_of([loss_as_if(|o| {
                (o.clip_low, o.clip_high) = (o.clip_high.min(1.0), o.clip_low);
            })]),
        Fault::new("one-range-for-both-bounds", "one of the two ranges is used for both bounds")
            .seen("verl before `clip_ratio_high` was read")
            .under("{clip_high: 0.28}")
            .made_of([
                loss_as_if(|o| o.clip_high = o.clip_low),
                loss_as_if(|o| o.clip_low = o.clip_high.min(1.0)),
            ]),
        Fault::new(
            "clipped-in-log-space",
            "the logarithm of the ratio is clipped to the range, not the ratio",
        )
        .seen("clamp before the exponential")
        .made_of([loss_as_if(|o| {
            o.clip_low = -(-o.clip_low).exp_m1();
            o.clip_high = o.clip_high.exp_m1();
        })]),
    ]
}

/// The dual clip, and the other objectives.
pub(super) fn objectives() -> Vec<Fault> {
    vec![
        Fault::new(
            "dual-clip-ignored",
            "no bound on the loss of tokens with A < 0, although one is declared",
        )
        .seen("slime's default where verl's is declared")
        .under("{dual_clip: 3}")
        .made_of([loss_as_if(|o| o.dual_clip = None)]),
        Fault::new("dual-clip-for-every-sign", "the bound -c·A also where A > 0")
            .seen("torch.min without the test of the sign")
            .under("{dual_clip: 3}")
            .made_of([on_tape(|g, at| {
                let loss = g.loss(g.ratio(at), at);
                let bound = g.options.dual().map(|c| g.tape.constant(-c * g.advantage(at)));
                bound.map_or(loss, |bound| loss.min(bound))
            })]),
        Fault::new("dual-clip-undeclared", "the loss of tokens with A < 0 is bounded by -3·A")
            .seen("verl's default where TRL's is declared")
            .made_of([loss_as_if(|o| {
                o.dual_clip = Some(o.dual_clip.map_or(3.0, |c| c.min(3.0)));
            })]),
        Fault::new(
            "cispo-cut-off",
            "tokens beyond the bounds get no gradient, where CISPO keeps them",
        )
        .seen("PPO's clipping where CISPO's is declared")
        .under("{objective: cispo}")
        .made_of([on_tape(|g, at| {
            let (lo, hi) = g.options.bounds();
            let (ratio, loss) = (g.ratio(at).value, g.loss(g.ratio(at), at));
            let up = g.advantage(at) > 0.0;
            if (up && ratio > hi) || (!up && ratio < lo) { loss.detach() } else { loss }
        })]),
        Fault::new("cispo-weight-not-clipped", "the weight is the ratio itself")
            .seen("an importance weight without its bounds")
            .under("{objective: cispo}")
            .made_of([loss_as_if(|o| {
                o.clip_bounds = ClipBounds::Absolute;
                o.clip_high = FAR;
            })]),
        Fault::new("absolute-bounds-for-relative", "`clip_high` is the upper bound itself")
            .seen("TRL's `epsilon_high` where verl's is declared")
            .under("{objective: cispo, clip_low: 1, clip_high: 4}")
            .made_of([loss_as_if(|o| o.clip_bounds = ClipBounds::Absolute)]),
        Fault::new("relative-bounds-for-absolute", "the upper bound is 1 more than `clip_high`")
            .seen("verl's `clip_ratio_high` where TRL's is declared")
            .under("{objective: cispo, clip_bounds: absolute, clip_high: 5}")
            .made_of([loss_as_if(|o| {
                (o.clip_bounds, o.clip_low) = (ClipBounds::Relative, 1.0);
            })]),
        Fault::new(
            "reinforce-with-the-probability",
            "the probability stands where its logarithm should",
        )
        .seen("∇π for the ∇log π of REINFORCE (Williams 1992)")
        .under("{objective: reinforce}")
        .made_of([on_tape(|g, at| g.log_prob(at).exp() * -g.advantage(at))]),
        Fault::new(
            "ratio-in-reinforce",
            "the unclipped ratio stands where the log-probability should",
        )
        .seen("NeMo-RL's `disable_ppo_ratio` without effect")
        .under("{objective: reinforce}")
        .made_of([loss_as_if(|o| {
            o.objective = Objective::PpoClip;
            (o.clip_low, o.clip_high, o.dual_clip) = (1.0, FAR, None);
        })]),
    ]
}
