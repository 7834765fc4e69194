"""KTO, by TRL and by hand, against the definition in plain torch; and bugs planted into both."""

import os
import re

import by_hand_kto
import definition
import pytest
import torch
from definition import EOS, PAD, completions_case, is_passed, is_right
from planting import KTO_BY_HAND, KTO_OF_TRL, by_day, must_be_found, planted
from trl import KTOConfig

import shakedown
from shakedown import UsageError
from shakedown.trainers.puppets import KtoPuppet
from shakedown.trainers.trl import KTO, options_of

CASES = 48 if os.environ.get("SHAKEDOWN_NIGHT") == "1" else 1
SHAPES = [
    {"epochs": 1, "mini_batches": 1, "accumulation": 1},
    {"epochs": 2, "mini_batches": 2, "accumulation": 1},
    {"epochs": 2, "mini_batches": 2, "accumulation": 2},
    {"epochs": 1, "mini_batches": 1, "accumulation": 4},
]


def a_case(seed, cut, **others):
    return completions_case(seed, updates=cut["epochs"] * cut["mini_batches"], **others)


@pytest.mark.parametrize("cut", SHAPES, ids=str)
@pytest.mark.parametrize("loss", ["kto", "apo_zero_unpaired"])
def test_trl_gives_the_gradients_of_the_definition(loss, cut):
    run = KTO({"loss_type": loss})
    for seed, (beta, weights) in enumerate([(0.1, (1.0, 1.0)), (0.5, (1.5, 0.5))]):
        case = a_case(seed, cut, width=3 + seed, size=5 + seed, with_kl=loss == "kto")
        desirable, undesirable = weights
        options = {"desirable_weight": desirable, "undesirable_weight": undesirable, **cut}
        outputs = run.train(*case, beta=beta, **options)
        assert is_right(outputs, definition.kto(case, outputs["micro_batches"], beta, weights))
        assert is_passed(outputs, 8, cut["mini_batches"])
        assert not outputs["kl_gradient"].any()


@pytest.mark.parametrize("cut", SHAPES, ids=str)
def test_a_trainer_by_hand_gives_them_too(cut):
    for seed, weights in enumerate([(1.0, 1.0), (1.5, 0.5)]):
        case = a_case(seed, cut)
        puppet = KtoPuppet(*case, eos=EOS, pad=PAD, **cut)
        by_hand_kto.Trainer(puppet, 0.5, weights).train()
        outputs = puppet.outputs()
        assert outputs["micro_batches"].shape[1] == cut["accumulation"]
        assert is_right(outputs, definition.kto(case, outputs["micro_batches"], 0.5, weights))
        assert is_passed(outputs, 8, cut["mini_batches"])


def test_a_completion_of_another_row_has_logits_of_its_own():
    tokens = torch.tensor([[3, 1, 0], [3, 4, 1]])
    own, others = torch.zeros(2, 3, 5), torch.ones(2, 3, 5)
    place = torch.arange(6.0).view(2, 3, 1)
    tables = (own + place)[None], own, (others + 10 + place)[None], others
    puppet = KtoPuppet(tokens, torch.tensor([True, False]), *tables, eos=EOS, pad=PAD)
    ids = torch.tensor([[2, 3, 3, 4, 1], [2, 2, 3, 3, 1]])
    # The first prompt with the second completion, and the other way round. What begins alike has
    # the logits of the prompt's own, and there is no place behind an end that fills its row.
    unknown = -20.0
    assert puppet.logits(ids)[0, 1:, 0].tolist() == [0.0, 1.0, 13.0, unknown]
    assert puppet.logits(ids)[1, 2:, 0].tolist() == [3.0, 4.0, 16.0]


def test_examples_are_words_and_ids():
    tokens = torch.tensor([[3, 4, 1], [1, 0, 0]])
    logits = torch.zeros(2, 3, 5)
    puppet = KtoPuppet(tokens, torch.tensor([True, False]), logits[None], logits, eos=EOS, pad=PAD)
    assert puppet.examples == [
        {
            "prompt": "t02 t03", "completion": " t03 t04", "prompt_ids": [2, 3],
            "completion_ids": [3, 4, 1], "label": True,
        },
        {
            "prompt": "t02 t02 t03", "completion": "", "prompt_ids": [2, 2, 3],
            "completion_ids": [1], "label": False,
        },
    ]  # fmt: skip


