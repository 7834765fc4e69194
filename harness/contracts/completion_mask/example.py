import torch


def completion_mask(tokens, eos, pad, unfinished):
    is_eos = torch.isin(tokens, torch.tensor(eos, device=tokens.device))
    finished = is_eos.any(dim=1, keepdim=True)
    mask = is_eos.cumsum(dim=1) - is_eos.long() == 0
    if unfinished == "all":
        return mask
    if unfinished == "drop":
        return mask & finished
    padding = (tokens == pad).flip(1).cumprod(dim=1).flip(1).bool()
    return torch.where(finished, mask, ~padding)
