"""Known bugs planted into trainers of SFT and DPO: the check finds them, by name."""

import definition
import pytest
from definition import EOS, is_passed, is_right, pairs_case, sft_case
from planting import DPO, DPO_BY_HAND, SFT, SFT_BY_HAND, by_day, must_be_found, planted
from trl import DPOConfig, SFTConfig

import shakedown
from shakedown.trainers import trl
from shakedown.trainers.puppets import PreferencePuppet, SftPuppet

BY_DAY = ["micro-batches-summed"]

PARTS = {"gradient_accumulation_steps": 2}
PAD_IS_EOS = {"pad": EOS}

# SFT of TRL
MASK = "[0] * prompt_len + [1] * (len(prompt_completion_ids) - prompt_len)\n"
LABEL = "token_id if all(bits) else -100"
PADDED = 'labels, padding_value=-100, padding_side="right"'
FORWARD = "outputs = model(**inputs, fused_lm_head=True)\n                    per_token_loss"
COUNT = (
    "num_tokens = outputs.label_mask.sum() if num_items_in_batch is None else num_items_in_batch"
)
MEAN = "loss = per_token_loss.sum() / torch.as_tensor(num_tokens).clamp(min=1)"
STEP = "    def training_step(self, *args, **kwargs):\n"
POSITIONS = "position_ids = [torch.cat(position_ids, dim=0)]"
FIRST_BATCH = (  # of each epoch
    '        first = f"first of {int(self.state.epoch or 0)}"\n'
    "        args = (args[0], vars(self).setdefault(first, args[1]), *args[2:])\n"
)


def masked_of_sft(code):
    """What is trained, and what is made of it."""
    return MASK + f"                        completion_mask = {code}\n"


# Known bug, or what it is where none is known: the configuration, options of the contract, the
# line, the wrong one.
INTO_SFT = {
    "prompt-trained": ({}, {}, MASK, "[1] * len(prompt_completion_ids)\n"),
    "what the user says is trained": (
        {"assistant_only_loss": True}, {},
        'if "assistant_masks" in column_names:', "if False:",
    ),
    "eos-left-out": (
        {}, {}, LABEL, f"token_id if all(bits) and token_id != {EOS} else -100",
    ),
    "the end is not appended": (
        {}, {}, '= example["completion"] + eos_token', '= example["completion"]',
    ),
    "final-eos-dropped-when-pad-is-eos": (
        {}, PAD_IS_EOS, "        if self.padding_free:\n            output[",
        '        output["labels"][output["input_ids"] == self.pad_token_id] = -100\n'
        "        if self.padding_free:\n            output[",
    ),
    "padding-trained": (
        {}, {}, PADDED, 'labels, padding_value=self.pad_token_id, padding_side="right"',
    ),
    "first-token-left-out": (
        {}, {}, MASK, masked_of_sft("[0, *completion_mask[:-1]]"),
    ),
    "mask-one-position-early": (
        {}, {}, MASK, masked_of_sft("[*completion_mask[1:], 0]"),
    ),
    "labels-shifted-twice": (
        {}, {}, FORWARD,
        'inputs["labels"] = torch.nn.functional.pad(inputs["labels"][:, 1:], (0, 1), value=-100)\n'
        "                    " + FORWARD,
    ),
    "mean-of-micro-batch-means": (
        PARTS, {}, COUNT,
        "num_tokens = outputs.label_mask.sum() * self.args.gradient_accumulation_steps",
    ),
    "micro-batches-summed": (
        PARTS, {}, MEAN, MEAN + " * self.args.gradient_accumulation_steps",
    ),
    "divided-again-by-micro-batches": (
        PARTS, {}, MEAN, MEAN + " / self.args.gradient_accumulation_steps",
    ),
    "sequence-mean-called-token-mean": (
        {}, {}, MEAN, "loss = (per_token_loss.sum(1) / outputs.label_mask.sum(1)).mean()",
    ),
    "untrained-tokens-counted": (
        {}, {}, COUNT, 'num_tokens = inputs["attention_mask"][:, 1:].sum()',
    ),
    "last-turn-alone": (
        {"assistant_only_loss": True}, {}, '                    return {"labels": labels}\n',
        "                    first = max(i for i, label in enumerate(labels) if label != -100)\n"
        "                    while labels[first - 1] != -100:\n"
        "                        first -= 1\n"
        '                    return {"labels": [-100] * first + labels[first:]}\n',
    ),
    "sign-flipped": (
        {}, {}, "per_token_loss = -outputs.log_probs", "per_token_loss = outputs.log_probs",
    ),
    "same-slice-again": ({}, {}, STEP, STEP + FIRST_BATCH),
    "dft-weight-not-detached": (
        {"loss_type": "dft"}, {}, "outputs.log_probs.exp().detach()", "outputs.log_probs.exp()",
    ),
    "dft-ignored": (
        {"loss_type": "dft"}, {}, 'if self.args.loss_type == "dft":\n', "if False:\n",
    ),
    "neighbours-seen": (
        {"padding_free": True}, {}, POSITIONS, "position_ids = [torch.arange(len(input_ids[0]))]",
    ),
}  # fmt: skip

