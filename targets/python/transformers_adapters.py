"""The logits processors of transformers, under the names of the contracts.

Nothing is copied from the library. Ours: the order in which `generate` applies them, and the
softmax that it draws from.
"""

import torch
from transformers.generation import logits_process


def probs(logits, temperature, top_k, top_p, min_p, min_keep):
    if temperature != 1.0:
        logits = logits_process.TemperatureLogitsWarper(temperature)(None, logits)
    keep = {"min_tokens_to_keep": min_keep}
    if top_k is not None:
        logits = logits_process.TopKLogitsWarper(top_k, **keep)(None, logits)
    if top_p is not None:
        logits = logits_process.TopPLogitsWarper(top_p, **keep)(None, logits)
    if min_p is not None:
        logits = logits_process.MinPLogitsWarper(min_p, **keep)(None, logits)
    return torch.softmax(logits, -1)
