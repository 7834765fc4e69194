"""The functions of an installed TRL, under the names of the contracts.

Nothing is copied from the library. Where it has a function, the function is called; where the
arithmetic is a trainer's method, the method runs with a minimal `self`, or `statements` runs the
lines of the installed file. What is ours are names, shapes and the size of a group, and each
docstring says what more.
"""

import os
from types import SimpleNamespace

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from accelerate import PartialState
from library import statements, using
from trl.experimental.async_grpo.async_rollout_worker import (
    RolloutGroup,
    TrainingSequence,
    _AsyncRolloutLoop,
)
from trl.experimental.cpo import CPOTrainer
from trl.experimental.sdpo import SDPOTrainer
from trl.rewards import get_cosine_scaled_reward, get_soft_overlong_punishment
from trl.trainer import utils
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.rloo_trainer import RLOOTrainer

# `scale` of the contract: `scale_rewards` of the trainers.
SCALE_REWARDS = {"std": "group", "batch-std": "batch", "none": "none"}


def advantages_of(method, before):
    """The lines of a trainer from the rewards of its functions to the advantages."""
    return statements(method, "rewards_per_func", before, "advantages")


GRPO = advantages_of(GRPOTrainer._generate_and_score_completions, "process_slice")
RLOO = advantages_of(RLOOTrainer._generate_and_score_completions, "process_slice")
SDPO = advantages_of(SDPOTrainer._prepare_training_batch, "local_batch_size")


def trainer(method, rewards, groups, **settings):
    """Runs `method` as in training, with one reward function of weight 1."""
    size = len(rewards) // len(groups.unique())
    self = SimpleNamespace(
        num_generations=size, reward_weights=torch.ones(1), reward_funcs=[None], **settings
    )
    rewards_per_func = rewards.unsqueeze(1)  # (completions, reward functions)
    return method(self=self, mode="train", device=rewards.device, rewards_per_func=rewards_per_func)


def grpo(rewards, groups, scale):
    """`GRPOTrainer`, with the default `multi_objective_aggregation`."""
    settings = {"multi_objective_aggregation": "sum_then_normalize"}
    return trainer(GRPO, rewards, groups, scale_rewards=SCALE_REWARDS[scale], **settings)


def rloo(rewards, groups):
    """`RLOOTrainer`, without clipping of rewards, KL or normalisation of advantages."""
    settings = {"reward_clip_range": None, "beta": 0.0, "normalize_advantages": False}
    return trainer(RLOO, rewards, groups, **settings)


def sdpo(rewards, groups, scale):
    """`SDPOTrainer` (experimental)."""
    return trainer(SDPO, rewards, groups, scale_rewards=SCALE_REWARDS[scale])


async def async_grpo(rewards, groups):
    """The whole method `_score_group` of the asynchronous GRPO (experimental), group by group.

    It takes Python floats and computes in float64. Ours: what a rollout would have brought along.
    """
    PartialState(cpu=True)  # its logger asks for one
    advantages = torch.empty_like(rewards)
    for group in groups.unique():
        rows = groups == group
        samples = await score_group(rewards[rows].tolist())
        advantages[rows] = rewards.new_tensor([sample.advantage for sample in samples])
    return advantages


def score_group(rewards):
    async def reward_function(**_):
        return rewards

    n = len(rewards)
    loop = SimpleNamespace(
        reward_funcs=[reward_function],
        reward_func_names=["reward"],
        _env_reward_types=[],
        _provides_rollout_reward=False,
    )
    sequence = TrainingSequence([0], [1], [0.0], rollout_id="")
    group = RolloutGroup(
        prompts=[[]] * n,
        reward_kwargs={},
        completions=[[]] * n,
        completions_ids=[[]] * n,
        completions_sequences=[[sequence]] * n,
        tool_call_counts=[0] * n,
        tool_failure_counts=[0] * n,
        model_version=0,
        group_id=0,
        env_rewards=[None] * n,
        rollout_rewards=[None] * n,
    )
    return _AsyncRolloutLoop._score_group(loop, group)


def nanstd(rewards, groups, epsilon):
    """`nanstd`, for groups of any size and order. Ours: (r - mean) / (nanstd + epsilon)."""
    advantages = torch.empty_like(rewards)
    for group in groups.unique():
        rows = groups == group
        centred = rewards[rows] - rewards[rows].nanmean()
        advantages[rows] = centred / (utils.nanstd(rewards[rows]) + epsilon)
    return advantages.nan_to_num(nan=0.0)