LABELS = "[-100] * len(prompt) + ids[len(prompt) :]"
SCALED = "(loss / count).backward()"
INTO_SFT_BY_HAND = {
    "prompt-trained": ({}, LABELS, "list(ids)"),
    "eos-left-out": ({}, LABELS, "[-100] * len(prompt) + ids[len(prompt) : -1] + [-100]"),
    "final-eos-dropped-when-pad-is-eos": (
        PAD_IS_EOS, '        return {"ids"',
        '        labels[ids == pad] = -100\n        return {"ids"',
    ),
    "padding-trained": (
        {}, "labels + [-100] * (width - len(labels))", "labels + [pad] * (width - len(labels))",
    ),
    "first-token-left-out": (
        {}, LABELS, "[-100] * (len(prompt) + 1) + ids[len(prompt) + 1 :]",
    ),
    "mask-one-position-early": (
        {}, LABELS, "[-100] * (len(prompt) - 1) + ids[len(prompt) - 1 : -1] + [-100]",
    ),
    "labels not shifted": (
        {}, "targets = labels[:, 1:]", "targets = labels[:, :-1]",
    ),
    "labels-of-another-row": (
        {}, "targets = labels[:, 1:]", "targets = labels.roll(-1, 0)[:, 1:]",
    ),
    "gradient-detached-from-the-normaliser": (
        {}, "return losses.sum()",
        "chosen = logits.gather(-1, targets.clamp(min=0)[..., None]).squeeze(-1)\n"
        "        return -((chosen - logits.logsumexp(-1).detach()) * (targets != -100)).sum()",
    ),
    "dft-undeclared": (
        {}, "return losses.sum()", "return (losses * (-losses).exp().detach()).sum()",
    ),
    "mean-of-micro-batch-means": (
        {"accumulation": 2}, SCALED,
        '(loss / (batch["labels"][part] != -100).sum() / self.accumulation).backward()',
    ),
    "micro-batches-summed": (
        {"accumulation": 2}, SCALED, "(loss / count * self.accumulation).backward()",
    ),
    "divided-again-by-micro-batches": (
        {"accumulation": 2}, SCALED, "(loss / count / self.accumulation).backward()",
    ),
    "sequence-mean-called-token-mean": (
        {}, "return losses.sum()",
        "return (losses.sum(1) / (targets != -100).sum(1)).mean()"
        " * (targets != -100).sum()",
    ),
    "sign-flipped": ({}, SCALED, "(-loss / count).backward()"),
    "same-slice-again": (
        {}, "for rows in order.chunk(self.mini_batches):",
        "for rows in order.chunk(self.mini_batches)[:1] * self.mini_batches:",
    ),
    "gradients never cleared": ({}, "        self.optimizer.zero_grad()\n", ""),
    "an example left out of the second epoch": (
        {"epochs": 2}, "        self.optimizer.step()\n        self.optimizer.zero_grad()\n",
        "        self.optimizer.step()\n        self.optimizer.zero_grad()\n"
        "        self.examples = self.examples[:-1] + self.examples[:1]\n",
    ),
}  # fmt: skip

# DPO of TRL
IPO = {"loss_type": "ipo"}
ROBUST = {"loss_type": "robust", "label_smoothing": 0.1}
SIGMOID = "per_sequence_loss = -F.logsigmoid(self.beta * delta_score)\n"
DELTA = "delta_score = chosen_scores - rejected_scores"
BETA = "self.beta = args.beta"
REFERENCE = "ref_outputs = self.ref_model(**ref_model_kwargs"
TRAINED = "masked_fill(completion_mask == 0, -100)\n        outputs = model("
MASKS = "completion_mask = chosen_mask + rejected_mask"
SORTED = "logratios_sorted, _ = torch.sort(logratios, dim=0)\n                ref"
ADDED = "loss += per_sequence_loss.mean() * loss_weight"


