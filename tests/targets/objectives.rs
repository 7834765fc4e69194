//! The objectives of the four algorithms: where their numbers are known in closed form, and where
//! a batch has nothing to learn from.

use shakedown::author::aggregate::Aggregate;
use shakedown::contracts::{kl_estimate, policy_loss};
use shakedown_targets::completions::Completions;
use shakedown_targets::dpo::{Dpo, Side};
use shakedown_targets::gae::gae;
use shakedown_targets::grpo::Grpo;
use shakedown_targets::kl::kl_estimate;
use shakedown_targets::packed::packed_logits;
use shakedown_targets::policy::{Inputs, policy_loss};
use shakedown_targets::ppo::Ppo;
use shakedown_targets::reinforce::Reinforce;
use tch::{Device, Kind, Tensor};

/// Double precision in main memory.
const F64: (Kind, Device) = (Kind::Double, Device::Cpu);

/// Rows, tokens and vocabulary of the batches here.
const SHAPE: [i64; 3] = [4, 3, 5];

/// Logits, and completions of which the second half of some rows is masked.
fn batch(seed: i64) -> (Tensor, Completions) {
    tch::manual_seed(seed);
    let logits = Tensor::randn(SHAPE, F64);
    let tokens = Tensor::randint(SHAPE[2], [SHAPE[0], SHAPE[1]], (Kind::Int64, Device::Cpu));
    let log_probs = log_probs(&logits, &tokens);
    let lengths = Tensor::from_slice(&[3_i64, 1, 2, 3]).unsqueeze(1);
    let mask = Tensor::arange(SHAPE[1], (Kind::Int64, Device::Cpu)).lt_tensor(&lengths);
    let completions = Completions {
        rewards: log_probs.randn_like(),
        groups: Tensor::from_slice(&[0_i64, 0, 1, 1]),
        old_log_probs: &log_probs + log_probs.randn_like() * 0.3,
        sampler_log_probs: &log_probs + log_probs.randn_like() * 0.3,
        ref_log_probs: &log_probs + log_probs.randn_like() * 0.3,
        tokens,
        mask,
    };
    (logits, completions)
}

fn log_probs(logits: &Tensor, tokens: &Tensor) -> Tensor {
    logits.log_softmax(-1, None).gather(-1, &tokens.unsqueeze(-1), false).squeeze_dim(-1)
}

