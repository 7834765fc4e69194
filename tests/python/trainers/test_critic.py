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


# Known bug, or what it is where none is known: options, the line, the wrong one.
PARTS = {"accumulation": 2}
TOOLS = {"holes": True}

READ = "[:, -width - 1 : -1, 0]"
OLD = "            old = self.values(ids, seen, mask.shape[1])\n"
KLS = "-self.beta * kls"
LAST = "last = mask.int().cumsum(1).argmax(1, keepdim=True)"
SCORED = "scatter_add(1, last, scores)"
ERROR = "error = rewards[:, t] + self.gamma * following - values[:, t]"
AHEAD = "torch.where(mask[:, t], error + self.gamma * self.lam * ahead, ahead)"
FOLLOWING = "torch.where(mask[:, t], values[:, t], following)"
RETURNED = "return torch.stack(advantages, 1) + values"
MADE = "padded(given, old.dtype) if given else self.returns(rows, old, mask)"
VALUES = "                    values = self.values(ids[part], seen[part], mask.shape[1])\n"
BATCH = "            for batch in torch.randperm(len(ids)).chunk(self.puppet.mini_batches):\n"
ERRORS = "losses = (values - returns[part]) ** 2"
CLAMPED = "(values - old[part]).clamp(-self.clip, self.clip)"
LARGER = "torch.maximum(losses, (held - returns[part]) ** 2)"
LOSS = "0.5 * losses[mask[part]].sum() / mask[batch].sum()"
INTO_ONE_BY_HAND = {
    "values-one-step-late": ({}, READ, "[:, -width:, 0]"),
    "values-one-step-early": ({}, READ, "[:, -width - 2 : -2, 0]"),
    "bootstrap-past-the-end": (
        {}, OLD,
        OLD + "            past = self.model(input_ids=ids, attention_mask=seen)"
        ".logits[:, -mask.shape[1] :, 0]\n"
        "            last = mask.int().cumsum(1).argmax(1, keepdim=True)\n"
        "            past = past.gather(1, last)[:, 0].tolist()\n"
        "            rows = [{**row, 'score': row['score'] + self.gamma * v}"
        " for row, v in zip(rows, past)]\n",
    ),
    "padding-trained": ({}, LOSS, "0.5 * losses.mean() * len(part) / len(batch)"),
    "observations-trained": (
        TOOLS, LOSS,
        "(0.5 * losses * (seen[part, -mask.shape[1] :])).sum() / seen[batch, "
        "-mask.shape[1] :].sum()",
    ),
    "last-token-left-out": (
        {}, LOSS,
        LOSS.replace("[mask[part]]", "[:, :-1][mask[part, 1:]]")
        .replace("mask[batch]", "mask[batch, 1:]"),
    ),
    "score-at-the-first-token": ({}, SCORED, "scatter_add(1, 0 * last, scores)"),
    "score-before-the-last-token": ({}, SCORED, "scatter_add(1, (last - 1).clamp(min=0), scores)"),
    "score-at-every-token": ({}, SCORED, "add(scores * mask)"),
    "kl-left-out": ({}, KLS, "-0 * kls"),
    "penalty-added": ({}, KLS, "self.beta * kls"),
    "kl-subtracted-twice": ({}, KLS, "-2 * self.beta * kls"),
    "next-value-not-discounted": ({}, ERROR, ERROR.replace("self.gamma * ", "")),
    "value-not-subtracted": ({}, ERROR, ERROR.replace(" - values[:, t]", "")),
    "carry-left-out": ({}, AHEAD, "torch.where(mask[:, t], error, ahead)"),
    "lambda-not-applied": ({}, AHEAD, AHEAD.replace(" * self.lam", "")),
    "reset-at-observation": (
        TOOLS, f"{AHEAD}\n            following = {FOLLOWING}",
        f"{AHEAD}\n            following = {FOLLOWING}".replace(", ahead)", ", 0 * error)")
        .replace(", following)", ", 0 * error)"),
    ),
    "the returns come in reverse": (
        {}, "for t in reversed(range(mask.shape[1])):", "for t in range(mask.shape[1]):",
    ),
    "advantages-trained": ({}, RETURNED, "return torch.stack(advantages, 1)"),
    "returns-whitened": (
        {}, RETURNED,
        "returns = torch.stack(advantages, 1) + values\n"
        "        kept = returns[mask]\n"
        "        return (returns - kept.mean()) / (kept.var() + 1e-8).sqrt()",
    ),
    "sign-of-the-return-flipped": ({}, ERRORS, "losses = (values + returns[part]) ** 2"),
    "returns-of-another-row": (
        {}, MADE, MADE + "\n        returns = returns.roll(1, 0)",
    ),
    "returns-recomputed": (
        {}, BATCH,
        "            with torch.no_grad():\n"
        "                now = self.values(ids, seen, mask.shape[1])\n"
        "            returns = self.returns(rows, now, mask)\n" + BATCH,
    ),
    "old-values-recomputed": (
        {}, BATCH,
        "            with torch.no_grad():\n"
        "                old = self.values(ids, seen, mask.shape[1])\n" + BATCH,
    ),
    "gradient-through-the-targets": (
        {"clip": None, "beta": 0.0}, VALUES,
        VALUES + "                    returns = returns.detach().clone()\n"
        "                    own = [rows[row] for row in part]\n"
        "                    returns[part] = self.returns(own, values, mask[part])\n",
    ),
    "smaller-error": ({}, LARGER, LARGER.replace("maximum", "minimum")),
    "clip-without-effect": ({}, CLAMPED, "values - old[part]"),
    "clipped-error-only": ({}, LARGER, "(held - returns[part]) ** 2"),
    "clip-around-the-return": (
        {}, "old[part] + " + CLAMPED,
        "returns[part] + (values - returns[part]).clamp(-self.clip, self.clip)",
    ),
    "half-factor-lost": ({}, LOSS, LOSS.replace("0.5 * ", "")),
    "absolute-error": ({"clip": None}, ERRORS, "losses = (values - returns[part]).abs()"),
    "row-means-for-the-token-mean": (
        {}, LOSS,
        "0.5 * ((losses * mask[part]).sum(1) / mask[part].sum(1)).sum() / len(batch)",
    ),
    "sum-for-mean": ({}, LOSS, "0.5 * losses[mask[part]].sum()"),
    "mean-of-micro-batch-means": (PARTS, LOSS, "0.5 * losses[mask[part]].mean() / 2"),
    "micro-batches-summed": (PARTS, LOSS, "2 * " + LOSS),
    "divided-again-by-micro-batches": (PARTS, LOSS, LOSS + " / 2"),
    "only-the-last-micro-batch": (
        PARTS, VALUES, "                    self.optimizer.zero_grad()\n" + VALUES,
    ),
    "same-slice-again": (
        {}, ".chunk(self.puppet.mini_batches):",
        ".chunk(self.puppet.mini_batches)[:1] * self.puppet.mini_batches:",
    ),
}  # fmt: skip
BY_DAY = ["values-one-step-late", "mean-of-micro-batch-means"]
# Found, and called something else, or nothing yet.
UNNAMED = set()


@pytest.mark.parametrize("name", by_day(INTO_ONE_BY_HAND, BY_DAY))
def test_bugs_in_one_by_hand_are_found(name):
    options, right, wrong = INTO_ONE_BY_HAND[name]
    mine = by_hand(planted(CRITIC_BY_HAND, right, wrong))
    must_be_found("by hand", name, shakedown.CriticStep(**{**DECLARED, **options}), mine, UNNAMED)
