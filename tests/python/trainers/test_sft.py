"""Supervised fine-tuning, by TRL and by hand, against the definition in plain torch."""

import re

import by_hand_sft
import datasets
import definition
import pytest
import torch
from definition import EOS, PAD, is_passed, is_right, sft_case
from trl import SFTConfig, SFTTrainer

from shakedown import UsageError
from shakedown.trainers.puppet import Strayed
from shakedown.trainers.puppets import SftPuppet
from shakedown.trainers.trl import SFT, options_of

SHAPES = [
    {"epochs": 1, "mini_batches": 1, "accumulation": 1},
    {"epochs": 2, "mini_batches": 2, "accumulation": 1},
    {"epochs": 2, "mini_batches": 2, "accumulation": 2},
    {"epochs": 1, "mini_batches": 1, "accumulation": 4},
]


def a_case(seed, cut, **others):
    return sft_case(seed, updates=cut["epochs"] * cut["mini_batches"], **others)


@pytest.mark.parametrize("cut", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("config", "trained"),
    [
        ({}, "completion"),
        ({"loss_type": "dft"}, "completion"),
        ({"completion_only_loss": False}, "text"),
        ({"assistant_only_loss": True}, "turns"),
        ({"padding_free": True}, "completion"),
        ({"pad_to_multiple_of": 8}, "text"),
    ],
    ids=str,
)
def test_trl_gives_the_gradients_of_the_definition(config, trained, cut):
    if trained == "text":
        config = {**config, "completion_only_loss": False}
    run = SFT(config)
    for seed in range(3):
        case = a_case(seed, cut, width=3 + seed, size=5 + seed, trained=trained)
        outputs = run.train(*case, **cut)
        loss = config.get("loss_type", "nll")
        assert is_right(outputs, definition.sft(case, outputs["micro_batches"], loss))
        assert is_passed(outputs, 8, cut["mini_batches"])


@pytest.mark.parametrize("cut", SHAPES, ids=str)
def test_a_trainer_by_hand_gives_them_too(cut):
    for seed in range(3):
        case = a_case(seed, cut)
        puppet = SftPuppet(*case, eos=EOS, pad=PAD, **cut)
        by_hand_sft.Trainer(puppet).train()
        outputs = puppet.outputs()
        assert is_right(outputs, definition.sft(case, outputs["micro_batches"]))
        assert is_passed(outputs, 8, cut["mini_batches"])


def test_examples_are_words_and_ids():
    tokens = torch.tensor([[3, 4, 1, 0], [4, 1, 0, 0], [4, 4, 3, 1]])
    mask = torch.tensor([[0, 1, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1]], dtype=torch.bool)
    puppet = SftPuppet(tokens, mask, torch.zeros(1, 3, 4, 5), eos=1, pad=0)
    assert puppet.examples == [
        {
            "input_ids": [2, 3, 4, 1], "labels": [-100, -100, 4, 1],
            "prompt": "t02 t03", "completion": " t04",
        },
        {
            "input_ids": [2, 4, 1], "labels": [-100, -100, 1],
            "prompt": "t02 t04", "completion": "",
        },
        {"input_ids": [2, 4, 4, 3, 1], "labels": [-100, 4, -100, 3, 1]},
    ]  # fmt: skip


def test_pads_that_are_trained_have_their_gradient_behind_the_end():
    case = tokens, *_ = sft_case(0, updates=1)
    puppet = SftPuppet(*case, eos=EOS, pad=PAD)
    rows = [it["input_ids"] for it in puppet.examples]
    inputs = puppet.tokenizer.pad({"input_ids": rows}, padding_side="right", return_tensors="pt")
    puppet.model(**inputs).logits[:, :-1].logsumexp(-1).sum().backward()
    puppet.optimizer.step()
    outputs = puppet.outputs()
    behind = (tokens == EOS).long().argmax(-1) + 1
    [row] = (behind < tokens.shape[-1]).nonzero()[0].tolist()
    assert outputs["gradient"][0, row, behind[row]].any()
    assert not outputs["unknown"].any()