def masked(code):
    """The policy's and the reference's tokens by another mask."""
    return f"masked_fill({code} == 0, -100)\n        outputs = model("


INTO_DPO = {
    "sign-flipped": ({}, {}, SIGMOID, SIGMOID.replace("-F", "F")),
    "sides swapped": (
        {}, {}, DELTA, "delta_score = rejected_scores - chosen_scores",
    ),
    "reference-ignored": (
        {}, {}, DELTA, "delta_score = chosen_logps - rejected_logps",
    ),
    "reference-added": (
        {}, {}, DELTA,
        "delta_score = chosen_logps + ref_chosen_logps - rejected_logps - ref_rejected_logps",
    ),
    "beta-not-applied": ({}, {}, BETA, "self.beta = 1.0"),
    "beta-applied-twice": ({"beta": 0.5}, {}, BETA, "self.beta = args.beta**2"),
    "reference-is-the-policy": (
        {}, {}, REFERENCE, "ref_outputs = self.model(**ref_model_kwargs",
    ),
    "reference-in-training-mode": (
        {}, {}, "self.accelerator.prepare_model(self.ref_model, evaluation_mode=True)",
        "self.ref_model.train()",
    ),
    "micro-batches-summed": (PARTS, {}, ADDED, ADDED + " * self.args.gradient_accumulation_steps"),
    "divided-again-by-micro-batches": (
        PARTS, {}, ADDED, ADDED + " / self.args.gradient_accumulation_steps",
    ),
    "sum-for-the-mean": ({}, {}, ADDED, "loss += per_sequence_loss.sum() * loss_weight"),
    "rejected-side-detached": (
        {}, {}, DELTA, "delta_score = chosen_scores - rejected_scores.detach()",
    ),
    "pairs-across": ({}, {}, DELTA, "delta_score = chosen_scores - rejected_scores.roll(1, 0)"),
    "eos-left-out": (
        {}, {}, MASKS, "completion_mask = [[*m[:-1], 0] for m in chosen_mask + rejected_mask]",
    ),
    "padding-trained": (
        {}, {}, "            completion_mask,\n            padding_value=0,",
        "            completion_mask,\n            padding_value=1,",
    ),
    "final-eos-dropped-when-pad-is-eos": (
        {}, PAD_IS_EOS, TRAINED,
        masked('(completion_mask * (inputs["input_ids"] != self.data_collator.pad_token_id))'),
    ),
    "prompts trained": (
        IPO, {}, TRAINED, masked('inputs["attention_mask"]'),
    ),
    "mask one position early": (
        {}, {}, TRAINED, masked("F.pad(completion_mask[:, 1:], (0, 1))"),
    ),
    "first token left out": (
        {}, {}, TRAINED, masked("(completion_mask * F.pad(completion_mask[:, :-1], (1, 0)))"),
    ),
    "ipo-on-sums": (
        IPO, {}, "ipo_delta = chosen_avg_score - rejected_avg_score", "ipo_delta = delta_score",
    ),
    "ipo-target": (IPO, {}, "(ipo_delta - 1 / (2 * self.beta))", "(ipo_delta - 1 / self.beta)"),
    "robust-not-normalised": (ROBUST, {}, " / (1 - 2 * self.label_smoothing)", ""),
    "label-smoothing-ignored": (
        {"loss_type": "robust", "label_smoothing": 0.1}, {},
        "self.label_smoothing = args.label_smoothing", "self.label_smoothing = 0.0",
    ),
    "one side of aot not sorted": (
        {"loss_type": "aot"}, {}, SORTED, "logratios_sorted = logratios\n                ref",
    ),
    "same-slice-again": ({}, {}, STEP, STEP + FIRST_BATCH),
}  # fmt: skip

