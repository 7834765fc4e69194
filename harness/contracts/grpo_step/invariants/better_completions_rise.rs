//! The best completion becomes more likely, the worst one less.
//!
//! ### Claim
//! The first token of the best completion rises at the first update, that of the worst one falls.
//!
//! ### Why it matters
//! It is what reinforcement learning is. A sign lost anywhere between reward and optimizer trains
//! the model to do the opposite.
//!
//! ### Does not hold for
//! `baseline: none`, negative weights, `beta` > 0, and means of several micro-batches; groups of
//! completions of different lengths; tokens with which another completion of the group begins too.
//!
//! ### Bugs it has caught
//! Planted: the operands of the baseline swapped, groups read the wrong way.
//!
//! ### Example
//! ```diff
//! -    centred = combined.mean(1, keepdim=True) - combined
//! +    centred = combined - combined.mean(1, keepdim=True)
//! ```

use crate::group_advantage::Baseline;
use crate::grpo_step::{GrpoStep, Options, Over};
use shakedown_core::contract::prelude::*;
use shakedown_core::contract::step::Stepped as _;

pub(super) const RULE: Rule<GrpoStep> = Rule::new(
    Pitfall::LogSpaceSign,
    &["sign-flipped", "groups-strided", "rewards-of-the-next-prompt"],
    check,
)
.under(applies);

fn applies(options: &Options) -> bool {
    let rising = options.weights.iter().flatten().all(|weight| *weight > 0.0);
    let one_mean = options.accumulation == 1 || options.over != Over::MicroBatch;
    options.beta == 0.0 && options.baseline != Baseline::None && rising && one_mean
}

fn check(probe: &mut Probe<'_, GrpoStep>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let returned = probe.finite_output()?;
    let bounds = probe.related("gradient");
    let shape = GrpoStep::shape(case, options);
    let lengths: Vec<usize> = GrpoStep::trained(case, options)
        .rows()
        .into_iter()
        .map(|row| row.iter().filter(|trained| **trained).count())
        .collect();
    let first = shape.micro_batches(0).concat();
    let trained = first.len() == shape.rows;
    let mut judged = false;
    for prompt in 0..case.tokens.dim().0 / usize::from(options.generations) {
        // One function, or all of them agree on the order.
        let rewards = case.rewards.index_axis(ndarray::Axis(0), prompt);
        let row = |own: usize| rewards.row(own).to_vec();
        let above = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a > b);
        let group = 0..shape.group;
        for own in group.clone() {
            let others = || group.clone().filter(move |other| *other != own);
            let best = others().all(|other| above(&row(own), &row(other)));
            let worst = others().all(|other| above(&row(other), &row(own)));
            let token = |of: usize| case.tokens[[prompt, of, 0]];
            let alone = others().all(|other| token(other) != token(own));
            // All of one length, and so of one weight: their advantages add up to 0.
            let length = |of: usize| lengths[prompt * shape.group + of];
            let alike = group.clone().all(|of| length(of) > 0 && length(of) == length(own));
            if !(best || worst) || !alone || !trained || !alike {
                continue;
            }
            // The first token: its logits stand with the first completion of the prompt.
            let at = [0, prompt, 0, 0, token(own) as usize];
            let (slope, allowed) = (returned.output.gradient[&at[..]], bounds[&at[..]]);
            let wrong = if best { slope > allowed } else { slope < -allowed };
            judged = true;
            if wrong {
                let which = if best { "best" } else { "worst" };
                let way = if best { "falls" } else { "rises" };
                broken!(
                    "the {which} completion of prompt {prompt} begins with {}, whose logit {way}: \
                     its gradient is {}",
                    token(own),
                    number(slope)
                );
            }
        }
    }
    if judged { Ok(()) } else { Err(Stop::Vacuous) }
}
