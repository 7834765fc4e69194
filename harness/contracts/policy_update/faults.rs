//! Known wrong behaviours of `policy-update`: the reference with one habit changed.

use super::learner::{Learner, Reference, Sampled};
use super::{Options, PolicyUpdate};
use shakedown_core::contract::fault;

type Fault = fault::Fault<PolicyUpdate>;
type Variant = fault::Variant<PolicyUpdate>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [references(), advantages_of_arms(), habits(), gradients()].into_iter().flatten().collect()
}

/// The reference, and the pull to it.
fn references() -> Vec<Fault> {
    vec![
        Fault::new(
            "reference-recomputed-from-the-policy",
            "the reference that comes back was computed again with the trained weights",
        )
        .seen("trl #6443 (d2b72b720)")
        .made_of([learner(Learner { reference: Reference::Recomputed, ..Learner::default() })]),
        Fault::new(
            "reference-shared-with-the-policy",
            "the reference is the policy itself, not a copy: it moves along and pulls to nowhere",
        )
        .seen("`reference = policy` without a copy: PyTorch modules are shared by assignment")
        .under("{beta: 0.5}")
        .made_of([learner(Learner { reference: Reference::Shared, ..Learner::default() })]),
        Fault::new(
            "another-reference",
            "the pull is to the uniform policy, not to the one that training began with",
        )
        .seen("a reference model loaded from another checkpoint")
        .under("{beta: 0.5}")
        .made_of([learner(Learner { reference: Reference::Uniform, ..Learner::default() })]),
        Fault::new("beta-ignored", "the KL term is left out, whatever `beta` is")
            .seen("unsloth #3604 (4571ecaca3): β set to 0 silently; slime f6f46cb17: β never read")
            .under("{beta: 0.5}")
            .as_if(&[|options| Options { beta: 0.0, ..options }]),
        Fault::new(
            "kl-sign-flipped",
            "the KL is rewarded: the policy is pushed away from the reference",
        )
        .seen("verl #179 (a65c9157b), Search-R1 4b3c094: the KL term subtracted from the loss")
        .under("{beta: 0.5}")
        .as_if(&[|options| Options { beta: -options.beta, ..options }]),
    ]
}

/// Which arms go up.
fn advantages_of_arms() -> Vec<Fault> {
    vec![
        Fault::new(
            "sign-flipped",
            "descends where it should ascend: the worse arms become more likely",
        )
        .seen("an optimizer minimises; the minus in front of the objective is missing")
        .made_of([advantages(|sampled| {
            let mean = sampled.mean();
            sampled.rewards.iter().map(|r| mean - r).collect()
        })]),
        Fault::new("reward-ignored", "every sampled arm is pushed up alike, whatever its reward")
            .seen(
                "the likelihood of all samples is raised, as in fine-tuning, without their weights",
            )
            .made_of([advantages(|sampled| vec![1.0; sampled.arms.len()])]),
        Fault::new(
            "advantage-of-another-arm",
            "each sample gets the advantage of the next arm, or of the next sample",
        )
        .seen("LLaMA-Factory #7576: scores of other rows")
        .made_of([
            advantages(|sampled| {
                let count = sampled.of_arms.len();
                let next = |arm: &usize| sampled.of_arms[(arm + 1) % count];
                let rewards: Vec<f64> = sampled.arms.iter().map(next).collect();
                let mean = rewards.iter().sum::<f64>() / rewards.len() as f64;
                rewards.iter().map(|r| r - mean).collect()
            }),
            advantages(|sampled| {
                let mean = sampled.mean();
                let mut rewards = sampled.rewards.to_vec();
                rewards.rotate_left(1);
                rewards.iter().map(|r| r - mean).collect()
            }),
        ]),
        Fault::new(
            "magnitude-of-the-advantage",
            "|A| for A: what is worse than the mean is pushed up too",
        )
        .seen("a squared advantage in a loss that is minimised; pitfall log-space-sign")
        .made_of([advantages(|sampled| {
            let mean = sampled.mean();
            sampled.rewards.iter().map(|r| (r - mean).abs()).collect()
        })]),
    ]
}

