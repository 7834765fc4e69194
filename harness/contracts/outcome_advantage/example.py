import torch


def outcome_advantage(token_rewards, mask, groups, ddof, epsilon, empty_rows):
    outcomes = (token_rewards * mask).sum(dim=1)
    counted = mask.any(dim=1) | (empty_rows == "count")
    advantages = torch.zeros_like(outcomes)
    for group in groups.unique():
        rows = (groups == group) & counted
        own = outcomes[rows]
        if len(own) < 2:
            continue
        centred = own - own[0]  # equal outcomes leave no rounding error
        centred = centred - centred.mean()
        advantages[rows] = centred / (own.std(correction=ddof) + epsilon)
    return advantages[:, None] * mask
