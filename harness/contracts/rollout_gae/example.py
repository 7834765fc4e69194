import torch


def rollout_gae(rewards, values, dones, last_values, last_dones, gamma, lam, done_convention):
    ended = dones
    if done_convention == "before":
        ended = torch.cat([dones[1:], last_dones[None]])
    advantages, returns = torch.zeros_like(rewards), torch.zeros_like(rewards)
    carried = torch.zeros_like(last_values)
    next_values = last_values
    for step in reversed(range(len(rewards))):
        goes_on = ~ended[step]
        delta = rewards[step] + gamma * next_values * goes_on - values[step]
        carried = delta + gamma * lam * carried * goes_on
        advantages[step] = carried
        returns[step] = advantages[step] + values[step]
        next_values = values[step]
    return advantages, returns