def test_the_loss_of_the_model_itself_is_that_of_transformers():
    """It has the mean over the targets that are not -100."""
    case = sft_case(0, updates=1)
    puppet = SftPuppet(*case, eos=EOS, pad=PAD)
    rows = [(it["input_ids"], it["labels"]) for it in puppet.examples]
    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([ids + [PAD] * (width - len(ids)) for ids, _ in rows])
    labels = torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in rows])
    puppet.model(input_ids=ids, labels=labels).loss.backward()
    puppet.optimizer.step()
    outputs = puppet.outputs()
    assert is_right(outputs, definition.sft(case, outputs["micro_batches"]))


def test_rows_that_cannot_be_split_and_sampling_are_refused():
    with pytest.raises(UsageError, match=r"^8 rows cannot be split evenly into 3 mini-batches of "):
        SftPuppet(*sft_case(0, updates=3), eos=EOS, pad=PAD, mini_batches=3)
    tokens, mask, logits = sft_case(0, updates=1)
    with pytest.raises(UsageError, match=r"^mask are \[8, 4\], expected \[8, 5\]$"):
        SftPuppet(tokens, mask[:, :4], logits, eos=EOS, pad=PAD)
    puppet = SftPuppet(tokens, mask, logits, eos=EOS, pad=PAD)
    with pytest.raises(Strayed, match="^completions were sampled"):
        puppet.model.generate(torch.tensor([[2]]))


def test_trl_leaves_streams_and_random_states_as_they_were(capfd):
    case = sft_case(0)
    before = torch.get_rng_state()
    SFT().train(*case)
    assert torch.equal(torch.get_rng_state(), before)
    assert not datasets.are_progress_bars_disabled()
    assert capfd.readouterr() == ("", "")


def test_a_seed_is_another_order_and_the_same_seed_the_same():
    case = sft_case(1)
    first, again, other = (SFT().train(*case, seed=seed) for seed in (0, 0, 1))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["micro_batches"], other["micro_batches"])


def test_options_are_read_from_a_configuration(tmp_path):
    config = SFTConfig(
        output_dir=str(tmp_path), bf16=False, use_cpu=True, loss_type="dft", learning_rate=1e-5,
        gradient_accumulation_steps=4, num_train_epochs=1, completion_only_loss=False,
        max_length=512, padding_free=True,
    )  # fmt: skip
    options, not_judged = options_of(config)
    assert options == {
        "eos": 1, "pad": 0, "trained": "text", "loss": "dft", "over": "update", "epochs": 1,
        "mini_batches": 2, "accumulation": 4,
    }  # fmt: skip
    assert not_judged == ["learning_rate"]
    assert options_of({}, SFTConfig)[0] == {
        "eos": 1, "pad": 0, "trained": "completion", "loss": "nll", "over": "update", "epochs": 2,
        "mini_batches": 2, "accumulation": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss_type": "mine"}, "loss_type 'mine' is not judged yet: take it out"),
        ({"packing": True}, "packing True is not judged yet: take it out of the configuration"),
        ({"label_smoothing_factor": 0.1}, "label_smoothing_factor 0.1 is not judged yet"),
        ({"neftune_noise_alpha": 5.0}, "neftune_noise_alpha 5.0 is not judged yet"),
        ({"use_liger_kernel": True}, "use_liger_kernel True is not judged yet"),
        ({"pack": True}, "SFTConfig has no `pack` (did you mean `packing`?)"),
    ],
)
def test_what_cannot_be_judged_is_refused_by_name(settings, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        options_of(settings, SFTConfig)


def test_a_subclass_is_checked_in_the_place_of_the_trainer():
    class Doubled(SFTTrainer):
        def compute_loss(self, *args, **kwargs):
            return 2 * super().compute_loss(*args, **kwargs)

    once, twice = (SFT({}, it).train(*sft_case(0)) for it in (SFTTrainer, Doubled))
    torch.testing.assert_close(2 * once["gradient"], twice["gradient"])
