import torch


def group_advantage(rewards, groups, baseline, scale, ddof, epsilon):
    advantages = torch.zeros_like(rewards)
    for group in groups.unique():
        rows = (groups == group) & ~rewards.isnan()
        own = rewards[rows]
        if len(own) < 2:
            continue
        centred = own - own[0]  # equal rewards leave no rounding error
        centred = centred - centred.mean()
        if baseline == "leave-one-out":
            centred = centred * len(own) / (len(own) - 1)
        if scale == "std":
            centred = centred / (own.std(correction=ddof) + epsilon)
        advantages[rows] = centred
    return advantages
