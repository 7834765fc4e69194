"""The functions of an installed TorchRL, under the names of the contracts.

Nothing is copied from the library. What is ours are names, shapes, TensorDicts around the inputs,
and what each docstring says more.
"""

from types import SimpleNamespace

import torch
from tensordict import TensorDict
from torchrl.objectives import utils
from torchrl.objectives.llm import CISPOLoss, GRPOLoss, MCAdvantage
from torchrl.objectives.value import functional


def rollout(estimator, rewards, values, dones, last_values, gamma, lam):
    """Values of the next steps as its modules get them; an episode that ends is terminated."""
    next_values = torch.cat([values[1:], last_values.unsqueeze(0)])
    return estimator(gamma, lam, values, next_values, rewards, dones, dones)


def rollout_gae(rewards, values, dones, last_values, gamma, lam):
    """`generalized_advantage_estimate`; environments are features of one rollout."""
    estimator = functional.generalized_advantage_estimate
    return rollout(estimator, rewards, values, dones, last_values, gamma, lam)


def vec_rollout_gae(rewards, values, dones, last_values, gamma, lam):
    """`vec_generalized_advantage_estimate`, the default of its modules."""
    estimator = functional.vec_generalized_advantage_estimate
    return rollout(estimator, rewards, values, dones, last_values, gamma, lam)


def returns(rewards, mask, gamma):
    """`reward2go`. Ours: zeros in the padding, as it takes no mask."""
    done = torch.zeros_like(mask)
    done[:, -1] = True
    return functional.reward2go(rewards.where(mask, 0.0), done, gamma, time_dim=-1)


def mc_advantage(rewards, groups):
    """`MCAdvantage` with trajectory returns. Ours: trajectories of one step."""
    size = len(rewards) // len(groups.unique())
    transform = MCAdvantage(size, prompt_key="group", trajectory_return="sum")
    data = TensorDict(
        {
            "group": groups.unsqueeze(1),
            "row": torch.arange(len(rewards)).unsqueeze(1),
            ("next", "reward"): rewards.view(-1, 1, 1),
            ("next", "done"): torch.ones(len(rewards), 1, 1, dtype=torch.bool),
        },
        batch_size=[len(rewards), 1],
    )
    written = transform._inv_call(data)
    advantages = torch.empty_like(rewards)
    advantages[written["row"].flatten()] = written["advantage"].flatten()
    return advantages


class Actor(torch.nn.Module):
    """A policy whose distribution has the log-probabilities of the case."""

    def __init__(self, log_probs, mask):
        super().__init__()
        self.distribution = SimpleNamespace(mask=mask, log_prob=lambda _: log_probs)

    def get_dist(self, *_, **__):
        return self.distribution


def policy_loss(
    loss, log_probs, old_log_probs, advantages, mask, ref_log_probs, clip, beta, aggregate
):
    """The whole forward pass of a loss without the entropy bonus: objective plus KL."""
    module = loss(
        Actor(log_probs, mask),
        clip_epsilon=clip,
        aggregation={"token-mean": "token_mean", "seq-mean-token-mean": "prompt_mean"}[aggregate],
        entropy_bonus=False,
        kl_to_ref_coeff=beta or None,
    )
    data = {
        ("tokens", "full"): torch.zeros_like(mask, dtype=torch.long),
        ("log_probs", "full"): old_log_probs,
        "advantage": advantages.unsqueeze(-1),
    }
    if beta:
        data["next", "ref_log_probs", "full"] = ref_log_probs
    outputs = module(TensorDict(data, batch_size=mask.shape[:1]))
    objective = outputs.loss_objective.squeeze()  # `prompt_mean` leaves a dimension
    if beta:
        return {"loss": objective + outputs.loss_kl_to_ref, "kl": outputs.kl_to_ref}
    return {"loss": objective}


def grpo(
    log_probs, old_log_probs, advantages, mask, ref_log_probs, clip_low, clip_high, beta, aggregate
):
    """`GRPOLoss`. Its clip fraction is one of ratios, whatever the advantage."""
    inputs = log_probs, old_log_probs, advantages, mask, ref_log_probs
    return policy_loss(GRPOLoss, *inputs, (clip_low, clip_high), beta, aggregate)


def cispo(
    log_probs, old_log_probs, advantages, mask, ref_log_probs, clip_low, clip_high, beta, aggregate
):
    """`CISPOLoss`."""
    inputs = log_probs, old_log_probs, advantages, mask, ref_log_probs
    return policy_loss(CISPOLoss, *inputs, (clip_low, clip_high), beta, aggregate)


def value_loss(values, old_values, returns, mask, clip):
    """Those of `ClipPPOLoss.loss_critic`: `distance_loss`, `_clip_value_loss`, `_reduce`."""
    losses = utils.distance_loss(returns, values, loss_function="l2")
    if clip is not None:
        bound = torch.tensor(clip)
        losses, _ = utils._clip_value_loss(old_values, values, bound, returns, losses, "l2")
    return {"loss": utils._reduce(losses, "mean", mask=mask)}
