"""TRL's RLOO trainer passes the check of `grpo-step`; bugs planted into it are named."""

import os
import re

import pytest
from planting import TRL, planted
from trl import RLOOConfig

from shakedown import UsageError
from shakedown.trainers import trl

RLOO = TRL.with_name("rloo_trainer.py")
NIGHT = os.environ.get("SHAKEDOWN_NIGHT") == "1"
CASES = 24 if NIGHT else 1
RIGHT = {
    "TRL's defaults": {},
    "off policy": {"steps_per_generation": 4, "gradient_accumulation_steps": 2, "beta": 0.5},
    "without a reference": {"beta": 0.0, "num_iterations": 2, "epsilon_high": 0.28},
    "several rewards": {
        "reward_weights": [2.0, 0.5], "temperature": 0.7, "mask_truncated_completions": True,
    },
}  # fmt: skip
BY_DAY = ["TRL's defaults", "penalty-added"]


def check_of(config):
    contract = trl.contract(RLOOConfig(output_dir=os.devnull, bf16=False, use_cpu=True, **config))
    return contract.settings(cases=CASES, time=60)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(config, id=name, marks=[] if name in BY_DAY else [pytest.mark.night])
        for name, config in RIGHT.items()
    ],
)
def test_trl_passes(config):
    check_of(config).check(trl.RLOO(config))


OFF_POLICY = {"steps_per_generation": 2, "beta": 0.0}
DIVERGENCE = {"beta": 0.5}
KL = "kl = (per_token_kl * completion_mask).sum(-1)"
BOUNDED = "torch.clamp(coef_1, 1 - self.epsilon_low, 1 + self.epsilon_high)"
RATIO = "log_ratio = logps - old_logps"

# Known bug: the configuration, the line, the wrong one, and how often it is there.
INTO_TRL = {
    "penalty-added": (DIVERGENCE, "rewards - self.beta * kl", "rewards + self.beta * kl"),
    "penalty-is-a-mean": (DIVERGENCE, KL, f"{KL} / completion_mask.sum(-1).clamp(min=1)"),
    "`beta` were 0": (DIVERGENCE, "rewards - self.beta * kl", "rewards"),
    "baseline: mean": (
        {"beta": 0.0}, "(grouped_sum - grouped_rewards) / (scorable_counts - 1)",
        "grouped_sum / scorable_counts",
    ),
    "baseline-missing": ({"beta": 0.0}, "advantages = rewards - baselines", "advantages = rewards"),
    "mean-log-prob-for-the-sum": (
        OFF_POLICY, RATIO,
        "log_ratio = (logps - old_logps) / completion_mask.sum(1).clamp(min=1)",
    ),
    "clipping-ignored": (OFF_POLICY, BOUNDED, "coef_1"),
    "minimum-for-maximum": (
        OFF_POLICY, "-torch.min(per_sequence_loss1, per_sequence_loss2)",
        "-torch.max(per_sequence_loss1, per_sequence_loss2)",
    ),
    "micro-batches-summed": (
        {"beta": 0.0, "gradient_accumulation_steps": 2}, "loss = per_sequence_loss.mean()",
        "loss = per_sequence_loss.mean() * self.current_gradient_accumulation_steps",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "bug", [it if it in BY_DAY else pytest.param(it, marks=pytest.mark.night) for it in INTO_TRL]
)
def test_a_planted_bug_is_found_by_name(bug):
    config, right, wrong = INTO_TRL[bug]
    module = planted(RLOO, right, wrong)
    report = check_of(config).report(trl.RLOO(config, module.RLOOTrainer))
    assert report.status == "fail"
    assert bug in str(report), f"{report}"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"normalize_advantages": True}, "normalize_advantages True is not judged yet"),
        ({"reward_clip_range": [-1, 1]}, "reward_clip_range [-1, 1] is not judged yet"),
        ({"num_generations": 1}, "num_generations 1, which leaves no other completion"),
        ({"loss_type": "grpo"}, "RLOOConfig has no `loss_type`"),
    ],
)
def test_what_cannot_be_judged_is_refused_by_name(settings, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        trl.options_of(settings, RLOOConfig)


def test_the_options_are_those_of_rloo():
    options, not_judged = trl.options_of({"learning_rate": 1e-5}, RLOOConfig)
    assert not_judged == ["learning_rate"]
    assert (options["action"], options["kl_in"], options["beta"]) == ("completion", "reward", 0.05)
