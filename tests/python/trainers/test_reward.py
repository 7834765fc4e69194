"""Training of reward models, by TRL and by hand, against the definition in plain torch; and bugs
planted into both."""

import os
import re

import by_hand_reward
import definition
import pytest
import torch
from definition import EOS, PAD, is_passed, is_right, scores_case
from planting import REWARD, REWARD_BY_HAND, by_day, must_be_found, planted
from transformers import AutoConfig
from trl import RewardConfig, RewardTrainer

import shakedown
from shakedown import UsageError
from shakedown.trainers.puppets import RewardModelPuppet
from shakedown.trainers.trl import RewardModel, options_of

CASES = 48 if os.environ.get("SHAKEDOWN_NIGHT") == "1" else 1
SHAPES = [
    {"epochs": 1, "mini_batches": 1, "accumulation": 1},
    {"epochs": 2, "mini_batches": 2, "accumulation": 1},
    {"epochs": 2, "mini_batches": 2, "accumulation": 2},
    {"epochs": 1, "mini_batches": 1, "accumulation": 4},
]


def a_case(seed, cut, **others):
    return scores_case(seed, updates=cut["epochs"] * cut["mini_batches"], **others)


@pytest.mark.parametrize("cut", SHAPES, ids=str)
@pytest.mark.parametrize("margins", [False, True], ids=["no margins", "margins"])
@pytest.mark.parametrize("config", [{}, {"pad_to_multiple_of": 8}], ids=str)
def test_trl_gives_the_gradients_of_the_definition(config, margins, cut):
    run = RewardModel(config)
    for seed, center in enumerate([0.0, 0.1]):
        case = a_case(seed, cut, width=3 + seed, margins=margins)
        outputs = run.train(*case, center=center, **cut)
        assert is_right(outputs, definition.reward_model(case, outputs["micro_batches"], center))
        assert is_passed(outputs, 16, cut["mini_batches"])


@pytest.mark.parametrize("cut", SHAPES, ids=str)
def test_a_trainer_by_hand_gives_them_too(cut):
    for seed, margins in enumerate([False, True]):
        case = a_case(seed, cut, margins=margins)
        puppet = RewardModelPuppet(*case, eos=EOS, pad=PAD, **cut)
        by_hand_reward.Trainer(puppet, 0.1).train()
        outputs = puppet.outputs()
        assert outputs["micro_batches"].shape[1] == cut["accumulation"]
        assert is_right(outputs, definition.reward_model(case, outputs["micro_batches"], 0.1))
        assert is_passed(outputs, 16, cut["mini_batches"])


def test_where_the_pad_is_the_end_transformers_takes_the_token_before_it():
    tokens = torch.tensor([[[3, EOS, EOS], [3, 4, EOS]], [[4, 4, EOS], [5, EOS, EOS]]])
    case = tokens, torch.randn(1, 2, 2, 3), None
    outputs = RewardModel().train(*case, pad=EOS, center=0.0, **SHAPES[0])
    before = definition.reward_model(case, outputs["micro_batches"], before_the_end=1)
    assert is_right(outputs, before)
    assert not is_right(outputs, definition.reward_model(case, outputs["micro_batches"]))


def test_examples_are_words_and_ids():
    tokens = torch.tensor([[[3, 4, 1], [1, 0, 0]], [[4, 1, 0], [4, 3, 1]]])
    puppet = RewardModelPuppet(
        tokens, torch.zeros(1, 2, 2, 3), torch.tensor([0.5, 0.0]), eos=1, pad=0
    )
    assert puppet.examples == [
        {
            "prompt": "t02 t03", "chosen": " t03 t04", "rejected": "", "prompt_ids": [2, 3],
            "chosen_ids": [3, 4, 1], "rejected_ids": [1], "margin": 0.5,
        },
        {
            "prompt": "t02 t02 t03", "chosen": " t04", "rejected": " t04 t03",
            "prompt_ids": [2, 2, 3], "chosen_ids": [4, 1], "rejected_ids": [4, 3, 1],
            "margin": 0.0,
        },
    ]  # fmt: skip
    assert "margin" not in RewardModelPuppet(tokens, torch.zeros(1, 2, 2, 3), eos=1, pad=0).examples


