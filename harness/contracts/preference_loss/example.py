import torch.nn.functional as F


def preference_loss(
    policy_chosen,
    policy_rejected,
    ref_chosen,
    ref_rejected,
    kind,
    beta,
    label_smoothing,
    reference_free,
):
    margins = policy_chosen - policy_rejected
    if not reference_free:
        margins = margins - (ref_chosen - ref_rejected)
    z = beta * margins
    if kind == "ipo":
        losses = (margins - 1 / (2 * beta)) ** 2
    elif kind == "hinge":
        losses = F.relu(1 - z)
    else:
        right, exchanged = F.logsigmoid(z), F.logsigmoid(-z)
        losses = -(1 - label_smoothing) * right - label_smoothing * exchanged
    return {
        "losses": losses,
        "chosen_rewards": beta * (policy_chosen - ref_chosen).detach(),
        "rejected_rewards": beta * (policy_rejected - ref_rejected).detach(),
    }