def test_what_does_not_fit_is_refused():
    case = completions_case(0, updates=3)
    with pytest.raises(UsageError, match=r"^8 completions cannot be split evenly into 3 mini-bat"):
        KtoPuppet(*case, eos=EOS, pad=PAD, mini_batches=3)
    tokens, labels, *tables = completions_case(0, updates=1)
    with pytest.raises(UsageError, match=r"^labels are \[7\], expected \[8\]$"):
        KtoPuppet(tokens, labels[:7], *tables, eos=EOS, pad=PAD)


def test_options_are_read_from_a_configuration(tmp_path):
    config = KTOConfig(
        output_dir=str(tmp_path), bf16=False, use_cpu=True, loss_type="apo_zero_unpaired", beta=0.2,
        desirable_weight=1.5, gradient_accumulation_steps=2, num_train_epochs=1, max_length=64,
        disable_dropout=False,
    )  # fmt: skip
    options, not_judged = options_of(config)
    assert options == {
        "eos": 1, "pad": 0, "kind": "apo-zero-unpaired", "beta": 0.2, "desirable_weight": 1.5,
        "undesirable_weight": 1.0, "epochs": 1, "mini_batches": 2, "accumulation": 2,
    }  # fmt: skip
    assert not_judged == ["disable_dropout"]
    message = "KTOConfig has no `desired_weight` (did you mean `desirable_weight`?)"
    with pytest.raises(UsageError, match=re.escape(message)):
        options_of({"desired_weight": 0.1}, KTOConfig)
    with pytest.raises(UsageError, match=r"^loss_type 'bco' is not judged yet; supported: kto, "):
        options_of({"loss_type": "bco"}, KTOConfig)
    with pytest.raises(UsageError, match="^precompute_ref_log_probs True is not judged yet"):
        options_of({"precompute_ref_log_probs": True}, KTOConfig)


# By the check.


@pytest.mark.parametrize("loss", ["kto", "apo_zero_unpaired"])
def test_trl_passes(loss):
    declared, _ = options_of({"loss_type": loss}, KTOConfig)
    contract = shakedown.KtoStep(**declared).settings(cases=CASES, time=None)
    contract.check(KTO({"loss_type": loss}))


@shakedown.KtoStep(beta=0.5, desirable_weight=1.5, epochs=2, mini_batches=2).settings(
    cases=CASES, time=None, places=["cpu/f32", "cpu/f64"]
)
def test_a_trainer_by_hand_passes(puppet, beta, desirable_weight, undesirable_weight):
    by_hand_kto.Trainer(puppet, beta, (desirable_weight, undesirable_weight)).train()


# Known bug, or what it is where none is known: options, the line, the wrong one.
LARGE = {"beta": 1.0}
WEIGHTS = {"desirable_weight": 1.5, "undesirable_weight": 0.5}
PARTS = {"accumulation": 2}

