import torch


def token_log_probs(logits, tokens, temperature, shift):
    if shift == "next":
        logits, tokens = logits[:, :-1], tokens[:, 1:]
    scaled = logits / temperature
    log_probs = torch.log_softmax(scaled, dim=-1)
    return log_probs.gather(-1, tokens[..., None]).squeeze(-1)
