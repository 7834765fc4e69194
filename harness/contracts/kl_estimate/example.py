import torch


def kl_estimate(log_probs, ref_log_probs, estimator, log_ratio_clamp, clamp, gradient):
    log_ratio = log_probs - ref_log_probs
    gap = log_ratio
    if log_ratio_clamp is not None:
        gap = log_ratio.clamp(-log_ratio_clamp, log_ratio_clamp)
    if estimator == "k1":
        kl = gap
    elif estimator == "k2":
        kl = gap**2 / 2
    elif estimator == "k3":
        kl = torch.expm1(-gap) + gap
    else:
        kl = gap.abs()
    if clamp is not None:
        kl = kl.clamp(*clamp)
    if gradient == "k2":
        surrogate = log_ratio**2 / 2
        kl = kl.detach() + (surrogate - surrogate.detach())
    return kl
