//! Known wrong behaviours of `policy-update`: the reference with one habit changed.

use super::learner::{Learner, Reference};
use super::{Options, PolicyUpdate, PolicyUpdateCase, PolicyUpdateOutput};
use crate::contract::fault::{Behaviour, Fault, Function, misbehaviours};

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault<PolicyUpdate>> {
    let fault = |id, summary, source, options, variants: &'static [Function<PolicyUpdate>]| Fault {
        id,
        summary,
        source,
        options,
        behaviour: Behaviour::Gives(variants),
    };
    let mut faults = vec![
        fault(
            "reference-recomputed-from-the-policy",
            "the reference that comes back was computed again with the trained weights",
            "trl #6443 (d2b72b720)",
            "{}",
            &[|case, options, _| {
                let reference = Reference::Recomputed;
                Learner { reference, ..Learner::default() }.learn(case, options)
            }],
        ),
        fault(
            "reference-shared-with-the-policy",
            "the reference is the policy itself, not a copy: it moves along and pulls to nowhere",
            "`reference = policy` without a copy: PyTorch modules are shared by assignment",
            "{beta: 0.5}",
            &[|case, options, _| {
                let reference = Reference::Shared;
                Learner { reference, ..Learner::default() }.learn(case, options)
            }],
        ),
        fault(
            "another-reference",
            "the pull is to the uniform policy, not to the one that training began with",
            "a reference model loaded from another checkpoint",
            "{beta: 0.5}",
            &[|case, options, _| {
                let reference = Reference::Uniform;
                Learner { reference, ..Learner::default() }.learn(case, options)
            }],
        ),
        fault(
            "beta-ignored",
            "the KL term is left out, whatever `beta` is",
            "unsloth #3604 (4571ecaca3): β set to 0 silently; slime f6f46cb17: β never read",
            "{beta: 0.5}",
            &[|case, options, _| {
                Learner { beta: |_| 0.0, ..Learner::default() }.learn(case, options)
            }],
        ),
        fault(
            "kl-sign-flipped",
            "the KL is rewarded: the policy is pushed away from the reference",
            "verl #179 (a65c9157b), Search-R1 4b3c094: the KL term subtracted from the loss",
            "{beta: 0.5}",
            &[|case, options, _| {
                Learner { beta: |beta| -beta, ..Learner::default() }.learn(case, options)
            }],
        ),
        fault(
            "sign-flipped",
            "descends where it should ascend: the worse arms become more likely",
            "an optimizer minimises; the minus in front of the objective is missing",
            "{}",
            &[|case, options, _| {
                advantages(case, options, |sampled| {
                    let mean = sampled.mean();
                    sampled.rewards.iter().map(|r| mean - r).collect()
                })
            }],
        ),
        fault(
            "reward-ignored",
            "every sampled arm is pushed up alike, whatever its reward",
            "the likelihood of all samples is raised, as in fine-tuning, without their weights",
            "{}",
            &[|case, options, _| {
                advantages(case, options, |sampled| vec![1.0; sampled.arms.len()])
            }],
        ),
        fault(
            "advantage-of-another-arm",
            "each sample gets the advantage of the next arm, or of the next sample",
            "LLaMA-Factory #7576: scores of other rows",
            "{}",
            &[
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
            ],
        ),
        fault(
            "magnitude-of-the-advantage",
            "|A| for A: what is worse than the mean is pushed up too",
            "a squared advantage in a loss that is minimised; pitfall log-space-sign",
            "{}",
            &[|case, options, _| {
                advantages(case, options, |sampled| {
                    let mean = sampled.mean();
                    sampled.rewards.iter().map(|r| (r - mean).abs()).collect()
                })
            }],
        ),
        fault(
            "update-of-a-copy",
            "what is trained is a copy: the policy that comes back is the one that went in",
            "an optimizer made before the model was moved or wrapped",
            "{}",
            &[|case, options, _| {
                Learner { returned: false, ..Learner::default() }.learn(case, options)
            }],
        ),
        fault(
            "most-likely-arm-sampled",
            "the most likely arm is taken each time: the others are never tried",
            "greedy decoding left on in rollouts; pitfall sampling",
            "{}",
            &[|case, options, _| {
                let greedy = |_, policy: &[f64]| {
                    (0..policy.len())
                        .rev()
                        .max_by(|a, b| policy[*a].total_cmp(&policy[*b]))
                        .unwrap_or(0)
                };
                Learner { sampled: greedy, ..Learner::default() }.learn(case, options)
            }],
        ),
        fault(
            "last-arm-never-sampled",
            "the last arm is never drawn: another one is in its place",
            "an index that ends one too early; pitfall sampling",
            "{}",
            &[|case, options, _| {
                let sampled = |arm: usize, policy: &[f64]| arm.min(policy.len().max(2) - 2);
                Learner { sampled, ..Learner::default() }.learn(case, options)
            }],
        ),
        fault(
            "first-arm-privileged",
            "the first arm is pushed up in every step, whatever its reward",
            "a bonus for the first token id; pitfall masking-alignment",
            "{}",
            &[|case, options, _| {
                bonus(case, options, |arm, p, _| if arm == 0 { 2.0 * (1.0 - p) } else { 0.0 })
            }],
        ),
        fault(
            "learning-rate-ignored",
            "the optimizer was made with its default learning rate (0.5, 0.1)",
            "a setting that never reaches the optimizer; compare slime #933 (57cdfbcae)",
            "{}",
            &[
                |case, options, _| {
                    Learner { rate: |_| 0.5, ..Learner::default() }.learn(case, options)
                },
                |case, options, _| {
                    Learner { rate: |_| 0.1, ..Learner::default() }.learn(case, options)
                },
            ],
        ),
        fault(
            "steps-ignored",
            "takes one step (or sixteen) whatever is asked for",
            "a setting that never reaches the loop; compare slime #933 (57cdfbcae)",
            "{}",
            &[
                |case, options, _| {
                    Learner { steps: |_| 1, ..Learner::default() }.learn(case, options)
                },
                |case, options, _| {
                    Learner { steps: |_| 16, ..Learner::default() }.learn(case, options)
                },
            ],
        ),
        fault(
            "entropy-bonus-undeclared",
            "an entropy bonus (weight 0.2) pulls to the uniform policy",
            "a default coefficient that nobody declared; pitfall configuration",
            "{}",
            &[|case, options, _| bonus(case, options, |_, p, _| -0.2 * p * (p.ln() + 0.7))],
        ),
        fault(
            "logits-decay",
            "weight decay (0.1) pulls the logits to 0",
            "the default weight decay of an optimizer; pitfall configuration",
            "{}",
            &[|case, options, _| bonus(case, options, |_, _, z| -0.1 * z)],
        ),
        fault(
            "gradient-detached-from-the-normaliser",
            "sampled arms go up and the others never down; without a baseline the likely arms win",
            "logsumexp under no_grad; pitfall gradient-flow",
            "{}",
            &[|case, options, _| {
                let advantages = |sampled: &super::learner::Sampled<'_>| sampled.rewards.to_vec();
                Learner { normaliser: 0.0, advantages, ..Learner::default() }.learn(case, options)
            }],
        ),
        fault(
            "nothing-divided-by-nothing",
            "a group of equal rewards gives 0/0",
            "SB3 #1028, ROLL #475: a deviation of 0 without ε",
            "{}",
            &[|case, options, _| {
                advantages(case, options, |sampled| {
                    let mean = sampled.mean();
                    let squares: f64 = sampled.rewards.iter().map(|r| (r - mean).powi(2)).sum();
                    let deviation = (squares / (sampled.rewards.len() as f64 - 1.0)).sqrt();
                    sampled.rewards.iter().map(|r| (r - mean) / deviation).collect()
                })
            }],
        ),
    ];
    faults.extend(misbehaviours());
    faults
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
