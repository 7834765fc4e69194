"""The functions of `torchtune.rlhf`, under the names of the contracts.

Nothing is copied from the library. What is ours are names, and what each docstring says more.
"""

import torch
from torchtune import rlhf
from torchtune.data import left_pad_sequence, padded_collate_sft
from torchtune.datasets import PackedDataset
from torchtune.rlhf import loss


def whiten(values, mask, shift_mean):
    """`whiten`, whose `shift_mean` adds the mean back: the opposite of the contract's."""
    return rlhf.whiten(values, mask, shift_mean=not shift_mean)


def gae(rewards, values, mask, gamma, lam):
    """`estimate_advantages`. Ours: zeros in the padding, which it expects."""
    rewards, values = rewards.where(mask, 0.0), values.where(mask, 0.0)
    return rlhf.estimate_advantages(values, rewards, gamma, lam, mask)


def log_probs(logits, tokens, temperature):
    """`logits_to_logprobs`."""
    return rlhf.logits_to_logprobs(logits, tokens, temperature)


def batch_log_probs(logits, tokens):
    """`get_batch_log_probs`, which shifts by one.

    It gives the sum of a row, so two columns at a time are the log-probability of one token.
    """
    windows = [slice(t, t + 2) for t in range(tokens.shape[1] - 1)]
    columns = [rlhf.get_batch_log_probs(logits[:, w], tokens[:, w]) for w in windows]
    return torch.stack(columns, dim=1) if columns else logits[:, :0, 0]


def kl(log_probs, ref_log_probs):
    """The KL of `get_rewards_ppo`."""
    scores = torch.zeros(len(log_probs), dtype=log_probs.dtype)
    return rlhf.get_rewards_ppo(scores, log_probs, ref_log_probs, kl_coeff=1.0)[1]


def policy_loss(log_probs, old_log_probs, advantages, mask, clip_low):
    """`PPOLoss` with the value loss at weight 0."""
    zeros = torch.zeros_like(advantages)
    module = loss.PPOLoss(epsilon=clip_low, value_coeff=0.0)
    value, _, _, _, clip_fraction = module(
        old_log_probs, log_probs, advantages, zeros, zeros, zeros, mask, mask
    )
    return {"loss": value, "clip_fraction": clip_fraction}


def value_loss(values, old_values, returns, mask, clip):
    """`PPOLoss` with the value loss at weight 1 and advantages of 0."""
    zeros = torch.zeros_like(values.detach())
    module = loss.PPOLoss(value_clip_range=clip, value_coeff=1.0)
    return {"loss": module(zeros, zeros, zeros, old_values, values, returns, mask, mask)[0]}


def dpo(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta, label_smoothing):
    """`DPOLoss`."""
    module = loss.DPOLoss(beta, label_smoothing)
    return preference(module(policy_chosen, policy_rejected, ref_chosen, ref_rejected))


def rso(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta):
    """`RSOLoss`, a hinge."""
    module = loss.RSOLoss(beta)
    return preference(module(policy_chosen, policy_rejected, ref_chosen, ref_rejected))


def preference(outputs):
    return dict(zip(("losses", "chosen_rewards", "rejected_rewards"), outputs, strict=True))


def mask(tokens, eos, pad):
    """Ours: the library gives where padding is."""
    padding, _ = rlhf.truncate_sequence_at_first_stop_token(
        tokens.clone(), torch.tensor(eos), fill_value=pad
    )
    return ~padding


def collated(prompts, prompt_lengths, completions, completion_lengths, pad, ignore):
    """`padded_collate_sft`. Ours: prompts that have no label."""
    batch = []
    for prompt, p, answer, c in zip(prompts, prompt_lengths, completions, completion_lengths):
        prompt, answer = prompt[:p].tolist(), answer[:c].tolist()
        batch.append({"tokens": prompt + answer, "labels": [ignore] * len(prompt) + answer})
    output = padded_collate_sft(batch, padding_idx=pad, ignore_idx=ignore)
    return {"input_ids": output["tokens"], "labels": output["labels"]}


def left_padded(prompts, prompt_lengths, completions, completion_lengths, pad):
    """`left_pad_sequence`."""
    rows = zip(prompts, prompt_lengths, completions, completion_lengths)
    rows = [torch.cat([prompt[:p], answer[:c]]) for prompt, p, answer, c in rows]
    return {"input_ids": left_pad_sequence(rows, batch_first=True, padding_value=pad)}


def packed(tokens, lengths, mask, capacity, pad, ignore, overlong):
    """`PackedDataset`. Ours: `segments` from its lengths, of which padding is the last."""
    documents = []
    for row, length, trained in zip(tokens, lengths, mask):
        labels = torch.where(trained, row, ignore)[:length].tolist()
        documents.append({"tokens": row[:length].tolist(), "labels": labels})
    split = overlong == "split"
    packs = PackedDataset(
        documents, max_seq_len=capacity, padding_idx=pad, split_across_pack=split
    ).packs
    rows = []
    for pack in packs:
        counts = pack["seq_lens"][pack["seq_lens"] > 0]
        segments = torch.arange(1, len(counts) + 1).repeat_interleave(counts)
        last = capacity - int(counts[-1])
        if last > 0 and pack["input_pos"][last] > 0:  # padding counts on, a document begins at 0
            segments[last:] = 0
        rows.append((pack, segments))
    return {
        "packed": torch.stack([pack["tokens"] for pack, _ in rows]),
        "labels": torch.stack([pack["labels"] for pack, _ in rows]),
        "segments": torch.stack([segments for _, segments in rows]),
    }
