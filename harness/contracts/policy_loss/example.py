import torch


def aggregated(values, mask, aggregate="token-mean", norm_length=None):
    values = values * mask
    lengths = mask.sum(1)
    if aggregate == "token-mean":
        return values.sum() / lengths.sum().clamp(min=1)
    per_row = values.sum(1)
    if aggregate == "seq-mean-token-mean":
        per_row = per_row / lengths.clamp(min=1)
    elif aggregate == "seq-mean-token-sum-norm":
        per_row = per_row / norm_length
    return per_row.sum() / (lengths > 0).sum().clamp(min=1)


def policy_loss(
    log_probs,
    old_log_probs,
    advantages,
    mask,
    ref_log_probs,
    objective,
    clip_low,
    clip_high,
    beta,
    aggregate,
    norm_length,
):
    advantages = advantages.masked_fill(~mask, 0)
    log_ratio = log_probs - old_log_probs
    ratio = log_ratio.clamp(max=88).exp()  # e^89 is infinite in float32
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    if objective == "cispo":
        losses = -advantages * clipped.detach() * log_probs
    else:
        losses = torch.max(-advantages * ratio, -advantages * clipped)
    above = (ratio > 1 + clip_high) & (advantages > 0)
    below = (ratio < 1 - clip_low) & (advantages < 0)
    metrics = {
        "clip_fraction": aggregated(above | below, mask),
        "approx_kl": aggregated(-log_ratio.detach(), mask),
    }
    if beta > 0:
        delta = ref_log_probs - log_probs
        kl = delta.exp() - 1 - delta
        losses = losses + beta * kl
        metrics["kl"] = aggregated(kl.detach(), mask, aggregate, norm_length)
    return {"loss": aggregated(losses, mask, aggregate, norm_length), **metrics}
