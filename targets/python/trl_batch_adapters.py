"""What an installed TRL does with batches, under the names of the contracts.

Nothing is copied from the library. What is ours are names, shapes, and what each docstring says.
"""

import os
from types import SimpleNamespace

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from datasets import Dataset, disable_progress_bars
from library import statements
from trl import pack_dataset
from trl.trainer import utils
from trl.trainer.dpo_trainer import DataCollatorForPreference
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

disable_progress_bars()

STRATEGY = {
    ("truncate", "capacity"): "bfd",
    ("split", "capacity"): "bfd_split",
    ("split", "anywhere"): "wrapped",
}
METHOD = GRPOTrainer._generate_and_score_completions
RATIO = statements(METHOD, "per_token_logps_diff", None, "vllm_importance_sampling_ratio")
SUMMED = statements(METHOD, "grouped", None, "advantages")


def sampler(prompts, seed, group_size, prompts_per_batch, repeats, shuffle):
    """`RepeatSampler`. Ours: its indices are those of the prompts; null means all of them."""
    indices = utils.RepeatSampler(
        prompts,
        mini_repeat_count=group_size,
        batch_size=prompts_per_batch or len(prompts),
        repeat_count=repeats,
        shuffle=shuffle,
        seed=int(seed),
    )
    return prompts[torch.tensor(list(indices), dtype=torch.long)]


def correction(log_probs, sampler_log_probs, mask, mode, low, high):
    """The ratio of vLLM's correction in `_generate_and_score_completions`."""
    difference = (log_probs - sampler_log_probs) * mask
    self = SimpleNamespace(
        vllm_importance_sampling_clip_max=high,
        vllm_importance_sampling_clip_min=low,
        vllm_importance_sampling_mode=mode,
    )
    ratio = RATIO(self=self, per_token_logps_diff=difference, mask=mask)
    return ratio.detach().expand_as(log_probs)


def truncated(log_probs, sampler_log_probs, mask, level, clamp_low, clamp_high):
    """`token_truncate` and `sequence_truncate`."""
    mode = f"{level}_truncate"
    return correction(log_probs, sampler_log_probs, mask, mode, clamp_low, clamp_high)


def masked(log_probs, sampler_log_probs, mask, level, select_low, select_high):
    """`token_mask` and `sequence_mask`."""
    mode = f"{level}_mask"
    return correction(log_probs, sampler_log_probs, mask, mode, select_low, select_high)


def off_policy_mask(log_probs, sampler_log_probs, mask, advantages, drift):
    """`get_off_policy_mask`. Ours: the weights, of which the method knows nothing."""
    keep = GRPOTrainer.get_off_policy_mask(
        advantages.unsqueeze(1), log_probs, sampler_log_probs, mask.to(log_probs.dtype), drift
    )
    weights = (log_probs - sampler_log_probs).detach().exp().where(mask, 0.0)
    return {"weights": weights, "keep": (keep * mask).expand_as(mask)}


def gdpo(rewards, groups, weights):
    """The lines of `normalize_then_sum` in `_generate_and_score_completions`.

    Ours: groups of one size, filled up with rows that no function scored.
    """
    members = [(groups == group).nonzero().squeeze(1) for group in groups.unique()]
    size, functions = max(map(len, members)), rewards.shape[1]
    grouped = torch.full((len(members), size, functions), float("nan"), dtype=rewards.dtype)
    for group, rows in enumerate(members):
        grouped[group, : len(rows)] = rewards[rows]
    flat = grouped.view(-1, functions)
    self = SimpleNamespace(
        reward_funcs=[None] * functions,
        reward_weights=torch.ones(functions) if weights is None else torch.tensor(weights),
    )
    advantages = SUMMED(
        self=self,
        device="cpu",
        grouped=grouped,
        num_generations=size,
        rewards_per_func=flat,
        unscorable_mask=flat.isnan().all(1),
    )
    combined = torch.empty(len(rewards), dtype=rewards.dtype)
    for group, rows in enumerate(members):
        combined[rows] = advantages.view(-1, size)[group, : len(rows)]
    return combined.nan_to_num(nan=0.0)


def collated(
    prompts,
    prompt_lengths,
    completions,
    completion_lengths,
    pad,
    max_length,
    truncate,
    multiple_of,
):
    """`DataCollatorForPreference`: of its two halves the chosen one, with both sides alike."""
    collator = DataCollatorForPreference(
        pad_token_id=pad,
        max_length=max_length,
        truncation_mode=truncate.replace("-", "_"),
        pad_to_multiple_of=multiple_of,
    )
    rows = zip(prompts, prompt_lengths, completions, completion_lengths)
    examples = []
    for prompt, length, completion, other in rows:
        answer = completion[:other].tolist()
        prompt = prompt[:length].tolist()
        examples.append({"prompt_ids": prompt, "chosen_ids": answer, "rejected_ids": answer})
    output = collator(examples)
    names = "input_ids", "attention_mask", "completion_mask"
    return {name: output[name][: len(examples)] for name in names}


def packed(tokens, lengths, mask, capacity, pad, overlong, cut):
    """`pack_dataset`, then `DataCollatorForLanguageModeling` row by row, free of padding.

    Ours: the labels of a document, `segments` from its positions, and rows put under each other.
    """
    documents = [row[:length].tolist() for row, length in zip(tokens, lengths)]
    trained = [row[:length].tolist() for row, length in zip(mask, lengths)]
    labels = [
        [token if keep else -100 for token, keep in zip(*document)]
        for document in zip(documents, trained)
    ]
    dataset = Dataset.from_dict({"input_ids": documents, "labels": labels})
    rows = pack_dataset(dataset, capacity, STRATEGY[overlong, cut])
    collator = DataCollatorForLanguageModeling(pad_token_id=pad, padding_free=True)
    width = max(len(row["input_ids"]) for row in rows)
    columns = {"packed": pad, "positions": 0, "labels": -100, "segments": 0}
    outputs = {name: [] for name in columns}
    for row in rows:
        output = collator([row])
        [ids], [positions] = output["input_ids"], output["position_ids"]
        one = {
            "packed": ids,
            "positions": positions,
            "labels": output["labels"][0],
            "segments": (positions == 0).cumsum(0),
        }
        for name, fill in columns.items():
            padding = torch.full((width - len(ids),), fill)
            outputs[name].append(torch.cat([one[name], padding]))
    return {name: torch.stack(rows) for name, rows in outputs.items()}


def high_entropy(logits, mask, top_share):
    """`get_high_entropy_mask` on `entropy_from_logits`. Ours: the mean over what it chose."""
    entropies = utils.entropy_from_logits(logits)
    accelerator = SimpleNamespace(
        gather=lambda tensor: tensor, pad_across_processes=lambda tensor, **_: tensor
    )
    self = SimpleNamespace(accelerator=accelerator)
    detached = entropies.detach()
    chosen = GRPOTrainer.get_high_entropy_mask(self, detached, mask.long(), 1.0 - top_share)
    return {"entropy": (entropies * chosen).sum() / chosen.sum().clamp(min=1.0)}


def statistics(shards):
    """`nanmin`, `nanmax` and `nanstd` of what all ranks gathered, and its `nanmean`."""
    values = torch.cat([shard["values"][shard["mask"]] for shard in shards])
    return {
        "mean": values.nanmean(),
        "min": utils.nanmin(values),
        "max": utils.nanmax(values),
        "std": utils.nanstd(values),
    }