/// The three objectives on completions; PPO with some values, and old ones of 0.
fn losses(logits: &Tensor, completions: &Completions) -> [(&'static str, Tensor); 3] {
    let values = &completions.rewards * 0.5;
    let old_values = completions.rewards.zeros_like();
    [
        ("reinforce", Reinforce::default().loss(logits, completions).loss),
        ("ppo", Ppo::default().loss(logits, &values, &old_values, completions).loss),
        ("grpo", Grpo::default().loss(logits, completions).loss),
    ]
}

/// The loss and its gradient by the logits, of each objective.
fn with_gradients(logits: &Tensor, completions: &Completions) -> Vec<(&'static str, f64, Tensor)> {
    let objectives = ["reinforce", "ppo", "grpo"];
    let evaluated = (0..objectives.len()).map(|index| {
        let leaf = logits.copy().set_requires_grad(true);
        let (name, loss) = &losses(&leaf, completions)[index];
        loss.backward();
        (*name, loss.double_value(&[]), leaf.grad())
    });
    evaluated.collect()
}

fn assert_near(found: &Tensor, expected: &Tensor, what: &str) {
    let apart = (found - expected).abs().max().double_value(&[]);
    assert!(apart < 1e-12, "{what}: {found} is not {expected}");
}

#[test]
fn on_policy_grpo_has_the_gradient_of_the_weighted_log_probabilities() {
    let (logits, mut completions) = batch(1);
    completions.old_log_probs = log_probs(&logits, &completions.tokens);
    completions.sampler_log_probs = completions.old_log_probs.copy();
    completions.ref_log_probs = completions.old_log_probs.copy();
    let outcomes = Vec::<f64>::try_from(
        (&completions.rewards * completions.mask.to_kind(Kind::Double))
            .sum_dim_intlist(1, false, None),
    )
    .unwrap();
    // Two rows a group: the deviation of a pair is its distance over √2.
    let advantage = |row: usize| {
        let other = outcomes[row ^ 1];
        let mean = (outcomes[row] + other) / 2.0;
        (outcomes[row] - mean) / ((outcomes[row] - other).abs() / 2.0_f64.sqrt() + 1e-4)
    };
    let lengths = [3.0, 1.0, 2.0, 3.0];
    let weights: Vec<f64> = (0..4).map(|row| -advantage(row) / (lengths[row] * 4.0)).collect();
    let weights =
        Tensor::from_slice(&weights).unsqueeze(1) * completions.mask.to_kind(Kind::Double);
    let slope = completions.tokens.one_hot(SHAPE[2]) - logits.softmax(-1, None);
    let (_, _, gradient) = with_gradients(&logits, &completions).pop().unwrap();
    assert_near(&gradient, &(slope * weights.unsqueeze(-1)), "the gradient of GRPO");
}

#[test]
fn the_ranks_make_the_loss_of_the_whole_batch() {
    for seed in 0..5 {
        let (logits, completions) = batch(seed);
        for aggregate in [Aggregate::TokenMean, Aggregate::SeqMeanTokenMean] {
            let over = |parts: i64| {
                let mut objective = Reinforce::default();
                objective.policy.aggregate = aggregate;
                objective.ranks.parts = parts;
                let leaf = logits.copy().set_requires_grad(true);
                let loss = objective.loss(&leaf, &completions).loss;
                loss.backward();
                (loss.detach(), leaf.grad(), objective.mean_outcome(&completions))
            };
            let (loss, gradient, outcome) = over(1);
            for parts in [2, 3] {
                let (found, slope, mean) = over(parts);
                assert_near(&found, &loss, "the loss");
                assert_near(&slope, &gradient, "the gradient");
                assert_near(&mean, &outcome, "the mean outcome");
            }
        }
    }
}

#[test]
fn packed_rows_give_the_logits_of_padded_ones() {
    let (_, completions) = batch(7);
    let table = Tensor::randn([SHAPE[2], SHAPE[2]], F64).set_requires_grad(true);
    let places = Tensor::randn([SHAPE[1], SHAPE[2]], F64);
    // A model that knows the token, and where in its document it stands.
    let model = |tokens: &Tensor, positions: &Tensor| {
        let of_tokens = Tensor::embedding(&table, tokens, -1, false, false);
        of_tokens + Tensor::embedding(&places, positions, -1, false, false)
    };
    let Completions { tokens, mask, .. } = &completions;
    let positions = Tensor::arange(SHAPE[1], (Kind::Int64, Device::Cpu)).expand_as(tokens);
    let padded = model(tokens, &positions);
    for capacity in [3, 4, 9] {
        let packed =
            packed_logits(tokens, mask, capacity, &|rows| model(&rows.tokens, &rows.positions));
        let mask = mask.unsqueeze(-1).to_kind(Kind::Double);
        assert_near(&(&packed * &mask), &(&padded * &mask), "logits");
        let slope = |logits: &Tensor| {
            (logits * &mask).sum(None).backward();
            let mut gradient = table.grad();
            let found = gradient.copy();
            let _ = gradient.zero_();
            found
        };
        assert_near(&slope(&packed), &slope(&model(tokens, &positions)), "the gradient");
    }
}

#[test]
fn grpo_leaves_out_groups_without_a_difference_and_corrects_for_the_engine() {
    let (logits, mut completions) = batch(8);
    // The second group has nothing to say.
    completions.rewards = Tensor::zeros([SHAPE[0], SHAPE[1]], F64);
    let _ = completions.rewards.get(0).get(0).fill_(1.0);
    let (_, loss, gradient) = with_gradients(&logits, &completions).pop().unwrap();
    let of_second = gradient.slice(0, 2, 4, 1).abs().max().double_value(&[]);
    assert_eq!(of_second, 0.0, "rows of a flat group, with the KL on");
    // An engine that gave every token half the probability: weights of 2, which is the bound.
    completions.sampler_log_probs = &completions.old_log_probs - 2.0_f64.ln();
    let uncorrected = Grpo { policy: no_kl(), ..Grpo::default() };
    let doubled = uncorrected.loss(&logits, &completions).loss;
    completions.sampler_log_probs = completions.old_log_probs.copy();
    let plain = uncorrected.loss(&logits, &completions).loss;
    assert_near(&doubled, &(plain * 2.0), "the loss under weights of 2");
    assert!(loss.is_finite());
}

/// GRPO's policy loss without its KL.
fn no_kl() -> policy_loss::Options {
    policy_loss::Options { beta: 0.0, ..Grpo::default().policy }
}

#[test]
fn ppo_takes_the_kl_off_the_rewards() {
    let (logits, completions) = batch(9);
    let values = completions.rewards.zeros_like();
    let mut objective = Ppo::default();
    objective.gae.whiten = false;
    let loss = |objective: &Ppo, completions: &Completions| {
        objective.loss(&logits, &values, &values, completions).loss
    };
    objective.rewards.beta = 0.3;
    let penalised = loss(&objective, &completions);
    objective.rewards.beta = 0.0;
    let gap = &completions.old_log_probs - &completions.ref_log_probs;
    let outcomes = completions.outcomes().unsqueeze(1);
    let last = completions.mask.to_kind(Kind::Int64).cumsum(1, Kind::Int64);
    let at_last = last.eq_tensor(&last.amax([1], true)).logical_and(&completions.mask);
    let by_hand = Completions { rewards: outcomes * at_last - gap * 0.3, ..copied(&completions) };
    // The same rewards by hand, through the parts that come after.
    let log_probs = log_probs(&logits, &completions.tokens);
    let gae = gae(&by_hand.rewards, &values, &by_hand.mask, &objective.gae);
    let inputs = Inputs {
        log_probs: &log_probs,
        old_log_probs: &by_hand.old_log_probs,
        ref_log_probs: None,
        advantages: &gae.advantages,
        mask: &by_hand.mask,
    };
    let policy = policy_loss(&inputs, &objective.policy).loss;
    let parts = objective.loss(&logits, &values, &values, &completions);
    assert!((&penalised - &parts.loss).abs().double_value(&[]) > 1e-3, "beta is read");
    let full = {
        objective.rewards.beta = 0.3;
        objective.loss(&logits, &values, &values, &completions).policy.loss
    };
    assert_near(&full, &policy, "the policy's part");
}

/// Another batch of the same completions.
fn copied(completions: &Completions) -> Completions {
    Completions {
        tokens: completions.tokens.copy(),
        mask: completions.mask.copy(),
        rewards: completions.rewards.copy(),
        groups: completions.groups.copy(),
        old_log_probs: completions.old_log_probs.copy(),
        sampler_log_probs: completions.sampler_log_probs.copy(),
        ref_log_probs: completions.ref_log_probs.copy(),
    }
}

#[test]
fn ppo_is_the_sum_of_its_parts() {
    let (logits, completions) = batch(2);
    let values = completions.rewards.randn_like();
    let old_values = &values + values.randn_like() * 0.3;
    let objective = Ppo { value_coefficient: 0.7, entropy_coefficient: 0.2, ..Ppo::default() };
    let parts = objective.loss(&logits, &values, &old_values, &completions);
    let sum = &parts.policy.loss + &parts.value.loss * 0.7 - &parts.entropy * 0.2;
    assert_near(&parts.loss, &sum, "the loss of PPO");
    let probs = logits.softmax(-1, None);
    let by_token = -(&probs * probs.log()).sum_dim_intlist(-1, false, None);
    let mean = by_token.masked_select(&completions.mask).mean(None);
    assert_near(&parts.entropy, &mean, "the entropy");
}

#[test]
fn what_stands_under_the_mask_changes_neither_loss_nor_gradient() {
    for seed in 0..10 {
        let (logits, completions) = batch(seed);
        let expected = with_gradients(&logits, &completions);
        for poison in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30] {
            let padding = completions.mask.logical_not();
            let poisoned = |tensor: &Tensor| tensor.masked_fill(&padding, poison);
            let completions = Completions {
                rewards: poisoned(&completions.rewards),
                old_log_probs: poisoned(&completions.old_log_probs),
                sampler_log_probs: poisoned(&completions.sampler_log_probs),
                ref_log_probs: poisoned(&completions.ref_log_probs),
                ..copied(&completions)
            };
            for (found, expected) in
                with_gradients(&logits, &completions).into_iter().zip(&expected)
            {
                assert_eq!(found.1, expected.1, "{} with {poison}", found.0);
                assert_near(&found.2, &expected.2, found.0);
            }
        }
    }
}

