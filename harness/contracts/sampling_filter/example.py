import torch


def sampling_filter(logits, temperature, top_k, top_p, min_p, order):
    early, late = (temperature, 1.0) if order == "temperature-first" else (1.0, temperature)
    filtered = logits / early
    if top_k is not None:
        kth = filtered.topk(min(top_k, filtered.shape[-1])).values[:, -1:]
        filtered = filtered.masked_fill(filtered < kth, -torch.inf)
    if top_p is not None:
        ranked, tokens = filtered.sort(dim=-1, descending=True)
        probs = ranked.softmax(dim=-1)
        mass = probs.cumsum(dim=-1) - probs  # of the likelier tokens
        beyond = (mass >= top_p) & (mass > 0)
        filtered = filtered.masked_fill(beyond.scatter(-1, tokens, beyond), -torch.inf)
    if min_p is not None:
        probs = filtered.softmax(dim=-1)
        least = min_p * probs.amax(dim=-1, keepdim=True)
        filtered = filtered.masked_fill(probs < least, -torch.inf)
    return (filtered / late).softmax(dim=-1)
