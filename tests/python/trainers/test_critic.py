"""Training of PPO's critic by hand, against the definition in plain torch; and bugs planted into
it."""

import os

import by_hand_critic
import definition
import pytest
import torch
from definition import EOS, PAD, critic_case, is_passed, is_right
from planting import CRITIC_BY_HAND, by_day, must_be_found, planted
from transformers import AutoModelForTokenClassification

import shakedown
from shakedown import UsageError
from shakedown.trainers.puppets import CriticPuppet

CASES = 48 if os.environ.get("SHAKEDOWN_NIGHT") == "1" else 1
SHAPES = [
    {"epochs": 1, "mini_batches": 1, "accumulation": 1},
    {"epochs": 2, "mini_batches": 2, "accumulation": 2},
    {"epochs": 1, "mini_batches": 1, "accumulation": 4},
]


def train(module, puppet, *options):
    for rows in puppet.rollouts:
        module.Trainer(puppet, *options).train(rows)


@pytest.mark.parametrize("cut", SHAPES, ids=str)
@pytest.mark.parametrize("given", [False, True], ids=["gae", "given"])
def test_a_trainer_by_hand_gives_the_gradients_of_the_definition(given, cut):
    for seed, clip in enumerate([None, 0.2]):
        case = critic_case(seed, updates=cut["epochs"] * cut["mini_batches"], given=given)
        puppet = CriticPuppet(*case, eos=EOS, pad=PAD, **cut)
        train(by_hand_critic, puppet, 0.9, 0.95, 0.1, clip)
        outputs = puppet.outputs()
        chosen = outputs["micro_batches"]
        assert chosen.shape[1] == cut["accumulation"]
        assert is_right(outputs, definition.critic(case, chosen, gamma=0.9, clip=clip))
        assert is_passed(outputs, 8, cut["mini_batches"])


def test_a_value_is_that_of_the_state_behind_a_token():
    tokens, mask = torch.tensor([[3, 4], [1, 0]]), torch.tensor([[True, True], [True, False]])
    values = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    puppet = CriticPuppet(tokens, mask, values, torch.zeros(2), eos=1, pad=0)
    unknown = -20.0
    ids = torch.tensor([[0, 2, 3, 3, 4], [2, 2, 3, 1, 0]])
    seen = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 1, 0]])
    # Behind an end, and behind the pads there, is the value of the whole completion.
    expected = [
        [unknown, unknown, 1.0, 2.0, unknown],
        [unknown, unknown, 3.0, 4.0, 4.0],
    ]
    assert puppet.values(ids, seen).tolist() == expected
    assert puppet.model(ids, seen).logits[..., 0].tolist() == expected
    hidden = puppet.model.model(ids, seen).hidden_states[-1]
    assert puppet.model.score(hidden).tolist() == puppet.model(ids, seen).logits.tolist()


def test_a_critic_is_built_from_its_folder(tmp_path):
    puppet = CriticPuppet(*critic_case(0, updates=1), eos=EOS, pad=PAD)
    puppet.model.save_pretrained(tmp_path)
    model = AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert type(model) is type(puppet.model)


def test_rollouts_have_what_the_case_has():
    tokens, mask = torch.tensor([[3, 4], [1, 0]]), torch.tensor([[True, True], [True, False]])
    values = torch.arange(8.0).view(2, 2, 2)
    cut = {"eos": 1, "pad": 0, "generations": 2}
    scored = CriticPuppet(tokens, mask, values, torch.tensor([1.0, 2.0]), **cut)
    assert scored.rollouts == [
        [{
            "prompt_ids": [2, 3], "completion_ids": [3, 4], "mask": [1, 1],
            "old_values": [0.0, 1.0], "score": 1.0,
        }],
        [{
            "prompt_ids": [2, 2, 3], "completion_ids": [1], "mask": [1],
            "old_values": [6.0], "score": 2.0,
        }],
    ]  # fmt: skip
    given = CriticPuppet(tokens, mask, values, None, None, torch.ones(2, 2), **cut)
    assert given.rollouts[1][0].keys() == {
        "prompt_ids", "completion_ids", "mask", "old_values", "returns",
    }  # fmt: skip


def test_what_does_not_fit_is_refused():
    tokens, mask, values, scores, _, _ = critic_case(0, updates=1)
    with pytest.raises(UsageError, match=r"^8 completions cannot be split evenly into 3 genera"):
        CriticPuppet(tokens, mask, values, scores, eos=EOS, pad=PAD, generations=3)
    with pytest.raises(UsageError, match=r"^2 updates are declared, and there are values of 1$"):
        CriticPuppet(tokens, mask, values, scores, eos=EOS, pad=PAD, epochs=2)
    with pytest.raises(UsageError, match=r"^scores are \[7\], expected \[8\]$"):
        CriticPuppet(tokens, mask, values, scores[:7], eos=EOS, pad=PAD)


# By the check.


DECLARED = {"gamma": 0.9, "beta": 0.1, "clip": 0.2, "epochs": 2, "mini_batches": 2}


def by_hand(module):
    def mine(puppet, gamma, lam, beta, clip):
        train(module, puppet, gamma, lam, beta, clip)

    return mine


@pytest.mark.parametrize(
    "options",
    [DECLARED, {**DECLARED, "holes": True, "generations": 2, "accumulation": 2},
     {"targets": "given", "clip": 0.5, "epochs": 2}],
    ids=["gae", "holes", "given"],
)  # fmt: skip
def test_a_trainer_by_hand_passes(options):
    contract = shakedown.CriticStep(**options)
    settings = {"cases": CASES, "time": None, "places": ["cpu/f32", "cpu/f64"]}
    contract.settings(**settings).check(by_hand(by_hand_critic))