#[test]
fn a_batch_without_a_token_gives_zero_and_gradients_of_zero() {
    let (logits, mut completions) = batch(3);
    completions.mask = completions.mask.zeros_like();
    for (name, loss, gradient) in with_gradients(&logits, &completions) {
        assert_eq!(loss, 0.0, "{name}");
        assert!(gradient.defined(), "{name}: the loss is detached");
        assert_eq!(gradient.abs().max().double_value(&[]), 0.0, "{name}");
    }
}

#[test]
fn half_logits_are_computed_in_f32_and_get_half_gradients() {
    let (logits, completions) = batch(4);
    let rounded = logits.to_kind(Kind::BFloat16);
    let expected = with_gradients(&rounded.to_kind(Kind::Float), &completions);
    for (found, expected) in with_gradients(&rounded, &completions).into_iter().zip(expected) {
        assert_eq!(found.1, expected.1, "{}", found.0);
        assert_eq!(found.2.kind(), Kind::BFloat16, "{}", found.0);
        assert_eq!(found.2, expected.2.to_kind(Kind::BFloat16), "{}", found.0);
    }
}

#[test]
fn dpo_starts_at_ln_2_and_moves_both_sides_apart() {
    let (chosen, completions) = batch(5);
    let (rejected, others) = batch(6);
    let side = |logits: &Tensor, completions: &Completions| {
        let log_probs = log_probs(logits, &completions.tokens);
        let masked = log_probs * completions.mask.to_kind(Kind::Double);
        Side {
            tokens: completions.tokens.copy(),
            mask: completions.mask.copy(),
            ref_log_probs: masked.sum_dim_intlist(1, false, None),
        }
    };
    let (better, worse) = (side(&chosen, &completions), side(&rejected, &others));
    let chosen = chosen.set_requires_grad(true);
    let rejected = rejected.set_requires_grad(true);
    let loss =
        Dpo::default().loss((chosen.shallow_clone(), &better), (rejected.shallow_clone(), &worse));
    assert_near(
        &loss.losses,
        &Tensor::from(2.0_f64.ln()),
        "the loss of a policy like its reference",
    );
    loss.losses.backward();
    // A quarter of the pairs, half of β: the slope of -ln σ at 0.
    let weight = |side: &Side| side.mask.to_kind(Kind::Double).unsqueeze(-1) * (0.1 * 0.5 / 4.0);
    let slope = |logits: &Tensor, side: &Side| {
        side.tokens.one_hot(SHAPE[2]) - logits.detach().softmax(-1, None)
    };
    assert_near(&chosen.grad(), &(-slope(&chosen, &better) * weight(&better)), "chosen");
    assert_near(&rejected.grad(), &(slope(&rejected, &worse) * weight(&worse)), "rejected");
}

