//! Training on synthetic pairs: DPO on completions of which a hidden reward prefers one.

use shakedown::author::Component;
use shakedown::contracts::policy_update::PolicyUpdate;
use shakedown_tch::tch;
use tch::{Kind, Tensor};

use crate::bandit::{Step, Training, descend, start, step, updated};
use crate::chance::Chance;
use crate::dpo::{Dpo, Side, completion_log_probs};

/// What is known of the policy after a step of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairStep {
    /// What is known of any policy.
    pub policy: Step,
    /// The share of pairs that it has never seen whose better completion has the higher implied
    /// reward.
    pub accuracy: f64,
    /// The mean difference of the implied rewards on them.
    pub margin: f64,
}

/// How many pairs are kept apart to measure on.
const HELD_OUT: i64 = 512;

/// [`dpo`] on completions of one token, as a component. What holds it to the reference is its own
/// β, which is no weight of a KL beside the rewards: more of it, and the first steps are larger.
pub fn dpo_component() -> impl Component<PolicyUpdate> {
    let mut objective = Dpo::default();
    objective.preference.beta = 1.0;
    tch::<PolicyUpdate>(move |case| {
        // At the start the gradient of a pair is half its difference.
        let mut training = Training::of(case);
        training.learning_rate *= 2.0;
        updated(dpo(&case.logits, &case.rewards, 1, &objective, &training, &mut |_| ()))
    })
}

/// Trains a policy that samples each token alike with DPO; gives its logits.
///
/// Completions of `length` tokens are sampled from the starting policy, two by two, and the one
/// whose tokens have the greater sum of `rewards` is preferred. Pairs without a better one are
/// left out, so where all rewards are equal nothing is learnt. With one token a completion, this
/// is a bandit.
///
/// # Shapes
/// A vocabulary of `V`: logits and rewards `[V]`, the result `[V]`.
///
/// # Units
/// Logits in nats. Half formats are trained and answered in f32.
///
/// # Errors
/// Panics if the logits are not finite.
///
/// # Source
/// See [`Dpo`].
pub fn dpo(
    logits: &Tensor,
    rewards: &Tensor,
    length: i64,
    objective: &Dpo,
    training: &Training,
    watch: &mut dyn FnMut(PairStep),
) -> Tensor {
    let mut chance = Chance::new(training.seed);
    let reference = start(logits);
    let rewards = rewards.detach().to_kind(reference.kind());
    let logits = start(logits).set_requires_grad(true);
    let mut sample =
        |pairs| SyntheticPairs::sample(&reference, &rewards, pairs, length, &mut chance);
    let held_out = sample(HELD_OUT);
    for _ in 0..training.steps {
        let pairs = sample(training.batch);
        let mut last = f64::NAN;
        if !pairs.is_empty() {
            let loss = objective.loss(pairs.chosen(&logits), pairs.rejected(&logits)).losses;
            descend(&loss, &[&logits], training.learning_rate);
            last = loss.double_value(&[]);
        }
        let margins = held_out.margins(&logits, objective);
        watch(PairStep {
            policy: step(last, &logits, &rewards, &reference),
            accuracy: margins.gt(0.0).mean(Kind::Double).double_value(&[]),
            margin: margins.mean(Kind::Double).double_value(&[]),
        });
    }
    logits.detach()
}

/// Pairs of which a hidden reward prefers one completion.
struct SyntheticPairs {
    chosen: Side,
    rejected: Side,
}

impl SyntheticPairs {
    fn sample(
        reference: &Tensor,
        rewards: &Tensor,
        pairs: i64,
        length: i64,
        chance: &mut Chance,
    ) -> SyntheticPairs {
        let probs = reference.softmax(-1, None);
        let tokens = chance.draw(&probs, 2 * pairs * length).view([2, pairs, length]);
        let (one, other) = (tokens.get(0), tokens.get(1));
        let outcome = |tokens: &Tensor| rewards.take(tokens).sum_dim_intlist(1, false, None);
        let (first, second) = (outcome(&one), outcome(&other));
        let better = first.gt_tensor(&second).unsqueeze(1);
        let kept = first.ne_tensor(&second).nonzero().squeeze_dim(1);
        let side = |tokens: Tensor| {
            let tokens = tokens.index_select(0, &kept);
            let mask = tokens.ones_like().to_kind(Kind::Bool);
            let logits = at_each(reference, &tokens);
            let ref_log_probs = completion_log_probs(&logits, &tokens, &mask);
            Side { tokens, mask, ref_log_probs }
        };
        SyntheticPairs {
            chosen: side(one.where_self(&better, &other)),
            rejected: side(other.where_self(&better, &one)),
        }
    }

    fn is_empty(&self) -> bool {
        self.chosen.tokens.numel() == 0
    }

    fn chosen(&self, logits: &Tensor) -> (Tensor, &Side) {
        (at_each(logits, &self.chosen.tokens), &self.chosen)
    }

    fn rejected(&self, logits: &Tensor) -> (Tensor, &Side) {
        (at_each(logits, &self.rejected.tokens), &self.rejected)
    }

    /// `[P]`: how much higher the reward is that the policy implies for the better completion.
    fn margins(&self, logits: &Tensor, objective: &Dpo) -> Tensor {
        let logits = logits.detach();
        let loss = objective.loss(self.chosen(&logits), self.rejected(&logits));
        loss.chosen_rewards - loss.rejected_rewards
    }
}

/// `[P, T, V]`: the logits as a model gives them, at each token.
fn at_each(logits: &Tensor, tokens: &Tensor) -> Tensor {
    let (pairs, length) = tokens.size2().expect("tokens are [P, T]");
    logits.expand([pairs, length, -1], false)
}
