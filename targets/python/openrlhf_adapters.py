"""The functions of an installed OpenRLHF, under the names of the contracts.

Nothing is copied from the library. It is installed without its dependencies: its packages import
DeepSpeed, flash-attn and Ray, which the arithmetic does not need, so their `__init__` is not run,
and empty modules stand in for the rest. What is ours are names, shapes, and what docstrings say.
"""

from types import SimpleNamespace

from library import stand_in, statements, without_init

stand_in("deepspeed", "ray", "openrlhf.trainer.ray.launcher")
without_init(
    "openrlhf",
    "openrlhf.models",
    "openrlhf.utils",
    "openrlhf.trainer",
    "openrlhf.trainer.ray",
    "openrlhf.trainer.ppo_utils",
)

import torch
from openrlhf.models import loss, utils
from openrlhf.trainer.ppo_utils.experience import Experience
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
from openrlhf.trainer.ppo_utils.length_penalty import apply_overlong_penalty
from openrlhf.utils import seqlen_balancing
from openrlhf.utils.loss_utils import iter_grad_accum_global_norm
from openrlhf.utils.utils import zero_pad_sequences

torch.compiler.set_stance("force_eager")  # `compute_entropy` is compiled, which needs a compiler

# `baseline` and `scale` of the contract: the estimator.
ESTIMATOR = {
    ("leave-one-out", "none"): "rloo",
    ("mean", "none"): "dr_grpo",
    ("mean", "std"): "group_norm",
}


