def token_entropy(logits, temperature):
    logits = logits / temperature
    log_probs = logits - logits.logsumexp(dim=-1, keepdim=True)
    probs = log_probs.exp()
    terms = probs * log_probs.masked_fill(probs == 0, 0)  # not 0 * -inf
    return -terms.sum(dim=-1)
