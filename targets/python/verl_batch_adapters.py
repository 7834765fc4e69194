"""What an installed verl does with batches, under the names of the contracts.

Nothing is copied from the library. See `verl_adapters.py` for how it is imported; modules that need
a cluster are not imported at all, their functions are compiled alone. What is ours are names,
shapes, and what each docstring says more.
"""

from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import torch
import verl_adapters  # noqa: F401  before the modules below, which import as it arranges
from library import lone, using
from verl.protocol import DataProto
from verl.trainer.ppo import core_algos, rollout_corr_helper
from verl.utils import seqlen_balancing, torch_functional

RAY_TRAINER = "verl.trainer.ppo.ray_trainer"
REPLAY_BUFFER = "verl.trainer.ppo.v1.replay_buffer"

# `level` and `normalize` of the contract: what the library is told.
LEVEL = {"token": "token", "sequence": "sequence"}
SELECT = {"token": "token_k1", "sequence": "seq_sum_k1", "geometric": "seq_mean_k1"}


def correction(log_probs, sampler_log_probs, mask, level, clamp_high, normalize):
    """`compute_rollout_correction_weights` with one threshold, which truncates."""
    weights, _ = rollout_corr_helper.compute_rollout_correction_weights(
        log_probs - sampler_log_probs,
        mask.to(log_probs.dtype),
        rollout_is=LEVEL[level],
        rollout_is_threshold=clamp_high,
        rollout_is_batch_normalize=normalize != "none",
    )
    return weights


def icepop(log_probs, sampler_log_probs, mask, level, select_low, select_high):
    """The same with two thresholds, between which a weight is kept."""
    return correction(
        log_probs, sampler_log_probs, mask, level, f"{select_low}_{select_high}", "none"
    )


def rejection(log_probs, sampler_log_probs, mask, select, select_low, select_high):
    """`compute_rollout_rejection_mask`, whose k1 bounds sampler over policy.

    Ours: the weight, which the library leaves as it is.
    """
    log_ratio = log_probs - sampler_log_probs
    kept, _ = rollout_corr_helper.compute_rollout_rejection_mask(
        log_ratio,
        mask.to(log_probs.dtype),
        rollout_rs=SELECT[select],
        rollout_rs_threshold=f"{1 / select_high}_{1 / select_low}",
    )
    bound = rollout_corr_helper.SAFETY_BOUND
    weights = log_ratio.detach().clamp(-bound, bound).exp().where(mask, 0.0)
    return {"weights": weights, "keep": kept}


apply_kl_penalty = lone(
    RAY_TRAINER,
    "apply_kl_penalty",
    core_algos=core_algos,
    masked_mean=torch_functional.masked_mean,
    torch=torch,
)


def token_rewards(scores, log_probs, ref_log_probs, mask, beta, kl_estimator):
    """`apply_kl_penalty`. Ours: the score at the last token, where the reward managers put it."""
    columns = torch.arange(mask.shape[1]).expand_as(mask)
    last = columns.where(mask, -1).amax(1, keepdim=True) if mask.shape[1] else columns
    at_last = torch.where(mask & (columns == last), scores.unsqueeze(1), 0.0)
    batch = {
        "response_mask": mask.to(scores.dtype),
        "token_level_scores": at_last,
        "old_log_probs": log_probs,
        "ref_log_prob": ref_log_probs,
    }
    data = SimpleNamespace(batch=Batch(batch, len(scores)))
    control = SimpleNamespace(value=beta, update=lambda **_: None)
    _, metrics = apply_kl_penalty(data, control, kl_penalty=kl_estimator)
    kl = torch.tensor(metrics["actor/reward_kl_penalty"], dtype=scores.dtype)
    return {"rewards": data.batch["token_level_rewards"], "kl": kl}


class Batch(dict):
    """As much of a `TensorDict` as is asked for."""

    def __init__(self, values, rows):
        super().__init__(values)
        self.batch_size = (rows,)


class Config(SimpleNamespace):
    """As much of a configuration as is asked for."""

    def get(self, name, default=None):
        return getattr(self, name, default)


