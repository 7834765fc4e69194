import math


def row_mean(values, mask):
    tokens = mask.sum(1, keepdim=True).clamp(min=1)
    return values.masked_fill(~mask, 0).sum(1, keepdim=True) / tokens


def ratio_of(log_ratio, mask, level, limit):
    exponent = log_ratio
    if level == "geometric":
        exponent = row_mean(log_ratio, mask)
    if level == "sequence":
        exponent = log_ratio.sum(1, keepdim=True)
    exponent = exponent.clamp(-limit, limit)
    return exponent.exp().expand_as(log_ratio)


def normalized(weights, mask, normalize):
    mean = weights[mask].mean()
    if normalize == "sequences":
        mean = row_mean(weights, mask)[mask.any(1)].mean()
    return weights / mean if normalize != "none" and mean > 0 else weights


def importance_weights(
    log_probs,
    sampler_log_probs,
    mask,
    advantages,
    level,
    clamp_low,
    clamp_high,
    select,
    select_high,
    veto,
    drift,
    normalize,
    log_ratio_clamp,
):
    limit = log_ratio_clamp or math.inf
    log_ratio = (log_probs.detach() - sampler_log_probs).masked_fill(~mask, 0)
    ratio = ratio_of(log_ratio, mask, level, limit)
    keep = mask.clone()
    if select != "none":
        selecting = ratio_of(log_ratio, mask, select, limit)
        keep &= selecting <= select_high
    if veto is not None:
        keep &= ~(log_ratio.exp() < veto).any(1, keepdim=True)
    if drift is not None:
        drifted = -row_mean(log_ratio, mask) > drift
        keep &= ~(drifted & (advantages < 0).unsqueeze(1))
    weights = ratio.clamp(clamp_low or 0, clamp_high)
    weights = weights.masked_fill(~keep, 0)
    weights = normalized(weights, mask, normalize)
    clipped = mask & ~(keep & (ratio == ratio.clamp(clamp_low or 0, clamp_high)))
    tokens = mask.sum().clamp(min=1)
    clip_fraction = clipped.to(weights).sum() / tokens
    mismatch_kl = -log_ratio[mask].sum() / tokens
    return weights, keep.to(weights), clip_fraction, mismatch_kl
