"""A module that has a tensor on the GPU once it is imported, where there is one."""

import torch

import functions

HALF = torch.full((), 0.5, device="cuda" if torch.cuda.is_available() else "cpu")


def first(log_probs, ref_log_probs):
    log_ratio = functions.wide(log_probs) - functions.wide(ref_log_probs)
    return log_ratio.square() * HALF.to(log_ratio.device, log_ratio.dtype)


second = third = first
