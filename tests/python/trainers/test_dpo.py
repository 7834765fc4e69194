"""Preference training, by TRL and by hand, against the definition in plain torch."""

import re

import by_hand_dpo
import definition
import pytest
import torch
from definition import EOS, PAD, is_passed, is_right, pairs_case
from trl import DPOConfig, DPOTrainer

from shakedown import UsageError
from shakedown.trainers.puppets import PreferencePuppet
from shakedown.trainers.trl import DPO, options_of
from shakedown.trainers.trl.dpo import KINDS, SMOOTHED

SHAPES = [
    {"epochs": 1, "mini_batches": 1, "accumulation": 1},
    {"epochs": 2, "mini_batches": 2, "accumulation": 1},
    {"epochs": 2, "mini_batches": 2, "accumulation": 2},
    {"epochs": 1, "mini_batches": 1, "accumulation": 4},
]


def a_case(seed, cut, **others):
    return pairs_case(seed, updates=cut["epochs"] * cut["mini_batches"], **others)


@pytest.mark.parametrize("cut", SHAPES, ids=str)
@pytest.mark.parametrize("loss", KINDS)
def test_trl_gives_the_gradients_of_the_definition(loss, cut):
    smoothing = 0.1 if loss in SMOOTHED else 0.0
    run = DPO({"loss_type": loss, "label_smoothing": smoothing})
    for seed, beta in enumerate([0.1, 0.5]):
        case = a_case(seed, cut, width=3 + seed, size=5 + seed)
        outputs = run.train(*case, beta=beta, **cut)
        how = outputs["micro_batches"], KINDS[loss], beta, smoothing
        assert is_right(outputs, definition.preference(case, *how))
        assert is_passed(outputs, 16, cut["mini_batches"])


@pytest.mark.parametrize("cut", SHAPES, ids=str)
def test_a_trainer_by_hand_gives_them_too(cut):
    for seed in range(3):
        case = a_case(seed, cut)
        puppet = PreferencePuppet(*case, eos=EOS, pad=PAD, **cut)
        by_hand_dpo.Trainer(puppet, 0.5).train()
        outputs = puppet.outputs()
        assert outputs["micro_batches"].shape[1] == cut["accumulation"]
        assert is_right(outputs, definition.preference(case, outputs["micro_batches"], beta=0.5))
        assert is_passed(outputs, 16, cut["mini_batches"])


def test_examples_are_words_and_ids():
    tokens = torch.tensor([[[3, 4, 1], [1, 0, 0]], [[4, 1, 0], [4, 3, 1]]])
    puppet = PreferencePuppet(tokens, torch.zeros(1, 2, 2, 3, 5), eos=1, pad=0)
    assert puppet.examples == [
        {
            "prompt": "t02 t03", "chosen": " t03 t04", "rejected": "", "prompt_ids": [2, 3],
            "chosen_ids": [3, 4, 1], "rejected_ids": [1],
        },
        {
            "prompt": "t02 t02 t03", "chosen": " t04", "rejected": " t04 t03",
            "prompt_ids": [2, 2, 3], "chosen_ids": [4, 1], "rejected_ids": [4, 3, 1],
        },
    ]  # fmt: skip
    assert puppet.reference is None
    assert "ref_gradient" not in PreferencePuppet.axes


def test_what_does_not_fit_is_refused():
    with pytest.raises(UsageError, match=r"^8 pairs cannot be split evenly into 3 mini-batches of"):
        PreferencePuppet(*pairs_case(0, updates=3), eos=EOS, pad=PAD, mini_batches=3)
    tokens, logits, _ = pairs_case(0, updates=1)
    three = torch.cat([tokens, tokens[:, :1]], dim=1), torch.cat([logits, logits[:, :, :1]], dim=2)
    with pytest.raises(UsageError, match=r"^tokens are \[8, 3, 5\], expected \[8, 2, 5\]$"):
        PreferencePuppet(*three, eos=EOS, pad=PAD)


def test_trl_leaves_streams_and_random_states_as_they_were(capfd):
    case = pairs_case(0)
    before = torch.get_rng_state()
    DPO().train(*case)
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")


def test_options_are_read_from_a_configuration(tmp_path):
    config = DPOConfig(
        output_dir=str(tmp_path), bf16=False, use_cpu=True, loss_type=["robust"], beta=0.3,
        label_smoothing=0.2, gradient_accumulation_steps=2, num_train_epochs=1, max_length=64,
        warmup_steps=3,
    )  # fmt: skip
    options, not_judged = options_of(config)
    assert options == {
        "eos": 1, "pad": 0, "kind": "robust", "beta": 0.3, "label_smoothing": 0.2,
        "epochs": 1, "mini_batches": 2, "accumulation": 2,
    }  # fmt: skip
    assert not_judged == ["warmup_steps"]
    assert options_of({}, DPOConfig)[0] == {
        "eos": 1, "pad": 0, "kind": "sigmoid", "beta": 0.1, "label_smoothing": 0.0,
        "epochs": 2, "mini_batches": 2, "accumulation": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss_type": "sft"}, "loss_type 'sft' is not judged yet; supported: sigmoid, hinge"),
        ({"loss_type": ["discopop"]}, "loss_type 'discopop' is not judged yet"),
        ({"loss_type": ["sigmoid", "ipo"]}, "loss_type ['sigmoid', 'ipo'], a sum of several,"),
        ({"loss_weights": [0.5]}, "loss_weights [0.5] is not judged yet"),
        (
            {"label_smoothing": 0.1},
            "label_smoothing 0.1 has no effect in TRL's loss 'sigmoid': take it out",
        ),
        ({"f_divergence_type": "js_divergence"}, "f_divergence_type 'js_divergence' is not judged"),
        ({"ld_alpha": 0.5}, "ld_alpha 0.5 is not judged yet"),
        ({"use_weighting": True}, "use_weighting True is not judged yet"),
        ({"sync_ref_model": True}, "sync_ref_model True is not judged yet"),
        ({"precompute_ref_log_probs": True}, "precompute_ref_log_probs True is not judged yet"),
        ({"bata": 1.0}, "DPOConfig has no `bata` (did you mean `beta`?)"),
    ],
)
def test_what_cannot_be_judged_is_refused_by_name(settings, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        options_of(settings, DPOConfig)


def test_a_subclass_is_checked_in_the_place_of_the_trainer():
    class Doubled(DPOTrainer):
        def _compute_loss(self, *args, **kwargs):
            return 2 * super()._compute_loss(*args, **kwargs)

    once, twice = (DPO({}, it).train(*pairs_case(0)) for it in (DPOTrainer, Doubled))
    torch.testing.assert_close(2 * once["gradient"], twice["gradient"])