def test_each_visible_token_has_its_score_and_each_pad_behind_an_end():
    tokens = torch.tensor([[[3, 1, 0], [3, 4, 1]]])
    scores = torch.tensor([[[[1.0, 2.0, 3.0], [9.0, 5.0, 6.0]]]])
    puppet = RewardModelPuppet(tokens, scores, eos=1, pad=0)
    unknown = -20.0
    ids = torch.tensor([[2, 3, 3, 1, 0, 0], [2, 3, 3, 4, 1, 0], [0, 2, 3, 3, 4, 1]])
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0], [0, 1, 1, 1, 1, 1]])
    # The first token of both is one prefix, whose score is that of the chosen completion.
    assert puppet.scores(ids, mask).tolist() == [
        [unknown, unknown, 1.0, 2.0, 3.0, unknown],
        [unknown, unknown, 1.0, 5.0, 6.0, unknown],
        [unknown, unknown, unknown, 1.0, 5.0, 6.0],
    ]
    assert puppet.model(ids, mask).logits.tolist() == [[2.0], [6.0], [6.0]]
    assert puppet.model(ids[2:]).logits.tolist() == [[unknown]]  # without a mask pads are seen
    assert AutoConfig.for_model("shakedown-puppet").num_labels == 1


def test_what_does_not_fit_is_refused():
    tokens, scores, _ = scores_case(0, updates=1)
    with pytest.raises(UsageError, match=r"^8 pairs cannot be split evenly into 3 mini-batches of"):
        RewardModelPuppet(*scores_case(0, updates=3), eos=EOS, pad=PAD, mini_batches=3)
    with pytest.raises(UsageError, match=r"^2 updates are declared, and there are scores of 1$"):
        RewardModelPuppet(tokens, scores, eos=EOS, pad=PAD, epochs=2)
    with pytest.raises(UsageError, match=r"^margins are \[7\], expected \[8\]$"):
        RewardModelPuppet(tokens, scores, torch.zeros(7), eos=EOS, pad=PAD)


def test_options_are_read_from_a_configuration(tmp_path):
    config = RewardConfig(
        output_dir=str(tmp_path), bf16=False, use_cpu=True, center_rewards_coefficient=0.01,
        gradient_accumulation_steps=2, num_train_epochs=1, max_length=64, disable_dropout=False,
    )  # fmt: skip
    options, not_judged = options_of(config)
    assert options == {
        "eos": 1, "pad": 0, "pooled": "last-non-pad", "center": 0.01,
        "epochs": 1, "mini_batches": 2, "accumulation": 2,
    }  # fmt: skip
    assert not_judged == ["disable_dropout"]
    message = "RewardConfig has no `center_reward_coefficient`"
    with pytest.raises(UsageError, match=re.escape(message)):
        options_of({"center_reward_coefficient": 0.1}, RewardConfig)


def test_a_subclass_is_checked_in_the_place_of_the_trainer():
    class Doubled(RewardTrainer):
        def compute_loss(self, *args, **kwargs):
            return 2 * super().compute_loss(*args, **kwargs)

    case = scores_case(0)
    cut = {"center": 0.0, **SHAPES[1]}
    once, twice = (RewardModel({}, it).train(*case, **cut) for it in (RewardTrainer, Doubled))
    torch.testing.assert_close(2 * once["gradient"], twice["gradient"])


# By the check.


@pytest.mark.parametrize("has_margins", [False, True])
def test_trl_passes(has_margins):
    declared, _ = options_of({}, RewardConfig)
    contract = shakedown.RewardModelStep(**declared, has_margins=has_margins)
    contract.settings(cases=CASES, time=None).check(RewardModel())


@shakedown.RewardModelStep(has_margins=True, epochs=2, mini_batches=2).settings(
    cases=CASES, time=None, places=["cpu/f32", "cpu/f64"]
)
def test_a_trainer_by_hand_passes(puppet, center, accumulation):
    assert puppet.accumulation == accumulation
    by_hand_reward.Trainer(puppet, center).train()


# Known bug, or what it is where none is known: options, the line, the wrong one.
GIVEN = {"has_margins": True}
CENTER = {"center": 0.1}
PARTS = {"accumulation": 2}