def gdpo(rewards, groups, weights, epsilon):
    """`compute_gdpo_outcome_advantage`. Ours: completions of one token."""
    keys = [f"function {k}" for k in range(rewards.shape[1])]
    columns = {key: column.numpy() for key, column in zip(keys, rewards.unbind(1))}
    ones = torch.ones(len(rewards), 1)
    advantages, _ = core_algos.compute_gdpo_outcome_advantage(
        token_level_rewards=ones,
        response_mask=ones,
        index=groups.numpy(),
        epsilon=epsilon,
        config=Config(gdpo_reward_keys=keys, gdpo_reward_weights=weights),
        non_tensor_batch=columns,
        batch={"prompts": ones[:, :0], "attention_mask": ones.long()},
    )
    return advantages.squeeze(1)


dapo_filtered_keys = lone(
    REPLAY_BUFFER,
    "ReplayBuffer._dapo_filtered_keys",
    Counter=Counter,
    FILTER_GROUPS_REWARD_METRIC=None,
    defaultdict=defaultdict,
    np=np,
    tq=None,
)


def dapo_filter(metric, groups):
    """`ReplayBuffer._dapo_filtered_keys`. Ours: the queue, and rows of the groups that stay."""
    keys = [f"{group}_{row}" for row, group in enumerate(groups.tolist())]
    extra = [{"reward_extra_info": {"metric": value}} for value in metric.tolist()]
    known = dict(zip(keys, extra))
    fields = {"kv_batch_get": lambda keys, **_: {"extra_fields": [known[key] for key in keys]}}
    self = SimpleNamespace(
        filter_groups_metric="metric",
        finished_keys={"train": {str(group) for group in groups.tolist()}},
        partitions={"train": keys},
        _dapo_classification_cache={"train": {}},
    )
    dropped, _ = using(dapo_filtered_keys, tq=SimpleNamespace(**fields))(self, "train")
    return torch.tensor([str(group) not in dropped for group in groups.tolist()])


def parts_of(partitions, rows):
    """The part of each row."""
    parts = torch.full((rows,), -1)
    for part, indices in enumerate(partitions):
        parts[torch.tensor(indices)] = part
    return parts


def balanced(lengths, parts, equal_size):
    """`get_seqlen_balanced_partitions`."""
    partitions = seqlen_balancing.get_seqlen_balanced_partitions(
        lengths.tolist(), parts, equal_size
    )
    return parts_of(partitions, len(lengths))


def micro_batches(lengths, values, capacity, min_parts, multiple_of):
    """`rearrange_micro_batches` and `restore_dynamic_batch`. Ours: rows without tokens."""
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    nested = SimpleNamespace(is_nested=True, offsets=lambda: offsets)
    select = SimpleNamespace(index_select_tensor_dict=lambda batch, rows: rows)
    rearrange = using(seqlen_balancing.rearrange_micro_batches, tu=select)
    _, partitions = rearrange(
        {"input_ids": nested},
        capacity,
        num_batches_divided_by=multiple_of if multiple_of > 1 else None,
        min_num_micro_batch=min_parts,
    )
    there = torch.cat([values[torch.tensor(rows)] for rows in partitions])
    back = seqlen_balancing.restore_dynamic_batch(there, partitions)
    return {"parts": parts_of(partitions, len(lengths)), "restored": back}


def repeated(prompts, group_size, layout):
    """`DataProto.repeat`."""
    batch = DataProto.from_dict({"prompts": prompts})
    repeated = batch.repeat(repeat_times=group_size, interleave=layout == "interleave")
    return repeated.batch["prompts"]


def entropy(logits, mask, aggregate):
    """`compute_entropy_loss`, which gives the entropy itself."""
    mode = {"token-mean": "token-mean", "seq-mean-token-sum": "seq-mean-token-sum"}[aggregate]
    return {"entropy": core_algos.compute_entropy_loss(logits, mask.to(logits.dtype), mode)}


def masked_statistics(shards):
    """`masked_mean` and `masked_var` over the tokens of all shards."""
    values = torch.cat([shard["values"].flatten() for shard in shards])
    mask = torch.cat([shard["mask"].flatten() for shard in shards]).to(values.dtype)
    mean = torch_functional.masked_mean(values, mask)
    return {"mean": mean, "std": torch_functional.masked_var(values, mask).sqrt()}
