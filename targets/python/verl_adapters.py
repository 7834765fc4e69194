"""The functions of an installed verl, under the names of the contracts.

Nothing is copied from the library. It is installed without its dependencies, and
`verl/__init__.py`, which starts a cluster's client, is not run: `core_algos` needs neither. What is
ours are names, shapes, masks as floats, and what each docstring says more.
"""

from types import SimpleNamespace

from library import stand_in, statements, using, without_init

stand_in("ray")
without_init("verl")

import torch
import verl
from verl.protocol import DataProto

verl.DataProto = DataProto  # as its `__init__` would have it

from verl.trainer.config import AlgoConfig
from verl.trainer.ppo import core_algos
from verl.utils import torch_functional
from verl.workers.config import ActorConfig, PolicyLossConfig
from verl.workers.reward_manager.dapo import DAPORewardManager
from verl.workers.utils import losses


def row(estimator, rewards, groups, **settings):
    """One advantage a completion: completions of one token, whose reward is that of the row."""
    rewards = rewards.unsqueeze(1)
    return tokens(estimator, rewards, torch.ones_like(rewards), groups, **settings).squeeze(1)


def tokens(estimator, token_rewards, mask, groups, **settings):
    """Ours: rewards under the mask only, as the reward managers give them; ids in an array."""
    mask = mask.to(token_rewards.dtype)
    rewards = token_rewards.where(mask.bool(), 0.0)
    advantages, _ = estimator(rewards, mask, groups.numpy(), **settings)
    return advantages


def grpo(rewards, groups, epsilon, scale):
    """`compute_grpo_outcome_advantage`."""
    settings = {"epsilon": epsilon, "norm_adv_by_std_in_grpo": scale == "std"}
    return row(core_algos.compute_grpo_outcome_advantage, rewards, groups, **settings)


def grpo_vectorized(rewards, groups, epsilon, scale):
    """`compute_grpo_vectorized_outcome_advantage`."""
    settings = {"epsilon": epsilon, "norm_adv_by_std_in_grpo": scale == "std"}
    return row(core_algos.compute_grpo_vectorized_outcome_advantage, rewards, groups, **settings)


def rloo(rewards, groups):
    """`compute_rloo_outcome_advantage`."""
    return row(core_algos.compute_rloo_outcome_advantage, rewards, groups)


def rloo_vectorized(rewards, groups):
    """`compute_rloo_vectorized_outcome_advantage`."""
    return row(core_algos.compute_rloo_vectorized_outcome_advantage, rewards, groups)


def grpo_tokens(token_rewards, mask, groups, epsilon, scale):
    """`compute_grpo_outcome_advantage` on token rewards."""
    settings = {"epsilon": epsilon, "norm_adv_by_std_in_grpo": scale == "std"}
    estimator = core_algos.compute_grpo_outcome_advantage
    return tokens(estimator, token_rewards, mask, groups, **settings)


def rloo_tokens(token_rewards, mask, groups):
    """`compute_rloo_outcome_advantage` on token rewards."""
    return tokens(core_algos.compute_rloo_outcome_advantage, token_rewards, mask, groups)


def gae(rewards, values, mask, gamma, lam):
    """`compute_gae_advantage_return`, which whitens."""
    mask = mask.to(rewards.dtype)
    return core_algos.compute_gae_advantage_return(rewards, values, mask, gamma, lam)


REINFORCE_PLUS_PLUS = using(
    core_algos.compute_reinforce_plus_plus_outcome_advantage,
    verl_F=SimpleNamespace(masked_whiten=lambda returns, _: returns),
)


def returns(rewards, mask, gamma):
    """The returns of `compute_reinforce_plus_plus_outcome_advantage`.

    Ours: it does not whiten them into advantages as well, for which it wants two tokens.
    """
    return REINFORCE_PLUS_PLUS(rewards, mask.to(rewards.dtype), config=AlgoConfig(gamma=gamma))[1]


def whiten(values, mask, shift_mean):
    """`masked_whiten`."""
    return torch_functional.masked_whiten(values, mask.to(values.dtype), shift_mean)


def whiten_returns(values, mask):
    """The advantages of `compute_reinforce_plus_plus_outcome_advantage`, the values its returns."""
    estimator = core_algos.compute_reinforce_plus_plus_outcome_advantage
    return estimator(values, mask.to(values.dtype), config=AlgoConfig(gamma=0.0))[0]


def log_probs(logits, tokens):
    """`logprobs_from_logits` without flash-attn; f32 and f64 take one branch, halves another."""
    return torch_functional.logprobs_from_logits(logits, tokens)


def entropy(logits):
    """`entropy_from_logits`."""
    return torch_functional.entropy_from_logits(logits)


def entropy_in_chunks(logits):
    """`entropy_from_logits_with_chunking`, two rows a chunk instead of 2048."""
    rows = torch_functional.entropy_from_logits_with_chunking(logits.flatten(0, 1), chunk_size=2)
    return rows.view(logits.shape[:-1])