PLAIN = "logsigmoid(rewards_chosen - rewards_rejected)"
WITH_MARGIN = 'logsigmoid(rewards_chosen - rewards_rejected - inputs["margin"])'
HALVES = "rewards_chosen, rewards_rejected = torch.chunk"
SQUARED = "torch.mean((rewards_chosen + rewards_rejected) ** 2)"
JOINED = "input_ids = chosen_ids + rejected_ids"
PAD_VALUE = "padding_value=self.pad_token_id"
STEP = "    def training_step(self, *args, **kwargs):\n"
INTO_TRL = {
    "sign-flipped": ({}, "loss = -nn.functional." + PLAIN, "loss = nn.functional." + PLAIN),
    "chosen-and-rejected-swapped": (
        {}, HALVES, "rewards_rejected, rewards_chosen = torch.chunk",
    ),
    "rejected-side-detached": ({}, PLAIN, PLAIN.replace("rejected)", "rejected.detach())")),
    "probability-for-its-logarithm": ({}, PLAIN, PLAIN.replace("logsigmoid", "sigmoid")),
    "pairs-across": ({}, PLAIN, PLAIN.replace("rejected)", "rejected.roll(1))")),
    "interleaved-rows-halved": (
        {}, JOINED, "input_ids = [ids for pair in zip(chosen_ids, rejected_ids) for ids in pair]",
    ),
    "score-at-the-padded-end": ({}, PAD_VALUE, PAD_VALUE + " + 5"),
    "margin-added": (GIVEN, WITH_MARGIN, WITH_MARGIN.replace("- inputs", "+ inputs")),
    "margin-ignored": (
        GIVEN, '["chosen_ids", "rejected_ids", "margin"]', '["chosen_ids", "rejected_ids"]',
    ),
    "center-ignored": (
        CENTER, "if self.args.center_rewards_coefficient is not None", "if False",
    ),
    "center-of-the-difference": (CENTER, SQUARED, SQUARED.replace("+", "-")),
    "center-summed": (CENTER, SQUARED, SQUARED.replace("torch.mean", "torch.sum")),
    "micro-batches-summed": (
        PARTS, "loss_is_scaled_for_ga = False", "loss_is_scaled_for_ga = True",
    ),
    "same-slice-again": (
        {}, STEP,
        STEP + '        first = f"first of {int(self.state.epoch or 0)}"\n'
        "        args = (args[0], vars(self).setdefault(first, args[1]), *args[2:])\n",
    ),
    "the end is not appended": (
        {}, 'example["chosen"] = example["chosen"] + eos_token', "pass",
    ),
}  # fmt: skip

