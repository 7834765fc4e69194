import torch


def returns(rewards, mask, gamma):
    rewards = rewards.masked_fill(~mask, 0)
    returns = torch.zeros_like(rewards)
    ahead = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        own = rewards[:, t] + gamma * ahead
        ahead = torch.where(mask[:, t], own, ahead)
        returns[:, t] = ahead
    return returns.masked_fill(~mask, 0)