MARGINS = "(chosen - ref_chosen) - (rejected - ref_rejected)"
LOSS = "-F.logsigmoid(self.beta * margins).mean()"
SHARE = "(loss / self.accumulation).backward()"
INTO_DPO_BY_HAND = {
    "sign-flipped": ({}, LOSS, LOSS[1:]),
    "sides swapped": (
        {}, MARGINS, "(rejected - ref_rejected) - (chosen - ref_chosen)",
    ),
    "reference-ignored": ({}, MARGINS, "chosen - rejected"),
    "reference-added": ({}, MARGINS, "(chosen + ref_chosen) - (rejected + ref_rejected)"),
    "reference-is-the-policy": (
        {}, "self.reference = puppet.model, puppet.reference",
        "self.reference = puppet.model, puppet.model",
    ),
    "reference-in-training-mode": (
        {}, "        with torch.no_grad():\n",
        "        self.reference.train()\n        with torch.no_grad():\n",
    ),
    "reference-trained": (
        {}, "with torch.no_grad():\n", "with torch.enable_grad():\n",
    ),
    "beta-not-applied": ({}, LOSS, "-F.logsigmoid(margins).mean()"),
    "beta-applied-twice": ({"beta": 0.5}, LOSS, "-F.logsigmoid(self.beta**2 * margins).mean()"),
    "sum-for-the-mean": ({}, LOSS, "-F.logsigmoid(self.beta * margins).sum()"),
    "margins averaged before the loss": (
        {}, LOSS, "-F.logsigmoid(self.beta * margins.mean())",
    ),
    "rejected-side-detached": ({}, MARGINS, MARGINS.replace("(rejected", "(rejected.detach()")),
    "pairs-across": ({}, MARGINS, "(chosen - ref_chosen) - (rejected - ref_rejected).roll(1, 0)"),
    "eos-left-out": (
        {}, "trained = mask.bool()", f"trained = mask.bool() & (ids != {EOS})",
    ),
    "padding-trained": (
        {}, "trained = mask.bool()", "trained = torch.ones_like(mask).bool()",
    ),
    "rejected-half-unmasked": (
        {}, "trained = mask.bool()",
        'trained = (mask if side == "chosen" else torch.ones_like(mask)).bool()',
    ),
    "final-eos-dropped-when-pad-is-eos": (
        PAD_IS_EOS, "trained = mask.bool()", "trained = (ids != pad)",
    ),
    "first token left out": ({}, ">= torch.tensor(", "> torch.tensor("),
    "averages for sums": (
        {}, "(log_probs * trained[:, 1:]).sum(1)",
        "(log_probs * trained[:, 1:]).sum(1) / trained.sum(1)",
    ),
    "micro-batches-summed": ({"accumulation": 2}, SHARE, "loss.backward()"),
    "divided-again-by-micro-batches": (
        {"accumulation": 2}, SHARE, "(loss / self.accumulation**2).backward()",
    ),
    "same-slice-again": (
        {}, ".chunk(self.mini_batches):", ".chunk(self.mini_batches)[:1] * self.mini_batches:",
    ),
}  # fmt: skip
DECLARED = {"epochs": 1, "mini_batches": 2, "accumulation": 1}


def sft_by_hand(module):
    def mine(puppet):
        module.Trainer(puppet).train()

    return mine


def dpo_by_hand(module):
    def mine(puppet, beta):
        module.Trainer(puppet, beta).train()

    return mine


# Without the check: each bug changes what is observed.


def is_seen(outputs, expected, rows):
    """Whether what was observed is not right."""
    return not (is_right(outputs, expected) and is_passed(outputs, rows, 2))


def sft_is_seen(outputs, case, loss="nll"):
    return is_seen(outputs, definition.sft(case, outputs["micro_batches"], loss), 8)


def dpo_is_seen(outputs, case, *how):
    return is_seen(outputs, definition.preference(case, outputs["micro_batches"], *how), 16)


@pytest.mark.parametrize("name", INTO_SFT)
def test_bugs_in_trl_s_sft_change_what_is_observed(name):
    config, options, right, wrong = INTO_SFT[name]
    trained = "turns" if "assistant_only_loss" in config else "completion"
    tokens, *_ = case = sft_case(0, trained=trained)
    tokens[tokens == definition.PAD] = options.get("pad", definition.PAD)
    run = trl.SFT(config)
    loss = config.get("loss_type", "nll")
    assert not sft_is_seen(run.train(*case, **options), case, loss)
    run = trl.SFT(config, planted(SFT, right, wrong).SFTTrainer)
    assert sft_is_seen(run.train(*case, **options), case, loss)