/// What is sampled, trained and returned, and how fast.
fn habits() -> Vec<Fault> {
    vec![
        Fault::new(
            "update-of-a-copy",
            "what is trained is a copy: the policy that comes back is the one that went in",
        )
        .seen("an optimizer made before the model was moved or wrapped")
        .made_of([learner(Learner { returned: false, ..Learner::default() })]),
        Fault::new(
            "most-likely-arm-sampled",
            "the most likely arm is taken each time: the others are never tried",
        )
        .seen("greedy decoding left on in rollouts; pitfall sampling")
        .made_of([sampled(|_, policy| {
            let arms = (0..policy.len()).rev();
            arms.max_by(|a, b| policy[*a].total_cmp(&policy[*b])).unwrap_or(0)
        })]),
        Fault::new(
            "last-arm-never-sampled",
            "the last arm is never drawn: another one is in its place",
        )
        .seen("an index that ends one too early; pitfall sampling")
        .made_of([sampled(|arm, policy| arm.min(policy.len().max(2) - 2))]),
        Fault::new(
            "first-arm-privileged",
            "the first arm is pushed up in every step, whatever its reward",
        )
        .seen("a bonus for the first token id; pitfall masking-alignment")
        .made_of([bonus(|arm, p, _| if arm == 0 { 2.0 * (1.0 - p) } else { 0.0 })]),
        Fault::new(
            "learning-rate-ignored",
            "the optimizer was made with its default learning rate (0.5, 0.1)",
        )
        .seen("a setting that never reaches the optimizer; compare slime #933 (57cdfbcae)")
        .on(&[|case, _| case.learning_rate.fill(0.5), |case, _| case.learning_rate.fill(0.1)]),
        Fault::new("steps-ignored", "takes one step (or sixteen) whatever is asked for")
            .seen("a setting that never reaches the loop; compare slime #933 (57cdfbcae)")
            .on(&[|case, _| case.steps.fill(1), |case, _| case.steps.fill(16)]),
        Fault::new("one-step-short", "the loop ends one step too early: one step moves nothing")
            .seen("range(1, steps); a warm-up whose first learning rate is 0")
            .on(&[|case, _| case.steps -= 1]),
        Fault::new(
            "learning-rate-of-another-power",
            "the square of the learning rate, or its root, scales the steps",
        )
        .seen("a rate in the loss and in the optimizer; a rate scaled with the root of the batch")
        .on(&[
            |case, _| case.learning_rate.mapv_inplace(|rate| rate * rate),
            |case, _| case.learning_rate.mapv_inplace(f64::sqrt),
        ]),
    ]
}

/// What else is in the gradient, or is not.
fn gradients() -> Vec<Fault> {
    vec![
        Fault::new(
            "entropy-bonus-undeclared",
            "an entropy bonus (weight 0.2) pulls to the uniform policy",
        )
        .seen("a default coefficient that nobody declared; pitfall configuration")
        .made_of([bonus(|_, p, _| -0.2 * p * (p.ln() + 0.7))]),
        Fault::new("logits-decay", "weight decay (0.1) pulls the logits to 0")
            .seen("the default weight decay of an optimizer; pitfall configuration")
            .made_of([bonus(|_, _, z| -0.1 * z)]),
        Fault::new(
            "gradient-detached-from-the-normaliser",
            "sampled arms go up and the others never down; without a baseline the likely arms win",
        )
        .seen("logsumexp under no_grad; pitfall gradient-flow")
        .made_of([learner(Learner {
            normaliser: 0.0,
            advantages: |sampled| sampled.rewards.to_vec(),
            ..Learner::default()
        })]),
        Fault::new("nothing-divided-by-nothing", "a group of equal rewards gives 0/0")
            .seen("SB3 #1028, ROLL #475: a deviation of 0 without ε")
            .made_of([advantages(|sampled| {
                let mean = sampled.mean();
                let squares: f64 = sampled.rewards.iter().map(|r| (r - mean).powi(2)).sum();
                let deviation = (squares / (sampled.rewards.len() as f64 - 1.0)).sqrt();
                sampled.rewards.iter().map(|r| (r - mean) / deviation).collect()
            })]),
    ]
}

/// A learner with other habits.
fn learner(learner: Learner) -> Variant {
    Variant::gives(move |case: &_, options: &_, _| learner.learn(case, options))
}

/// A learner with other advantages.
fn advantages(advantages: fn(&Sampled<'_>) -> Vec<f64>) -> Variant {
    learner(Learner { advantages, ..Learner::default() })
}

/// A learner that samples another arm than the one that was drawn.
fn sampled(sampled: fn(usize, &[f64]) -> usize) -> Variant {
    learner(Learner { sampled, ..Learner::default() })
}

/// A learner with something more in the gradient.
fn bonus(bonus: fn(usize, f64, f64) -> f64) -> Variant {
    learner(Learner { bonus, ..Learner::default() })
}
