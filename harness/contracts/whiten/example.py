import torch


def masked_sum(values, mask, rows):
    values = torch.where(mask, values, 0.0)
    return values.sum(dim=1, keepdim=True) if rows == "independent" else values.sum()


def whiten(values, mask, ddof, epsilon, shift_mean, empty_mask, rows):
    count = masked_sum(torch.ones_like(values), mask, rows)
    if empty_mask == "refuse" and (count <= ddof).any():
        raise ValueError("too few tokens for a deviation")
    mean = masked_sum(values, mask, rows) / count.clamp(min=1)
    squares = masked_sum((values - mean) ** 2, mask, rows)
    variance = squares / (count - ddof).clamp(min=1)
    whitened = (values - mean) * torch.rsqrt(variance + epsilon)
    if not shift_mean:
        whitened = whitened + mean
    return torch.where(mask, whitened, 0.0)
