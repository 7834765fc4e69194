"""What every part of the training must do, and that the whole of it learns."""

import pytest

import grpo
import rewards
import shakedown
import train


@pytest.fixture
def settings():
    return train.Settings()


@pytest.mark.parametrize("eos", [[train.EOS], [train.EOS, 7]])
@shakedown.contract("completion-mask", pad=train.PAD, unfinished="all")
def test_completion_mask(tokens, eos):
    return grpo.completion_mask(tokens, eos)


@shakedown.contract("answer-extractor", format="xml-tag", tag="answer", pick="last")
def test_extract_answer(texts):
    return [rewards.extract_answer(text) for text in texts]


@shakedown.contract(
    "reward-function", judges="correctness", template="{reasoning}<answer>{answer}</answer>"
)
def test_correctness(prompts, completions, answers):
    return rewards.correctness(prompts, completions, answers)


@shakedown.contract("group-advantage", baseline="mean", scale="std", ddof=1, epsilon=1e-4)
def test_group_advantages(settings, rewards, groups):
    return grpo.group_advantages(rewards, groups, settings.epsilon)


@pytest.mark.parametrize("temperature", [1.0, 0.9])
@shakedown.contract("token-log-probs").settings(places=["cpu/f32", "cpu/bf16"])
def test_token_log_probs(logits, tokens, temperature):
    return grpo.token_log_probs(logits, tokens, temperature)


@shakedown.contract("kl-estimate", estimator="k3")
def test_kl_estimate(log_probs, ref_log_probs):
    return grpo.kl_estimate(log_probs, ref_log_probs)


@shakedown.contract(
    "policy-loss",
    clip_low=0.2,
    clip_high=0.28,
    beta=0.01,
    aggregate="token-mean",
    advantage_shape="row",
).settings(places=["cpu/f32", "cpu/f64"])
def test_policy_loss(settings, log_probs, old_log_probs, advantages, mask, ref_log_probs):
    clips = settings.clip_low, settings.clip_high
    return grpo.policy_loss(
        log_probs, old_log_probs, advantages, mask, ref_log_probs, *clips, settings.beta
    )


@pytest.fixture(scope="module")
def history():
    return train.train(train.Settings())


def test_training_improves_the_reward(history):
    assert history[0]["reward"] < 0.3
    assert history[-1]["reward"] > 0.8


def test_the_run_is_sound(history):
    shakedown.check_run(history, skip={"learning-rate-high": "a table, no network"}).verify()
