"""The functions of `torchtune.rlhf`, under the names of the contracts.

Nothing is copied from the library. What is ours are names, and what each docstring says more.
"""

import torch
from torchtune import rlhf
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
