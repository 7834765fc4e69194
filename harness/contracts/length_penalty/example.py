import math

import torch


def length_penalty(lengths, shape, max_length, buffer, min, max, factor):
    if shape == "cosine":
        share = (lengths / max_length).clamp(max=1)
        rewards = min + (max - min) * (1 + torch.cos(math.pi * share)) / 2
    elif shape == "step" or buffer == 0:
        rewards = -(lengths > max_length).float()
    else:
        over = lengths - (max_length - buffer)
        rewards = -(over / buffer).clamp(min=0)
        if shape == "linear-overlong":
            rewards = rewards.clamp(min=-1)
    return factor * rewards
