"""The functions of an installed Stable-Baselines3, under the names of the contracts.

Nothing is copied from the library: its buffer computes advantages, and the losses are the lines of
`PPO.train`, which `statements` runs from the installed file. It has no padding, so the losses get
the tokens under the mask in one row.
"""

from types import SimpleNamespace

import numpy as np
from gymnasium import spaces
from library import statements
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer


def rollout_gae(rewards, values, dones, last_values, last_dones, gamma, lam):
    """`RolloutBuffer.compute_returns_and_advantage`; `dones` are its episode starts."""
    steps, environments = rewards.shape
    nothing = spaces.Box(0, 1, (1,))
    buffer = RolloutBuffer(steps, nothing, nothing, "cpu", lam, gamma, environments)
    buffer.rewards[:] = rewards
    buffer.values[:] = values
    buffer.episode_starts[:] = dones
    buffer.compute_returns_and_advantage(last_values, np.asarray(last_dones))
    return buffer.advantages, buffer.returns


LOSSES = statements(PPO.train, "advantages", "loss", ("policy_loss", "value_loss"))


def losses(
    log_probs=None,
    old_log_probs=None,
    advantages=None,
    values=None,
    old_values=None,
    returns=None,
    clip=None,
    clip_values=None,
    mask=None,
):
    """The policy loss and the value loss of one minibatch, without normalised advantages."""
    given = {
        "log_prob": log_probs,
        "old_log_prob": old_log_probs,
        "advantages": advantages,
        "values": values,
        "old_values": old_values,
        "returns": returns,
    }
    zeros = next(x for x in given.values() if x is not None).detach()[mask] * 0
    rows = {name: zeros if x is None else x[mask] for name, x in given.items()}
    logs = "pg_losses", "clip_fractions", "value_losses", "entropy_losses"
    return LOSSES(
        self=SimpleNamespace(normalize_advantage=False, clip_range_vf=clip_values),
        advantages=rows["advantages"],
        clip_range=clip,
        clip_range_vf=clip_values,
        entropy=zeros,
        log_prob=rows["log_prob"],
        rollout_data=SimpleNamespace(**rows),
        values=rows["values"],
        **{name: [] for name in logs},
    )


def policy_loss(log_probs, old_log_probs, advantages, mask, clip_low):
    """The clipped objective. Its clip fraction is one of ratios, whatever the advantage."""
    policy, _ = losses(log_probs, old_log_probs, advantages, clip=clip_low, mask=mask)
    return {"loss": policy}


def value_loss(values, old_values, returns, mask, clip):
    """The value loss, which clips the step and takes no maximum."""
    inputs = {"values": values, "old_values": old_values, "returns": returns}
    _, value = losses(**inputs, clip=0.2, clip_values=clip, mask=mask)
    return {"loss": value}
