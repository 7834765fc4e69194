"""Training on pairs without a reference, by TRL's CPO and ORPO, against the definition in plain
torch; and bugs planted into both."""

import definition
import pytest
from definition import is_passed, is_right, pairs_case

from shakedown.trainers.trl import CPO, ORPO
from shakedown.trainers.trl.cpo import KINDS, SMOOTHED

SHAPES = [
    {"epochs": 1, "mini_batches": 1, "accumulation": 1},
    {"epochs": 2, "mini_batches": 2, "accumulation": 2},
]


def a_case(seed, cut, **others):
    return pairs_case(seed, updates=cut["epochs"] * cut["mini_batches"], **others)[:2]


@pytest.mark.parametrize("cut", SHAPES, ids=str)
@pytest.mark.parametrize("loss", KINDS)
def test_cpo_gives_the_gradients_of_the_definition(loss, cut):
    smoothing = 0.1 if loss in SMOOTHED else 0.0
    for seed, alpha in enumerate([0.0, 0.25]):
        settings = {"loss_type": loss, "label_smoothing": smoothing, "alpha": alpha}
        case = a_case(seed, cut, width=3 + seed, size=5 + seed)
        outputs = CPO({**settings, "cpo_alpha": 0.5}).train(*case, beta=0.5, **cut)
        expected = definition.without_reference(
            case, outputs["micro_batches"], KINDS[loss], 0.5, smoothing,
            gamma=0.5 if KINDS[loss] == "simpo" else 0.0,
            alpha=alpha,
            likelihood=0.0 if loss == "alphapo" else 0.5,
        )  # fmt: skip
        assert is_right(outputs, expected)
        assert is_passed(outputs, 16, cut["mini_batches"])


@pytest.mark.parametrize("cut", SHAPES, ids=str)
def test_orpo_gives_the_gradients_of_the_definition(cut):
    for seed, beta in enumerate([0.1, 0.5]):
        case = a_case(seed, cut, width=3 + seed, size=5 + seed)
        outputs = ORPO().train(*case, beta=beta, **cut)
        how = {"kind": "orpo", "beta": beta, "of_prompts": True}
        expected = definition.without_reference(case, outputs["micro_batches"], **how)
        assert outputs.pop("unknown").min() > 0  # prompts have a likelihood too
        assert is_right({**outputs, "unknown": expected[:0]}, expected)
        assert is_passed(outputs, 16, cut["mini_batches"])