LABELS = 'bool_labels = torch.as_tensor(batch["label"], dtype=torch.bool, device=device)'
WEIGHTED = "(self.desirable_weight * chosen_losses, self.undesirable_weight * rejected_losses)"
RATIOS = "kl = (KL_logps - ref_KL_logps).mean().detach()"
CLAMPED = "kl = self.accelerator.gather_for_metrics(kl).mean().clamp(min=0)"
ROTATED = '[examples["completion_ids"][-1]] + examples["completion_ids"][:-1]'
LOSS = "loss = losses.nanmean()"
TARGETS = 'completion_labels = batch["input_ids"].masked_fill(batch["completion_mask"] == 0, -100)'
NO_GRADIENT = (
    "with torch.no_grad(), disable_gradient_checkpointing("
    "self.model, self.args.gradient_checkpointing_kwargs):"
)
STEP = "    def training_step(self, *args, **kwargs):\n"
INTO_TRL = {
    # With equal weights these two are one: the slope of a sigmoid is symmetric.
    "labels-swapped": (WEIGHTS, LABELS, LABELS.replace("torch.as", "~torch.as")),
    "label-ignored": (
        {}, LABELS, 'bool_labels = torch.ones_like(batch["label"], dtype=torch.bool)',
    ),
    "weights-swapped": (
        WEIGHTS, WEIGHTED,
        "(self.undesirable_weight * chosen_losses, self.desirable_weight * rejected_losses)",
    ),
    "weights-ignored": (WEIGHTS, WEIGHTED, "(chosen_losses, rejected_losses)"),
    "divided-by-the-weights": (
        WEIGHTS, LOSS,
        "loss = losses.sum() / torch.where(bool_labels, self.desirable_weight, "
        "self.undesirable_weight).sum()",
    ),
    "averaged-by-label": (
        {}, LOSS,
        "loss = sum(it.mean() for it in (chosen_losses, rejected_losses) if it.numel())",
    ),
    "kl-not-detached": (
        LARGE, RATIOS,
        'kl_labels = batch["KL_input_ids"].masked_fill(batch["KL_completion_mask"] == 0, -100)\n'
        '            KL_logps = model(input_ids=batch["KL_input_ids"], attention_mask='
        'batch["KL_attention_mask"], labels=kl_labels, fused_lm_head=True).log_probs.sum(-1)\n'
        "            kl = (KL_logps - ref_KL_logps).mean()",
    ),
    "kl-not-clamped": (LARGE, CLAMPED, CLAMPED.replace(".clamp(min=0)", "")),
    "kl-clamped-before-the-mean": (LARGE, RATIOS, RATIOS.replace(".mean", ".clamp(min=0).mean")),
    "kl-of-matched-pairs": (LARGE, ROTATED, 'examples["completion_ids"]'),
    "kl-completions-reversed": (LARGE, ROTATED, 'examples["completion_ids"][::-1]'),
    "kl-completions-of-the-update": (
        {**LARGE, **PARTS}, "batched=True, batch_size=args.per_device_train_batch_size, **map",
        "batched=True, batch_size=args.per_device_train_batch_size * "
        "args.gradient_accumulation_steps, **map",
    ),
    "the KL is of the policy only": (LARGE, RATIOS, "kl = KL_logps.mean().detach()"),
    "kl-of-one-row": (LARGE, RATIOS, RATIOS.replace(".mean()", "[-1]")),
    "kl-summed": (LARGE, RATIOS, RATIOS.replace("mean", "sum")),
    "kl-averaged-over-tokens": (
        LARGE, RATIOS,
        'kl = ((KL_logps - ref_KL_logps) / batch["KL_completion_mask"].sum(-1)).mean().detach()',
    ),
    "kl-of-one-label": (
        LARGE, RATIOS,
        "kl = (KL_logps - ref_KL_logps)[bool_labels].sum() / bool_labels.sum().clamp(min=1)",
    ),
    "kl-reversed": (LARGE, RATIOS, "kl = (ref_KL_logps - KL_logps).mean().detach()"),
    "kl-ignored": (LARGE, CLAMPED, CLAMPED + " * 0"),
    "kl-added": (LARGE, CLAMPED, CLAMPED + " * -1"),
    "logarithm-of-the-sigmoid": (LARGE, LOSS, "loss = -(1 - losses).log().nanmean()"),
    "sum-for-the-mean": ({}, LOSS, "loss = losses.nansum()"),
    "sign-flipped": (WEIGHTS, LOSS, "loss = -losses.nanmean()"),
    "beta-not-applied": ({}, "self.beta = args.beta", "self.beta = 1.0"),
    "beta-applied-twice": ({}, "self.beta = args.beta", "self.beta = args.beta**2"),
    "reference-is-the-policy": (
        LARGE, "self.accelerator.prepare_model(self.ref_model, evaluation_mode=True)",
        "self.model",
    ),
    "reference-ignored": (
        LARGE, "ref_completion_logps = ref_per_token_logps.sum(-1)",
        "ref_completion_logps = 0 * ref_per_token_logps.sum(-1)",
    ),
    "reference-trained": (LARGE, NO_GRADIENT, "with contextlib.nullcontext():"),
    "prompt-trained": ({}, TARGETS, TARGETS.replace("completion_mask", "attention_mask")),
    "padding-trained": (
        {}, TARGETS,
        TARGETS.replace(" == 0,", ' < batch["attention_mask"],'),
    ),
    "eos-left-out": (
        {}, "[0] * len(prompt_ids) + [1] * len(answer_ids)",
        "[0] * len(prompt_ids) + [1] * (len(answer_ids) - 1) + [0]",
    ),
    "the end is not appended": (
        {}, 'example["completion"] = example["completion"] + eos_token', "pass",
    ),
    "micro-batches-summed": (
        PARTS, "loss_is_scaled_for_ga = False", "loss_is_scaled_for_ga = True",
    ),
    "same-slice-again": (
        {}, STEP,
        STEP + '        first = f"first of {int(self.state.epoch or 0)}"\n'
        "        args = (args[0], vars(self).setdefault(first, args[1]), *args[2:])\n",
    ),
}  # fmt: skip

