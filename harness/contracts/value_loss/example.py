import torch


def value_loss(values, old_values, returns, mask, clip, factor):
    values, old_values, returns = values[mask], old_values[mask], returns[mask]
    errors = (values - returns) ** 2
    clipped = torch.zeros_like(errors)
    if clip is not None:
        low, high = old_values - clip, old_values + clip
        held = values.clamp(low, high)
        held_errors = (held - returns) ** 2
        clipped = (held_errors > errors).to(errors.dtype)
        errors = torch.maximum(errors, held_errors)
    count = max(len(errors), 1)  # no token at all: a loss of 0
    loss = factor * errors.sum() / count
    return {"loss": loss, "clip_fraction": clipped.sum() / count}
