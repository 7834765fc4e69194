import torch


def token_rewards(
    scores, log_probs, ref_log_probs, mask, finished, beta, unfinished, penalty, empty_mask
):
    if empty_mask == "refuse" and not mask.any():
        raise ValueError("no token counts")
    if unfinished == "subtract":
        scores = torch.where(finished, scores, scores - penalty)
    kl = torch.where(mask, log_probs - ref_log_probs, 0.0)
    steps = torch.arange(mask.shape[1])
    last = (steps * mask).argmax(dim=1, keepdim=True)
    ends = mask & (steps == last)
    rewards = ends * scores[:, None] - beta * kl
    return {"rewards": rewards, "kl": kl.sum() / mask.sum().clamp(min=1)}