def kl(log_probs, ref_log_probs, estimator, gradient):
    """`kl_penalty`; a `+` asks for the straight-through gradient."""
    name = estimator + "+" * (gradient == "k2")
    return core_algos.kl_penalty(log_probs, ref_log_probs, name)


# Packed rows are padded there; the case is a rectangle already.
PPO_LOSS = using(losses.ppo_loss, no_padding_2_padding=lambda rows, _: rows)


class Batch(dict):
    """The few methods of a TensorDict that `ppo_loss` calls."""

    def select(self, *_):
        return self

    def to_padded_tensor(self):
        return self


def policy_loss(mode, log_probs, old_log_probs, advantages, mask, ref_log_probs, options):
    """The whole `ppo_loss` of its workers with a registered loss, alone on one micro-batch."""
    kl = options["beta"] > 0
    config = ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        clip_ratio_c=options["dual_clip"] or 3.0,
        clip_ratio_high=options["clip_high"],
        clip_ratio_low=options["clip_low"],
        kl_loss_coef=options["beta"],
        kl_loss_type=options["kl_estimator"],
        loss_agg_mode=options["aggregate"],
        loss_scale_factor=options["norm_length"],
        policy_loss=PolicyLossConfig(loss_mode=mode),
        use_kl_loss=kl,
    )
    data = Batch(
        advantages=advantages,
        old_log_probs=old_log_probs,
        ref_log_prob=ref_log_probs,
        response_mask=mask,
        dp_size=1,
        batch_num_tokens=None,
        global_batch_size=None,
    )
    loss, metrics = PPO_LOSS(config, {"log_probs": log_probs}, data)
    outputs = {"loss": loss}
    if mode == "vanilla":
        outputs["clip_fraction"] = float(metrics["actor/pg_clipfrac"].aggregate())
    if kl:
        outputs["kl"] = float(metrics["kl_loss"].aggregate())
    return outputs


def vanilla(log_probs, old_log_probs, advantages, mask, ref_log_probs, **options):
    """`ppo_loss` with `compute_policy_loss_vanilla`."""
    inputs = log_probs, old_log_probs, advantages, mask, ref_log_probs
    return policy_loss("vanilla", *inputs, options)


def gspo(log_probs, old_log_probs, advantages, mask, ref_log_probs, **options):
    """`ppo_loss` with `compute_policy_loss_gspo`."""
    inputs = log_probs, old_log_probs, advantages, mask, ref_log_probs
    return policy_loss("gspo", *inputs, options)


def cispo(log_probs, old_log_probs, advantages, mask, ref_log_probs, **options):
    """`ppo_loss` with `compute_policy_loss_cispo`."""
    inputs = log_probs, old_log_probs, advantages, mask, ref_log_probs
    return policy_loss("cispo", *inputs, options)


def gpg(log_probs, old_log_probs, advantages, mask, ref_log_probs, **options):
    """`ppo_loss` with `compute_policy_loss_gpg`."""
    inputs = log_probs, old_log_probs, advantages, mask, ref_log_probs
    return policy_loss("gpg", *inputs, options)


def value_loss(values, old_values, returns, mask, clip, aggregate, norm_length):
    """`compute_value_loss`."""
    mask = mask.to(values.dtype)
    loss, clip_fraction = core_algos.compute_value_loss(
        values, returns, old_values, mask, clip, aggregate, loss_scale_factor=norm_length
    )
    return {"loss": loss, "clip_fraction": clip_fraction}


def accumulated(micro_batches, aggregate, norm_length):
    """`agg_loss` with the counts of the whole step, as its workers pass them: all rows count."""
    pairs = [(batch["token_losses"], batch["mask"]) for batch in micro_batches]
    whole = {
        "batch_num_tokens": sum(mask.sum() for _, mask in pairs),
        "global_batch_size": sum(len(mask) for _, mask in pairs),
        "loss_scale_factor": norm_length,
    }
    return sum(core_algos.agg_loss(losses, mask, aggregate, **whole) for losses, mask in pairs)


OVERLONG = statements(DAPORewardManager.__call__, "overlong_buffer_len", None, "overlong_reward")


def overlong(lengths, max_length, buffer, factor):
    """The lines of `DAPORewardManager` for an overlong response, row by row."""
    config = SimpleNamespace(len=buffer, penalty_factor=factor, log=False)
    self = SimpleNamespace(overlong_buffer_cfg=config, max_resp_len=max_length)
    rewards = [
        OVERLONG(self=self, overlong_buffer_len=buffer, valid_response_length=length, reward=0.0)
        for length in lengths
    ]
    return torch.stack([torch.as_tensor(reward, dtype=torch.float64) for reward in rewards])


def response_mask(tokens, eos):
    return torch_functional.get_response_mask(tokens, list(eos))
