"""GRPO in torch: from rewards and log-probabilities to a loss.

`N` completions of `T` tokens over a vocabulary of `V`.
"""

import torch

from planted import planted


def completion_mask(tokens, eos):
    """True for all that was sampled, `[N, T]`: up to the first end, which counts too."""
    is_end = torch.isin(tokens, torch.as_tensor(eos))
    ends = is_end.cumsum(dim=1)
    if planted("eos-left-out"):
        return ends == 0
    return ends - is_end.long() == 0


def group_advantages(rewards, groups, epsilon=1e-4):
    """(reward - mean) / (std + epsilon) inside each group, `[N]`."""
    if planted("epsilon-of-one"):
        epsilon = 1.0
    ddof = 0 if planted("biased-deviation") else 1
    advantages = torch.zeros_like(rewards)
    for group in groups.unique():
        rows = groups == group
        own = rewards[rows]
        if len(own) > 1:
            advantages[rows] = (own - own.mean()) / (own.std(correction=ddof) + epsilon)
    return advantages


def token_log_probs(logits, tokens, temperature=1.0):
    """The log-probability of each token under `logits / temperature`, `[N, T]`."""
    logits = logits.float() if logits.dtype != torch.float64 else logits  # bf16 is too coarse
    if not planted("temperature-forgotten"):
        logits = logits / temperature
    return logits.log_softmax(dim=-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def kl_estimate(log_probs, ref_log_probs):
    """Schulman's k3 at each token, `[N, T]`."""
    log_ratio = ref_log_probs - log_probs
    return log_ratio.exp() - log_ratio - 1


def policy_loss(
    log_probs,
    old_log_probs,
    advantages,
    mask,
    ref_log_probs=None,
    clip_low=0.2,
    clip_high=0.2,
    beta=0.0,
):
    """PPO's clipped loss with a penalty on the KL, the mean over all tokens of the batch."""
    log_ratio = log_probs - old_log_probs
    if planted("ratio-upside-down"):
        log_ratio = -log_ratio
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    advantages = advantages.unsqueeze(1)
    loss = -torch.minimum(ratio * advantages, clipped * advantages)
    if beta > 0:
        loss = loss + beta * kl_estimate(log_probs, ref_log_probs)
    loss = loss * mask
    if planted("mean-of-row-means"):
        return (loss.sum(dim=1) / mask.sum(dim=1).clamp(min=1)).mean()
    return loss.sum() / mask.sum().clamp(min=1)
