import torch


def standardised(scores):
    if len(scores) < 2:
        return torch.zeros_like(scores)
    centred = scores - scores[0]  # equal scores leave no rounding error
    centred = centred - centred.mean()
    return centred / (scores.std() + 1e-4)


def standardised_in_groups(rewards, groups):
    scores = rewards.clone()
    for group in groups.unique():
        for k in range(rewards.shape[1]):
            rows = (groups == group) & ~rewards[:, k].isnan()
            scores[rows, k] = standardised(rewards[rows, k])
    return scores


def weighted_sum(scores, weights):
    total = torch.zeros_like(scores[:, 0])
    for k, weight in enumerate(weights):
        total += weight * scores[:, k].nan_to_num()
    return total


def combine_rewards(rewards, groups, weights, weight_norm, normalise, final):
    weights = weights or [1.0] * rewards.shape[1]
    if weight_norm == "sum":
        weights = [weight / sum(weights) for weight in weights]
    combined = weighted_sum(rewards, weights)
    if normalise == "group":
        combined = weighted_sum(standardised_in_groups(rewards, groups), weights)
    scored = ~rewards.isnan().all(dim=1)
    if final == "add":
        combined[scored] = standardised(combined[scored])
    return {
        "combined": combined.where(scored, torch.nan),
        "reward_mean": weighted_sum(rewards, weights)[scored].mean(),
        "function_means": rewards.nanmean(dim=0),
    }