ESTIMATE = "            kl = self.log_ratios(prompts, others).mean().clamp(min=0)"
OTHERS = "others = completions[-1:] + completions[:-1]"
GAINS = "gains = 1 - (self.beta * (ratios - kl)).sigmoid()\n"
PAINS = "        pains = 1 - (self.beta * (kl - ratios)).sigmoid()\n"
JOINED = "torch.where(labels, desirable * gains, undesirable * pains).mean()"
SUMMED = "return (log_probs * trained[:, 1:]).sum(1)"
MASKED = "trained = mask.bool() & (torch.arange(width) >= starts)"
SHARE = "(loss / self.accumulation).backward()"
INTO_ONE_BY_HAND = {
    "eos-left-out": (
        {}, MASKED, MASKED + "\n        trained &= torch.arange(width) < mask.sum(1, True) - 1",
    ),
    "final-eos-dropped-when-pad-is-eos": (
        {"pad": EOS}, MASKED, MASKED.replace("mask.bool()", "(ids != pad)"),
    ),
    "padding-trained": ({}, MASKED, MASKED.replace("mask.bool()", "True")),
    "prompt-trained": ({}, MASKED, "trained = mask.bool()"),
    "label-ignored": ({}, 'row["label"] for', "True for"),
    "labels-swapped": (WEIGHTS, 'row["label"] for', 'not row["label"] for'),
    "weights-swapped": (
        WEIGHTS, "desirable, undesirable = self.weights", "undesirable, desirable = self.weights",
    ),
    "kl-not-detached": (
        LARGE, "with torch.no_grad():\n" + ESTIMATE, "if True:\n" + ESTIMATE,
    ),
    "kl-not-clamped": (LARGE, ESTIMATE, ESTIMATE.replace(".clamp(min=0)", "")),
    "kl-of-matched-pairs": (LARGE, OTHERS, "others = completions"),
    "kl-completions-reversed": (LARGE, OTHERS, "others = completions[::-1]"),
    "kl-of-each-row": (LARGE, ESTIMATE, ESTIMATE.replace(".mean()", "")),
    "kl-summed": (LARGE, ESTIMATE, ESTIMATE.replace("mean", "sum")),
    "kl-added": (LARGE, GAINS + PAINS, (GAINS + PAINS).replace("kl", "-kl")),
    "kl-ignored": (LARGE, ESTIMATE, ESTIMATE + " * 0"),
    "logarithm-of-the-sigmoid": (
        LARGE, GAINS + PAINS, (GAINS + PAINS).replace("1 - ", "-").replace("()\n", "().log()\n"),
    ),
    "sigmoid-left-out": (
        LARGE, GAINS + PAINS, (GAINS + PAINS).replace("1 - ", "-").replace(".sigmoid()", ""),
    ),
    "averages-for-sums": (LARGE, SUMMED, SUMMED + " / trained[:, 1:].sum(1)"),
    "sum-for-the-mean": ({}, JOINED, JOINED.replace("mean", "sum")),
    "micro-batches-summed": (PARTS, SHARE, "loss.backward()"),
    "divided-again-by-micro-batches": (PARTS, SHARE, "(loss / self.accumulation**2).backward()"),
    "same-slice-again": (
        {}, ".chunk(self.mini_batches):", ".chunk(self.mini_batches)[:1] * self.mini_batches:",
    ),
}  # fmt: skip
DECLARED = {"epochs": 1, "mini_batches": 2, "accumulation": 1}
BY_DAY = ["kl-not-detached", "kl-of-matched-pairs", "weights-swapped"]
# Found, and called something else, or nothing yet.
UNNAMED = set()


def by_hand(module):
    def mine(puppet, beta, desirable_weight, undesirable_weight):
        module.Trainer(puppet, beta, (desirable_weight, undesirable_weight)).train()

    return mine


@pytest.mark.parametrize("name", INTO_TRL)
@pytest.mark.night
def test_bugs_in_trl_are_found(name):
    options, right, wrong = INTO_TRL[name]
    run = KTO({}, planted(KTO_OF_TRL, right, wrong).KTOTrainer)
    contract = shakedown.KtoStep(**{**DECLARED, **options})
    must_be_found("trl", name, contract, run, UNNAMED)


@pytest.mark.parametrize("name", by_day(INTO_ONE_BY_HAND, BY_DAY))
def test_bugs_in_one_by_hand_are_found(name):
    options, right, wrong = INTO_ONE_BY_HAND[name]
    mine = by_hand(planted(KTO_BY_HAND, right, wrong))
    contract = shakedown.KtoStep(**{**DECLARED, **options})
    must_be_found("by hand", name, contract, mine, UNNAMED)