@pytest.mark.parametrize("name", INTO_SFT_BY_HAND)
def test_bugs_in_sft_by_hand_change_what_is_observed(name):
    options, right, wrong = INTO_SFT_BY_HAND[name]
    options = {"eos": EOS, "pad": definition.PAD, **DECLARED, **options}
    tokens, *_ = case = sft_case(0, updates=2 * options["epochs"])
    tokens[tokens == definition.PAD] = options["pad"]
    puppet = SftPuppet(*case, **options)
    sft_by_hand(planted(SFT_BY_HAND, right, wrong))(puppet)
    assert sft_is_seen(puppet.outputs(), case)


@pytest.mark.parametrize("name", INTO_DPO)
def test_bugs_in_trl_s_dpo_change_what_is_observed(name):
    config, options, right, wrong = INTO_DPO[name]
    tokens, *_ = case = pairs_case(0)
    tokens[tokens == definition.PAD] = options.get("pad", definition.PAD)
    declared = trl.options_of(config, DPOConfig)[0]
    how = declared["kind"], declared["beta"], declared["label_smoothing"]
    assert not dpo_is_seen(trl.DPO(config).train(*case, **options), case, *how)
    run = trl.DPO(config, planted(DPO, right, wrong).DPOTrainer)
    assert dpo_is_seen(run.train(*case, **options), case, *how)


@pytest.mark.parametrize("name", INTO_DPO_BY_HAND)
def test_bugs_in_dpo_by_hand_change_what_is_observed(name):
    options, right, wrong = INTO_DPO_BY_HAND[name]
    cut = {**DECLARED, **options}
    beta = cut.pop("beta", 0.1)
    tokens, *_ = case = pairs_case(0, updates=2)
    tokens[tokens == definition.PAD] = cut.get("pad", definition.PAD)
    puppet = PreferencePuppet(*case, eos=EOS, **{"pad": definition.PAD, **cut})
    dpo_by_hand(planted(DPO_BY_HAND, right, wrong))(puppet, beta)
    assert dpo_is_seen(puppet.outputs(), case, "sigmoid", beta)


# By the check, which names them.

# Found, and called something else, or nothing yet.
UNNAMED = {
    ("SFT of trl", "same-slice-again"),  # rows that are trained twice
    ("SFT of trl", "neighbours-seen"),  # other gradients fall on `unknown`
    ("SFT by hand", "labels-of-another-row"),  # the next one of a shuffled batch
    ("DPO of trl", "label-smoothing-ignored"),  # label_smoothing: 0
    # Rows that are full have no place behind their end.
    ("DPO by hand", "padding-trained"),
    ("DPO by hand", "rejected-half-unmasked"),
}


@pytest.mark.parametrize("name", INTO_SFT)
@pytest.mark.night
def test_bugs_in_trl_s_sft_are_found(name):
    config, options, right, wrong = INTO_SFT[name]
    declared, _ = trl.options_of(config, SFTConfig)
    run = trl.SFT(config, planted(SFT, right, wrong).SFTTrainer)
    must_be_found("SFT of trl", name, shakedown.SftStep(**{**declared, **options}), run, UNNAMED)


@pytest.mark.parametrize("name", by_day(INTO_SFT_BY_HAND, BY_DAY))
def test_bugs_in_sft_by_hand_are_found(name):
    options, right, wrong = INTO_SFT_BY_HAND[name]
    mine = sft_by_hand(planted(SFT_BY_HAND, right, wrong))
    must_be_found("SFT by hand", name, shakedown.SftStep(**{**DECLARED, **options}), mine, UNNAMED)


@pytest.mark.parametrize("name", INTO_DPO)
@pytest.mark.night
def test_bugs_in_trl_s_dpo_are_found(name):
    config, options, right, wrong = INTO_DPO[name]
    declared, _ = trl.options_of(config, DPOConfig)
    run = trl.DPO(config, planted(DPO, right, wrong).DPOTrainer)
    must_be_found(
        "DPO of trl", name, shakedown.PreferenceStep(**{**declared, **options}), run, UNNAMED
    )


@pytest.mark.parametrize("name", by_day(INTO_DPO_BY_HAND, BY_DAY))
def test_bugs_in_dpo_by_hand_are_found(name):
    options, right, wrong = INTO_DPO_BY_HAND[name]
    mine = dpo_by_hand(planted(DPO_BY_HAND, right, wrong))
    must_be_found(
        "DPO by hand", name, shakedown.PreferenceStep(**{**DECLARED, **options}), mine, UNNAMED
    )