LAST = "last = mask.sum(1) - 1"
DIFFERENCE = "difference = chosen - rejected\n"
LOSS = "loss = -F.logsigmoid(difference).mean()"
MARGIN = "difference - torch.tensor("
CENTRE = "((chosen + rejected) ** 2).mean()"
SHARE = "(loss / self.accumulation).backward()"
PADDED = "[row + [pad] * (width - len(row)) for row in rows])\n"
MASK = "[[1] * len(row) + [0] * (width - len(row)) for row in rows])"
INTO_ONE_BY_HAND = {
    "eos-left-out": ({}, LAST, "last = mask.sum(1) - 2"),
    "final-eos-dropped-when-pad-is-eos": (
        {"pad": EOS}, LAST, "last = (ids != pad).sum(1) - 1",
    ),
    "score-at-the-padded-end": ({}, LAST, "last = 0 * mask.sum(1) + width - 1"),
    "score-at-the-first-pad": ({}, LAST, "last = mask.sum(1).clamp(max=width - 1)"),
    "score-at-the-first-token": ({}, LAST, "last = 0 * mask.sum(1)"),
    "pads-seen": (
        {}, PADDED + f"        mask = torch.tensor({MASK}\n        " + LAST,
        "[[pad] * (width - len(row)) + row for row in rows])\n"
        "        mask = torch.ones_like(ids)\n        " + LAST,
    ),
    "sign-flipped": ({}, LOSS, LOSS.replace("-F", "F")),
    "chosen-and-rejected-swapped": ({}, DIFFERENCE, "difference = rejected - chosen\n"),
    "rejected-side-detached": ({}, DIFFERENCE, "difference = chosen - rejected.detach()\n"),
    "scores-squashed": (
        {}, DIFFERENCE, "difference = chosen.sigmoid() - rejected.sigmoid()\n",
    ),
    "pairs-across": ({}, DIFFERENCE, "difference = chosen - rejected.roll(1)\n"),
    "sum-for-the-mean": ({}, LOSS, LOSS.replace("mean", "sum")),
    "sigmoid-left-out": ({}, LOSS, "loss = -difference.mean()"),
    "probability-for-its-logarithm": ({}, LOSS, LOSS.replace("logsigmoid", "sigmoid")),
    "margins-averaged-before-the-loss": ({}, LOSS, "loss = -F.logsigmoid(difference.mean())"),
    "margin-added": (GIVEN, MARGIN, "difference + torch.tensor("),
    "margin-ignored": (GIVEN, MARGIN, "difference - 0 * torch.tensor("),
    "margin-of-another-pair": (
        GIVEN, 'pair["margin"] for pair in pairs',
        'pair["margin"] for pair in [*pairs[1:], pairs[0]]',
    ),
    "center-of-the-difference": (CENTER, CENTRE, CENTRE.replace("+", "-")),
    "center-of-each-score": (CENTER, CENTRE, "(chosen**2 + rejected**2).mean()"),
    "micro-batches-summed": (PARTS, SHARE, "loss.backward()"),
    "divided-again-by-micro-batches": (PARTS, SHARE, "(loss / self.accumulation**2).backward()"),
    "only-the-last-micro-batch": (PARTS, SHARE, "self.optimizer.zero_grad(); " + SHARE),
    "same-slice-again": (
        {}, ".chunk(self.mini_batches):", ".chunk(self.mini_batches)[:1] * self.mini_batches:",
    ),
}  # fmt: skip
DECLARED = {"epochs": 1, "mini_batches": 2, "accumulation": 1}
BY_DAY = ["score-at-the-padded-end"]
# Found, and called something else, or nothing yet.
UNNAMED = set()


def by_hand(module):
    def mine(puppet, center):
        module.Trainer(puppet, center).train()

    return mine


def is_seen(outputs, case, center):
    """Whether what was observed is not right."""
    right = definition.reward_model(case, outputs["micro_batches"], center)
    return not (is_right(outputs, right) and is_passed(outputs, 16, 2))


@pytest.mark.parametrize("name", INTO_TRL)
def test_bugs_in_trl_change_what_is_observed(name):
    options, right, wrong = INTO_TRL[name]
    cut = {"center": 0.0, **DECLARED, **options}
    case = scores_case(0, updates=2, margins=cut.pop("has_margins", False))
    run = RewardModel({}, planted(REWARD, right, wrong).RewardTrainer)
    assert is_seen(run.train(*case, **cut), case, cut["center"])


@pytest.mark.parametrize("name", INTO_ONE_BY_HAND)
def test_bugs_in_one_by_hand_change_what_is_observed(name):
    options, right, wrong = INTO_ONE_BY_HAND[name]
    cut = {"center": 0.0, "pad": PAD, **DECLARED, **options}
    tokens, *_ = case = scores_case(0, updates=2, margins=cut.pop("has_margins", False))
    tokens[tokens == PAD] = cut["pad"]
    center = cut.pop("center")
    puppet = RewardModelPuppet(*case, eos=EOS, **cut)
    by_hand(planted(REWARD_BY_HAND, right, wrong))(puppet, center)
    assert is_seen(puppet.outputs(), case, center)


@pytest.mark.parametrize("name", INTO_TRL)
@pytest.mark.night
def test_bugs_in_trl_are_found(name):
    options, right, wrong = INTO_TRL[name]
    run = RewardModel({}, planted(REWARD, right, wrong).RewardTrainer)
    contract = shakedown.RewardModelStep(pooled="last-non-pad", **{**DECLARED, **options})
    must_be_found("trl", name, contract, run, UNNAMED)


@pytest.mark.parametrize("name", by_day(INTO_ONE_BY_HAND, BY_DAY))
def test_bugs_in_one_by_hand_are_found(name):
    options, right, wrong = INTO_ONE_BY_HAND[name]
    mine = by_hand(planted(REWARD_BY_HAND, right, wrong))
    contract = shakedown.RewardModelStep(**{**DECLARED, **options})
    must_be_found("by hand", name, contract, mine, UNNAMED)
