import torch
import torch.nn.functional as F


def log_odds(log_prob):
    return log_prob - torch.log1p(-log_prob.exp())


def pair_objective(
    policy_chosen,
    policy_rejected,
    ref_chosen,
    ref_rejected,
    chosen_lengths,
    rejected_lengths,
    kind,
    beta,
    gamma,
    label_smoothing,
):
    if kind in ("orpo", "simpo"):
        chosen, rejected = policy_chosen / chosen_lengths, policy_rejected / rejected_lengths
    else:
        chosen, rejected = policy_chosen - ref_chosen, policy_rejected - ref_rejected
    chosen_reward, rejected_reward = beta * chosen, beta * rejected
    if kind == "sigmoid-norm":
        chosen, rejected = chosen / chosen_lengths, rejected / rejected_lengths
    if kind == "orpo":
        losses = -chosen - beta * F.logsigmoid(log_odds(chosen) - log_odds(rejected))
    elif kind == "bco-pair":
        losses = -F.logsigmoid(chosen_reward) - F.logsigmoid(-rejected_reward)
    elif kind == "nca":
        push, pull = F.logsigmoid(chosen_reward), F.logsigmoid(-chosen_reward)
        losses = -push - 0.5 * pull - 0.5 * F.logsigmoid(-rejected_reward)
    else:
        margin = beta * (chosen - rejected)
        if kind == "simpo":
            margin = margin - gamma
        right, exchanged = F.logsigmoid(margin), F.logsigmoid(-margin)
        losses = -(1 - label_smoothing) * right - label_smoothing * exchanged
    return {"losses": losses, "chosen_rewards": chosen_reward, "rejected_rewards": rejected_reward}
