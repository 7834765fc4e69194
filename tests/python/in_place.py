"""Estimates of a KL in torch that write to their inputs, one of them with a wrong gradient."""


def k3(log_probs, ref_log_probs):
    log_probs -= ref_log_probs
    return (-log_probs).exp() - 1 + log_probs


def k3_with_a_wrong_gradient(log_probs, ref_log_probs):
    return k3(log_probs, ref_log_probs) + log_probs - log_probs.detach()


def asks_for_the_gradient_itself(log_probs, ref_log_probs):
    """Right, and the gradient of what it was given is there for it as it is on a leaf."""
    d = log_probs - ref_log_probs
    kl = (-d).exp() - 1 + d
    if kl.requires_grad:
        assert log_probs.grad is None
        kl.sum().backward(retain_graph=True)
        assert log_probs.grad.shape == log_probs.shape
        log_probs.grad = None
    return kl
