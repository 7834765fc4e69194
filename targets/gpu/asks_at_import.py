"""A module that only asks for a GPU when it is imported: nothing forked after can use one."""

import torch

import functions

IS_THERE = torch.cuda.is_available()


def follows(log_probs, ref_log_probs):
    return (functions.wide(log_probs) - functions.wide(ref_log_probs)).square() / 2


def moves(log_probs, ref_log_probs):
    return follows(log_probs.cuda(), ref_log_probs.cuda())