#[test]
fn what_is_clipped_away_neither_overflows_nor_spoils_the_gradient() {
    let mask = Tensor::from_slice(&[true]).view([1, 1]);
    let number = |x: f32| Tensor::from_slice(&[x]).view([1, 1]);
    let dual = policy_loss::Options { dual_clip: Some(3.0), ..Default::default() };
    let plain = policy_loss::Options::default();
    for (log_ratio, advantage, options, loss, gradient) in [
        (100.0, 2.0, &plain, -2.4, 0.0),
        (-100.0, -2.0, &plain, 1.6, 0.0),
        (100.0, -2.0, &dual, 6.0, 0.0),
        (100.0, 0.0, &plain, 0.0, 0.0),
        // e^90 is beyond f32, the loss is not.
        (90.0, -1e-3, &plain, 1e-3 * 90.0_f64.exp(), 1e-3 * 90.0_f64.exp()),
    ] {
        let log_probs = number(log_ratio).set_requires_grad(true);
        let inputs = Inputs {
            log_probs: &log_probs,
            old_log_probs: &number(0.0),
            ref_log_probs: None,
            advantages: &number(advantage),
            mask: &mask,
        };
        let found = policy_loss(&inputs, options).loss;
        found.backward();
        for (found, expected) in [(found, loss), (log_probs.grad(), gradient)] {
            let found = found.double_value(&[]);
            let near = (found - expected).abs() <= 1e-5 * expected.abs();
            assert!(near, "ρ = e^{log_ratio}, A = {advantage}: {found} is not {expected}");
        }
    }

    let options = kl_estimate::Options { clamp: Some([-10.0, 10.0]), ..Default::default() };
    let log_probs = number(-100.0).set_requires_grad(true);
    let kl = kl_estimate(&log_probs, &number(0.0), &options);
    kl.backward();
    assert_eq!((kl.double_value(&[]), log_probs.grad().double_value(&[])), (10.0, 0.0));
}