def advantages(rewards, mask, groups, baseline, scale):
    """The whole `compute_advantages_and_returns`, without penalties and without KL."""
    settings = SimpleNamespace(
        algo=SimpleNamespace(
            advantage=SimpleNamespace(estimator=ESTIMATOR[baseline, scale], gamma=1.0)
        ),
        reward=SimpleNamespace(clip_range=None),
        rollout=SimpleNamespace(n_samples_per_prompt=len(rewards) // len(groups.unique())),
    )
    self = RemoteExperienceMaker.__new__(RemoteExperienceMaker)
    self.strategy = SimpleNamespace(args=settings)
    self.advantage_estimator = settings.algo.advantage.estimator
    self.kl_ctl = SimpleNamespace(value=0.0)
    experience = Experience(
        index=list(range(len(rewards))),
        rewards=rewards,
        action_mask=mask,
        kl=torch.zeros_like(mask, dtype=rewards.dtype),
    )
    [experience] = self.compute_advantages_and_returns([experience])
    return experience.advantages


def group_advantage(rewards, groups, baseline, scale):
    """Ours: completions of one token."""
    mask = torch.ones(len(rewards), 1, dtype=torch.bool)
    return advantages(rewards, mask, groups, baseline, scale).squeeze(1)


def outcome_advantage(token_rewards, mask, groups, baseline, scale):
    """Ours: the reward of a completion is the sum of those of its tokens."""
    rewards = token_rewards.where(mask, 0.0).sum(-1)
    return advantages(rewards, mask, groups, baseline, scale)


def gae(rewards, values, mask, gamma, lam):
    """`get_advantages_and_returns`."""
    method = RemoteExperienceMaker.get_advantages_and_returns
    return method(None, values, rewards, mask, gamma, lam)


def returns(rewards, mask, gamma):
    """`get_cumulative_returns`."""
    return RemoteExperienceMaker.get_cumulative_returns(None, rewards, mask, gamma)


def whiten(values, mask, epsilon):
    """`masked_normalize`, row by row."""
    return utils.masked_normalize(values, mask, eps=epsilon)


def log_probs(logits, tokens, temperature):
    """`log_probs_from_logits` without flash-attn; f32 and f64 take one branch, halves another."""
    return utils.log_probs_from_logits(logits, tokens, temperature)


def log_probs_of_a_copy(logits, tokens, temperature):
    """The same on a copy of the logits, which it changes at other temperatures than 1."""
    return utils.log_probs_from_logits(logits.clone(), tokens, temperature)


def entropy(logits):
    """`compute_entropy`, not compiled."""
    return utils.compute_entropy(logits)


def kl(log_probs, ref_log_probs, estimator, gradient):
    """`compute_approx_kl`; the unbiased gradient is that of k2."""
    return utils.compute_approx_kl(
        log_probs, ref_log_probs, kl_estimator=estimator, unbiased_gradient=gradient == "k2"
    )


def policy_loss(
    log_probs, old_log_probs, advantages, mask, ratio, clip_low, clip_high, dual_clip, aggregate
):
    """`PolicyLoss`; its GSPO has one ratio a row."""
    module = loss.PolicyLoss(
        clip_low,
        clip_high,
        dual_clip,
        token_level_loss=aggregate == "token-mean",
        policy_loss_type="gspo" if ratio == "sequence" else "ppo",
    )
    value, clip_fraction, approx_kl, *_ = module(log_probs, old_log_probs, advantages, mask)
    outputs = {"loss": value, "approx_kl": approx_kl}
    if ratio == "token":
        outputs["clip_fraction"] = clip_fraction
    return outputs


def value_loss(values, old_values, returns, mask, clip, aggregate):
    """`ValueLoss`."""
    module = loss.ValueLoss(clip, token_level_loss=aggregate == "token-mean")
    return {"loss": module(values, old_values, returns, mask)}


def dpo(policy_chosen, policy_rejected, ref_chosen, ref_rejected, kind, beta, label_smoothing):
    """`DPOLoss`."""
    module = loss.DPOLoss(beta, label_smoothing, ipo=kind == "ipo")
    value, chosen, rejected = module(policy_chosen, policy_rejected, ref_chosen, ref_rejected)
    return {"loss": value, "chosen_rewards": chosen, "rejected_rewards": rejected}


def pair_wise(policy_chosen, policy_rejected, margin):
    """`PairWiseLoss` of reward models, with scores for log-probabilities and beta 1."""
    margin = torch.full_like(policy_chosen, margin)
    return {"loss": loss.PairWiseLoss()(policy_chosen, policy_rejected, margin)}


def log_exp(policy_chosen, policy_rejected):
    """`LogExpLoss` of reward models, likewise."""
    return {"loss": loss.LogExpLoss()(policy_chosen, policy_rejected)}


def accumulated(micro_batches, aggregate):
    """`aggregate_loss` with the counts of `iter_grad_accum_global_norm`.

    Ours: the division by the number of micro-batches, which is DeepSpeed's.
    """
    steps = len(micro_batches)
    batches = iter_grad_accum_global_norm(micro_batches, None, steps, lambda batch: batch["mask"])
    losses = [
        loss.aggregate_loss(batch["token_losses"], batch["mask"], aggregate == "token-mean", **info)
        for batch, info in batches
    ]
    return sum(losses) / steps


def overlong(lengths, max_length, buffer, factor):
    """`apply_overlong_penalty`."""
    rewards = torch.zeros(len(lengths), dtype=torch.float64)
    experience = SimpleNamespace(response_length=lengths, rewards=rewards)
    apply_overlong_penalty([experience], max_length, buffer, factor)
    return rewards


def token_rewards(scores, log_probs, ref_log_probs, mask, beta, kl_estimator, score_clip):
    """`compute_approx_kl` and `compute_reward`. Ours: the estimate is 0 under the mask."""
    kl = utils.compute_approx_kl(log_probs, ref_log_probs, kl_estimator=kl_estimator)
    kl = kl.where(mask, 0.0)
    return utils.compute_reward(scores, beta, kl, mask, score_clip)


CORRECTION = statements(
    loss.PolicyLoss.forward, "high", "vllm_kl", ("coef", "is_filter_ratio", "filtered")
)


def correction(log_probs, sampler_log_probs, mask, level, mode, low, high):
    """The correction in `PolicyLoss.forward`. Ours: the weights under the mask, and `keep`."""
    self = SimpleNamespace(
        is_correction_gating="ratio",
        is_correction_level=level,
        is_correction_mode=mode,
        is_correction_threshold=(low, high),
    )
    coefficients, share, filtered = CORRECTION(
        action_mask=mask,
        high=high,
        log_probs=log_probs,
        loss=torch.ones(()),
        low=low,
        old_log_probs=log_probs,
        rollout_log_probs=sampler_log_probs,
        self=self,
        seq_level=level == "seq",
    )
    weights = coefficients.expand_as(log_probs).where(mask, 0.0)
    outputs = {"weights": weights}
    if mode == "mask":
        outputs["keep"] = mask & ~filtered
    if level == "token":
        outputs["clip_fraction"] = share
    return outputs


def truncated(log_probs, sampler_log_probs, mask, clamp_low, clamp_high):
    """`clip` of single tokens."""
    return correction(log_probs, sampler_log_probs, mask, "token", "clip", clamp_low, clamp_high)


def masked(log_probs, sampler_log_probs, mask, select, select_low, select_high):
    """`mask` of tokens, or of rows by their geometric mean."""
    level = {"token": "token", "geometric": "seq"}[select]
    bounds = select_low, select_high
    return correction(log_probs, sampler_log_probs, mask, level, "mask", *bounds)


def balanced(lengths, parts, equal_size):
    """`get_seqlen_balanced_partitions`."""
    return parts_of(lengths, parts, equal_size)


def micro_batches(lengths, capacity):
    """`get_minimum_num_micro_batch_size`, and the partition that `setup_dynamic_batch` asks for."""
    lengths = lengths.tolist()
    parts = seqlen_balancing.get_minimum_num_micro_batch_size(lengths, capacity, 1, 1)
    return parts_of(torch.tensor(lengths), parts, False)


def parts_of(lengths, count, equal_size):
    """The part of each row."""
    partitions = seqlen_balancing.get_seqlen_balanced_partitions(
        lengths.tolist(), count, equal_size
    )
    parts = torch.full((len(lengths),), -1)
    for part, rows in enumerate(partitions):
        parts[torch.tensor(rows)] = part
    return parts


def collated(prompts, prompt_lengths, completions, completion_lengths, pad, layout):
    """`zero_pad_sequences` on the tokens and on their masks."""
    rows = list(zip(prompts, prompt_lengths, completions, completion_lengths))
    tokens = [torch.cat([prompt[:p], answer[:c]]) for prompt, p, answer, c in rows]
    answers = [torch.arange(p + c) >= p for _, p, _, c in rows]
    ones = [torch.ones(len(row), dtype=torch.long) for row in tokens]
    return {
        "input_ids": zero_pad_sequences(tokens, layout, pad, stack=True),
        "attention_mask": zero_pad_sequences(ones, layout, stack=True),
        "completion_mask": zero_pad_sequences([row.long() for row in answers], layout, stack=True),
    }


def mean_entropy(logits, mask):
    """`compute_entropy`, and the masked mean that the trainer takes of it."""
    return {"entropy": utils.masked_mean(utils.compute_entropy(logits), mask)}
