//! Known wrong behaviours of `policy-update`: the reference with one habit changed.

use super::learner::{Learner, Reference};
use super::{Options, PolicyUpdate, PolicyUpdateCase, PolicyUpdateOutput};

type Fault = crate::contract::fault::Fault<PolicyUpdate>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "reference-recomputed-from-the-policy",
            "the reference that comes back was computed again with the trained weights",
        )
        .seen("trl #6443 (d2b72b720)")
        .gives(&[|case, options, _| {
            let reference = Reference::Recomputed;
            Learner { reference, ..Learner::default() }.learn(case, options)
        }]),
        Fault::new(
            "reference-shared-with-the-policy",
            "the reference is the policy itself, not a copy: it moves along and pulls to nowhere",
        )
        .seen("`reference = policy` without a copy: PyTorch modules are shared by assignment")
        .under("{beta: 0.5}")
        .gives(&[|case, options, _| {
            let reference = Reference::Shared;
            Learner { reference, ..Learner::default() }.learn(case, options)
        }]),
        Fault::new(
            "another-reference",
            "the pull is to the uniform policy, not to the one that training began with",
        )
        .seen("a reference model loaded from another checkpoint")
        .under("{beta: 0.5}")
        .gives(&[|case, options, _| {
            let reference = Reference::Uniform;
            Learner { reference, ..Learner::default() }.learn(case, options)
        }]),
        Fault::new("beta-ignored", "the KL term is left out, whatever `beta` is")
            .seen("unsloth #3604 (4571ecaca3): β set to 0 silently; slime f6f46cb17: β never read")
            .under("{beta: 0.5}")
            .gives(&[|case, options, _| {
                Learner { beta: |_| 0.0, ..Learner::default() }.learn(case, options)
            }]),
        Fault::new(
            "kl-sign-flipped",
            "the KL is rewarded: the policy is pushed away from the reference",
        )
        .seen("verl #179 (a65c9157b), Search-R1 4b3c094: the KL term subtracted from the loss")
        .under("{beta: 0.5}")
        .gives(&[|case, options, _| {
            Learner { beta: |beta| -beta, ..Learner::default() }.learn(case, options)
        }]),
        Fault::new(
            "sign-flipped",
            "descends where it should ascend: the worse arms become more likely",
        )
        .seen("an optimizer minimises; the minus in front of the objective is missing")
        .gives(&[|case, options, _| {
            advantages(case, options, |sampled| {
                let mean = sampled.mean();
                sampled.rewards.iter().map(|r| mean - r).collect()
            })
        }]),
        Fault::new("reward-ignored", "every sampled arm is pushed up alike, whatever its reward")
            .seen(
                "the likelihood of all samples is raised, as in fine-tuning, without their weights",
            )
            .gives(&[|case, options, _| {
                advantages(case, options, |sampled| vec![1.0; sampled.arms.len()])
            }]),
        Fault::new(
            "advantage-of-another-arm",
            "each sample gets the advantage of the next arm, or of the next sample",
        )
        .seen("LLaMA-Factory #7576: scores of other rows")
        .gives(&[
            |case, options, _| {
                advantages(case, options, |sampled| {
                    let count = sampled.of_arms.len();
                    let next = |arm: &usize| sampled.of_arms[(arm + 1) % count];
                    let rewards: Vec<f64> = sampled.arms.iter().map(next).collect();
                    let mean = rewards.iter().sum::<f64>() / rewards.len() as f64;
                    rewards.iter().map(|r| r - mean).collect()
                })
            },
            |case, options, _| {
                advantages(case, options, |sampled| {
                    let mean = sampled.mean();
                    let mut rewards = sampled.rewards.to_vec();
                    rewards.rotate_left(1);
                    rewards.iter().map(|r| r - mean).collect()
                })
            },
        ]),
        Fault::new(
            "magnitude-of-the-advantage",
            "|A| for A: what is worse than the mean is pushed up too",
        )
        .seen("a squared advantage in a loss that is minimised; pitfall log-space-sign")
        .gives(&[|case, options, _| {
            advantages(case, options, |sampled| {
                let mean = sampled.mean();
                sampled.rewards.iter().map(|r| (r - mean).abs()).collect()
            })
        }]),
        Fault::new(
            "update-of-a-copy",
            "what is trained is a copy: the policy that comes back is the one that went in",
        )
        .seen("an optimizer made before the model was moved or wrapped")
        .gives(&[|case, options, _| {
            Learner { returned: false, ..Learner::default() }.learn(case, options)
        }]),
        Fault::new(
            "most-likely-arm-sampled",
            "the most likely arm is taken each time: the others are never tried",
        )
        .seen("greedy decoding left on in rollouts; pitfall sampling")
        .gives(&[|case, options, _| {
            let greedy = |_, policy: &[f64]| {
                (0..policy.len())
                    .rev()
                    .max_by(|a, b| policy[*a].total_cmp(&policy[*b]))
                    .unwrap_or(0)
            };
            Learner { sampled: greedy, ..Learner::default() }.learn(case, options)
        }]),
        Fault::new(
            "last-arm-never-sampled",
            "the last arm is never drawn: another one is in its place",
        )
        .seen("an index that ends one too early; pitfall sampling")
        .gives(&[|case, options, _| {
            let sampled = |arm: usize, policy: &[f64]| arm.min(policy.len().max(2) - 2);
            Learner { sampled, ..Learner::default() }.learn(case, options)
        }]),
        Fault::new(
            "first-arm-privileged",
            "the first arm is pushed up in every step, whatever its reward",
        )
        .seen("a bonus for the first token id; pitfall masking-alignment")
        .gives(&[|case, options, _| {
            bonus(case, options, |arm, p, _| if arm == 0 { 2.0 * (1.0 - p) } else { 0.0 })
        }]),
        Fault::new(
            "learning-rate-ignored",
            "the optimizer was made with its default learning rate (0.5, 0.1)",
        )
        .seen("a setting that never reaches the optimizer; compare slime #933 (57cdfbcae)")
        .gives(&[
            |case, options, _| Learner { rate: |_| 0.5, ..Learner::default() }.learn(case, options),
            |case, options, _| Learner { rate: |_| 0.1, ..Learner::default() }.learn(case, options),
        ]),
        Fault::new("steps-ignored", "takes one step (or sixteen) whatever is asked for")
            .seen("a setting that never reaches the loop; compare slime #933 (57cdfbcae)")
            .gives(&[
                |case, options, _| {
                    Learner { steps: |_| 1, ..Learner::default() }.learn(case, options)
                },
                |case, options, _| {
                    Learner { steps: |_| 16, ..Learner::default() }.learn(case, options)
                },
            ]),
        Fault::new(
            "entropy-bonus-undeclared",
            "an entropy bonus (weight 0.2) pulls to the uniform policy",
        )
        .seen("a default coefficient that nobody declared; pitfall configuration")
        .gives(&[|case, options, _| bonus(case, options, |_, p, _| -0.2 * p * (p.ln() + 0.7))]),
        Fault::new("logits-decay", "weight decay (0.1) pulls the logits to 0")
            .seen("the default weight decay of an optimizer; pitfall configuration")
            .gives(&[|case, options, _| bonus(case, options, |_, _, z| -0.1 * z)]),
        Fault::new(
            "gradient-detached-from-the-normaliser",
            "sampled arms go up and the others never down; without a baseline the likely arms win",
        )
        .seen("logsumexp under no_grad; pitfall gradient-flow")
        .gives(&[|case, options, _| {
            let advantages = |sampled: &super::learner::Sampled<'_>| sampled.rewards.to_vec();
            Learner { normaliser: 0.0, advantages, ..Learner::default() }.learn(case, options)
        }]),
        Fault::new("nothing-divided-by-nothing", "a group of equal rewards gives 0/0")
            .seen("SB3 #1028, ROLL #475: a deviation of 0 without ε")
            .gives(&[|case, options, _| {
                advantages(case, options, |sampled| {
                    let mean = sampled.mean();
                    let squares: f64 = sampled.rewards.iter().map(|r| (r - mean).powi(2)).sum();
                    let deviation = (squares / (sampled.rewards.len() as f64 - 1.0)).sqrt();
                    sampled.rewards.iter().map(|r| (r - mean) / deviation).collect()
                })
            }]),
    ]
}

/// A learner with other advantages.
fn advantages(
    case: &PolicyUpdateCase,
    options: &Options,
    advantages: fn(&super::learner::Sampled<'_>) -> Vec<f64>,
) -> PolicyUpdateOutput {
    Learner { advantages, ..Learner::default() }.learn(case, options)
}

/// A learner with something more in the gradient.
fn bonus(
    case: &PolicyUpdateCase,
    options: &Options,
    bonus: fn(usize, f64, f64) -> f64,
) -> PolicyUpdateOutput {
    Learner { bonus, ..Learner::default() }.learn(case, options)
}
