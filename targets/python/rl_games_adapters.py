"""The functions of an installed rl_games, under the names of the contracts.

Nothing is copied from the library. What is ours are names, shapes (it works on columns), and what
each docstring says more.
"""

from types import SimpleNamespace

import torch  # noqa: F401 - imported once for all workers
from rl_games.algos_torch import torch_ext
from rl_games.common import common_losses
from rl_games.common.a2c_common import A2CBase


def rollout_gae(rewards, values, dones, last_values, last_dones, gamma, lam):
    """`A2CBase.discount_values`; returns are advantages plus values, as `play_steps` has them."""
    self = SimpleNamespace(gamma=gamma, horizon_length=len(rewards), tau=lam)
    dones, last_dones = dones.to(rewards.dtype), last_dones.to(rewards.dtype)
    columns = last_values.unsqueeze(-1), dones, values.unsqueeze(-1), rewards.unsqueeze(-1)
    advantages = A2CBase.discount_values(self, last_dones, *columns).squeeze(-1)
    return advantages, advantages + values


def whiten(values, mask):
    """`normalization_with_masks`, for recurrent policies. Its mean and variance are masked."""
    return torch_ext.normalization_with_masks(values, mask.to(values.dtype))


def policy_loss(log_probs, old_log_probs, advantages, mask, objective, clip_low):
    """`actor_loss` and `apply_masks`, for recurrent policies, from negated log-probabilities."""
    losses = common_losses.actor_loss(
        -old_log_probs, -log_probs, advantages, objective == "ppo-clip", clip_low
    )
    return {"loss": masked(losses, mask)}


def value_loss(values, old_values, returns, mask, clip):
    """`critic_loss` and `apply_masks`."""
    losses = common_losses.critic_loss(
        None, old_values, values, clip or 0.2, returns, clip is not None
    )
    return {"loss": masked(losses, mask)}


def masked(losses, mask):
    """The mean of `apply_masks`, of a column of steps and the mask as a vector."""
    [loss], _ = torch_ext.apply_masks([losses.flatten().unsqueeze(1)], mask.flatten())
    return loss
