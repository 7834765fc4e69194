import torch


def whitened(advantages, mask):
    kept = advantages[mask]
    if len(kept) < 2:
        return torch.zeros_like(advantages)
    scaled = (advantages - kept.mean()) / (kept.var() + 1e-8).sqrt()
    return scaled.where(mask, 0.0)


def estimated(rewards, values, mask, gamma=1.0, lam=0.95):
    advantages = torch.zeros_like(rewards)
    carried = next_values = rewards.new_zeros(len(rewards))
    for step in reversed(range(rewards.shape[1])):
        counts = mask[:, step]
        delta = rewards[:, step] + gamma * next_values - values[:, step]
        advantages[:, step] = delta + gamma * lam * carried
        carried = torch.where(counts, advantages[:, step], carried)
        next_values = torch.where(counts, values[:, step], next_values)
    return advantages.where(mask, 0.0)


def gae(rewards, values, mask, gamma, lam, whiten):
    advantages = estimated(rewards, values, mask, gamma, lam)
    returns = (advantages + values).where(mask, 0.0)
    if whiten:
        advantages = whitened(advantages, mask)
    return advantages, returns