def selective_log_softmax(logits, tokens, temperature):
    """`selective_log_softmax`; f32 and f64 take one branch of it, bf16 and f16 another."""
    return utils.selective_log_softmax(logits, tokens, temperature=temperature)


def entropy(logits):
    """`entropy_from_logits`, which has no temperature."""
    return utils.entropy_from_logits(logits)


def log_softmax_and_entropy(logits, temperature):
    """The entropy of `selective_log_softmax_and_entropy`. Ours: the log-probability of token 0."""
    tokens = torch.zeros(logits.shape[:-1], dtype=torch.long, device=logits.device)
    return utils.selective_log_softmax_and_entropy(logits, tokens, temperature=temperature)[1]


def cpo(logits, tokens):
    """`CPOTrainer.get_batch_logps` (experimental), which shifts by one.

    It gives the sum of a row, so two columns at a time are the log-probability of one token.
    """
    windows = [slice(t, t + 2) for t in range(tokens.shape[1] - 1)]
    columns = [CPOTrainer.get_batch_logps(logits[:, w], tokens[:, w]) for w in windows]
    return torch.stack(columns, dim=1) if columns else logits[:, :0, 0]


def fused_lm_head(logits, tokens, temperature, tile=utils._CHUNKED_LOGPROB_CHUNK_SIZE):
    """The kernel of `add_fused_lm_head`, from which GRPO, RLOO, DPO and KTO get log-probabilities.

    It projects hidden states itself. Ours: one-hot hidden states and `logits` as the weights, a
    product without rounding.
    """
    rows, targets = logits.flatten(0, 1), tokens.flatten()
    # 0 * inf is NaN, so rows with -inf are projected one at a time.
    size = len(rows) if rows.isfinite().all() else 1
    parts = zip(rows.split(size), targets.split(size), strict=True)
    log_probs = [fused(weight, target, temperature, tile)[0] for weight, target in parts]
    return torch.cat(log_probs).view(tokens.shape)


def fused_lm_head_in_tiles(logits, tokens, temperature):
    """The same in tiles of two tokens of the vocabulary (a real vocabulary has tiles of 32,768)."""
    return fused_lm_head(logits, tokens, temperature, tile=2)


def fused_lm_head_entropy(logits, temperature, tile=utils._CHUNKED_LOGPROB_CHUNK_SIZE):
    """The entropy from the same kernel. Ours: as above, and token 0 as the target."""
    weight = logits.flatten(0, 1)
    target = torch.zeros(len(weight), dtype=torch.long, device=logits.device)
    return fused(weight, target, temperature, tile)[1].view(logits.shape[:-1])


def fused_lm_head_entropy_in_tiles(logits, temperature):
    """The same in tiles of two tokens of the vocabulary."""
    return fused_lm_head_entropy(logits, temperature, tile=2)


def fused(weight, target, temperature, tile):
    """The log-probabilities and the entropies of the kernel."""
    hidden = torch.eye(len(weight), dtype=weight.dtype, device=weight.device)
    no_bias, no_softcap, scale, outputs = None, None, 1.0, ("log_probs", "entropy")
    return utils._ChunkedLogProbFunction.apply(
        hidden, weight.T, no_bias, target, temperature, tile, no_softcap, scale, outputs
    )[:2]


def soft_overlong(lengths, max_length, buffer):
    """`get_soft_overlong_punishment`. Ours: completions of so many tokens 0."""
    reward = get_soft_overlong_punishment(max_length, buffer)
    return lengths.new_tensor(reward([[0] * n for n in lengths.tolist()]), dtype=torch.float64)


def cosine(lengths, max_length, min, max, correct=True):
    """`get_cosine_scaled_reward` of right completions. Ours: that each of them is right."""
    bounds = {"min_value_correct": min, "max_value_correct": max}
    if not correct:  # for wrong ones the bounds are named by length, and are swapped inside
        bounds = {"min_value_wrong": max, "max_value_wrong": min}
    reward = get_cosine_scaled_reward(max_length, **bounds)
    judged = using(type(reward).__call__, accuracy_reward=lambda *_: [correct] * len(lengths))
    rewards = judged(reward, None, None, [[0] * n for n in lengths.tolist()])
    return lengths.new_tensor(rewards, dtype=torch.float64)


def cosine_of_wrong(lengths, max_length, min, max):
    """The same of wrong completions, whose reward rises with length."""
    return cosine(lengths, max_length, min, max, correct=False)
