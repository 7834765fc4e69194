def token_entropies(logits):
    log_probs = logits.log_softmax(dim=-1)
    probs = log_probs.exp()
    return -(probs * log_probs.masked_fill(probs == 0, 0)).sum(dim=-1)


def entropy_bonus(logits, mask, coefficient, temperature, aggregate, top_share):
    logits = logits.masked_fill(~mask.unsqueeze(-1), 0)  # NaN * 0 is NaN, in backward too
    entropies = token_entropies(logits / temperature)
    if top_share is not None and mask.any():
        threshold = entropies[mask].quantile(1 - top_share)
        mask = mask & (entropies >= threshold)
    entropies = entropies.masked_fill(~mask, 0)
    lengths = mask.sum(dim=1)
    if aggregate == "seq-mean-token-mean":
        means = entropies.sum(dim=1) / lengths.clamp(min=1)
        entropy = means.sum() / (lengths > 0).sum().clamp(min=1)
    else:
        entropy = entropies.sum() / lengths.sum().clamp(min=1)
    return {"loss": -coefficient * entropy, "entropy": entropy}
