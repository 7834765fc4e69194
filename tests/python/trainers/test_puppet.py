"""Puppets: a hand-written trainer against plain torch, TRL's against golden values, and mistakes.

No gradient is compared with what the puppet itself computed.
"""

import copy
import dataclasses
import json
import pathlib
import random
import re

import numpy
import pytest
import torch
from trl import GRPOConfig, GRPOTrainer

from shakedown import UsageError
from shakedown.trainers.puppet import Strayed
from shakedown.trainers.puppets import GrpoPuppet as Puppet
from shakedown.trainers.trl import GRPO, options_of

EOS, PAD = [1, 2], 0
LOW, HIGH, BETA, TEMPERATURE = 0.2, 0.3, 0.1, 0.7


class Trainer:
    """GRPO in 40 lines, as people write it; `wrong` names a mistake to make."""

    def __init__(self, model, reference, tokenizer, reward, optimizer, group, wrong=None):
        self.model, self.reference, self.tokenizer = model, reference, tokenizer
        self.reward, self.optimizer, self.group, self.wrong = reward, optimizer, group, wrong

    def log_probs(self, model, ids, mask, length):
        mask = None if self.wrong == "attention mask forgotten" else mask
        logits = model(input_ids=ids, attention_mask=mask).logits[:, -length - 1 : -1]
        chosen = ids[:, -length:, None]
        return (logits / TEMPERATURE).log_softmax(-1).gather(-1, chosen).squeeze(-1)

    def step(self, prompts, iterations, mini_batches, micro_batches):
        repeated = [prompt for prompt in prompts for _ in range(self.group)]
        inputs = self.tokenizer.pad({"input_ids": repeated}, return_tensors="pt")
        ids = self.model.generate(**inputs)
        completions = ids[:, inputs["input_ids"].shape[1] :]
        ends = torch.isin(completions, torch.tensor(EOS))
        before = 0 if self.wrong == "eos left out" else ends.long()
        counts = ends.cumsum(1) - before == 0
        mask = torch.cat([inputs["attention_mask"], counts.long()], dim=1)
        if self.wrong == "reward asked twice":
            self.reward(repeated, completions)
        scores = torch.tensor(self.reward(repeated, completions)).double().view(-1, self.group)
        centred = scores - scores.mean(1, keepdim=True)
        advantages = (centred / (scores.std(1, keepdim=True) + 1e-4)).view(-1, 1)
        if self.wrong == "reference in training mode":
            self.reference.train()
        with torch.set_grad_enabled(self.wrong == "gradient of the reference"):
            ref = self.log_probs(self.reference, ids, mask, counts.shape[1])
        with torch.no_grad():
            old = self.log_probs(self.model, ids, mask, counts.shape[1])
        for rows in [*torch.arange(len(ids)).chunk(mini_batches)] * iterations:
            for part in rows.chunk(micro_batches):
                new = self.log_probs(self.model, ids[part], mask[part], counts.shape[1])
                ratio, drift = (new - old[part]).exp(), ref[part] - new
                weighted = [it * advantages[part] for it in (ratio, ratio.clamp(1 - LOW, 1 + HIGH))]
                losses = -torch.minimum(*weighted) + BETA * (drift.exp() - drift - 1)
                ((losses * counts[part]).sum() / counts[rows].sum()).backward(retain_graph=True)
            self.optimizer.step()
            self.optimizer.zero_grad()


def train(puppet, wrong=None):
    """What it takes to attach it."""
    mine = puppet.model, puppet.reference, puppet.tokenizer, puppet.reward, puppet.optimizer
    trainer = Trainer(*mine, puppet.group, wrong)
    for prompts in puppet.batches:
        trainer.step(prompts, puppet.iterations, puppet.mini_batches, puppet.accumulation)
    if wrong == "an update more":
        puppet.optimizer.step()
    return puppet.outputs()


CUT = {"generations": 2, "iterations": 2, "mini_batches": 2, "accumulation": 2}
NUMBER, GROUP, LENGTH, SIZE = 4, 4, 4, 7


def a_case(seed, dtype=torch.float64, updates=8):
    """tokens, rewards, logits, ref_logits: the policy drifts from update to update."""
    torch.manual_seed(seed)
    tokens = torch.randint(SIZE, (NUMBER, GROUP, LENGTH))
    tokens[:, 3] = tokens[:, 0]  # equal completions
    tokens[:, 1, 0] = tokens[:, 0, 0]  # equal prefixes
    ended = torch.isin(tokens, torch.tensor(EOS)).cumsum(-1)
    tokens[(ended - torch.isin(tokens, torch.tensor(EOS)).long()) > 0] = PAD
    rewards = torch.randn(LENGTH, SIZE)[torch.arange(LENGTH), tokens].sum(-1, keepdim=True)
    shape = NUMBER, GROUP, LENGTH, SIZE
    logits = 2 * torch.randn(shape) + 0.2 * torch.randn(updates, *shape).cumsum(0)
    return tokens, rewards.to(dtype), logits.to(dtype), (2 * torch.randn(shape)).to(dtype)


def a_puppet(seed=0, **cut):
    tokens, *others = a_case(seed)
    return Puppet(tokens, *others, eos=EOS, pad=PAD, **{**CUT, **cut})


def by_hand(tokens, rewards, logits, ref_logits):
    """The gradients that the trainer above has to compute, without a model."""
    places = torch.arange(tokens.numel()).view(tokens.shape)
    firsts = places.clone()
    for p in range(NUMBER):
        for t in range(LENGTH):
            for g in range(GROUP - 1, -1, -1):
                same = (tokens[p, :, :t] == tokens[p, g, :t]).all(-1)
                firsts[p, same, t] = places[p, g, t]  # at last of the smallest g

    def log_probs(table):
        spread = (table.reshape(-1, SIZE)[firsts] / TEMPERATURE).log_softmax(-1)
        return spread.gather(-1, tokens[..., None]).squeeze(-1)

    ends = torch.isin(tokens, torch.tensor(EOS)).long()
    counts = ends.cumsum(-1) - ends == 0
    scores = rewards[..., 0]
    advantages = (scores - scores.mean(1, keepdim=True)) / (scores.std(1, keepdim=True) + 1e-4)
    grads = []
    for update, table in enumerate(logits):
        generation, half = update // 4, update % 2  # 2 iterations of 2 mini-batches
        rows = torch.zeros(NUMBER, GROUP, 1, dtype=torch.bool)
        rows[2 * generation + half] = True
        table = table.clone().requires_grad_()
        new, old = log_probs(table), log_probs(logits[4 * generation])
        ratio, drift = (new - old).exp(), log_probs(ref_logits) - new
        kl = BETA * (drift.exp() - drift - 1)
        clipped = ratio.clamp(1 - LOW, 1 + HIGH)
        losses = -torch.minimum(ratio * advantages[..., None], clipped * advantages[..., None]) + kl
        kept = counts & rows
        (losses[kept].sum() / kept.sum()).backward()
        grads.append(table.grad)
    return torch.stack(grads)


@pytest.mark.parametrize("seed", range(5))
def test_a_right_trainer_gives_the_gradients_of_plain_torch(seed):
    outputs = train(a_puppet(seed))
    expected = by_hand(*a_case(seed))
    assert expected.abs().amax(dim=(1, 2, 3, 4)).min() > 1e-3
    torch.testing.assert_close(outputs["gradient"], expected, rtol=1e-10, atol=1e-13)
    assert outputs["micro_batches"].tolist() == [
        [[first, first + 1], [first + 2, first + 3]] for first in [0, 4, 0, 4, 8, 12, 8, 12]
    ]
    assert not outputs["unknown"].any() and not outputs["ref_gradient"]
    assert not outputs["ref_training"]
    assert (outputs["scored"] == 1).all() and outputs["scored"].shape == (NUMBER, GROUP, 1)


def test_one_puppet_serves_many_cases():
    puppet = a_puppet(0)
    train(puppet)
    puppet.load(*a_case(1))
    again, fresh = train(puppet), train(a_puppet(1))
    assert all(torch.equal(again[name], fresh[name]) for name in fresh)


def test_a_puppet_serves_other_lengths_and_vocabularies():
    puppet = a_puppet(0)
    train(puppet)
    tokens, rewards, logits, ref_logits = a_case(1)
    shorter = tokens[..., :3], rewards, logits[..., :3, :6], ref_logits[..., :3, :6]
    shorter[0][shorter[0] == 6] = 5
    puppet.load(*shorter)
    again, fresh = train(puppet), train(Puppet(*shorter, eos=EOS, pad=PAD, **CUT))
    assert all(torch.equal(again[name], fresh[name]) for name in fresh)
    assert again["gradient"].any()


def test_logits_behind_equal_prefixes_are_those_of_the_first_row_and_others_are_never_read():
    tokens, rewards, logits, ref_logits = a_case(0)
    logits[:, :, 1, :2] = ref_logits[:, 1, :2] = float("nan")  # as row 0, up to its first token
    logits[:, :, 3] = ref_logits[:, 3] = float("nan")  # as row 0 altogether
    puppet = a_puppet(0)
    puppet.load(tokens, rewards, logits, ref_logits)
    torch.testing.assert_close(train(puppet)["gradient"], train(a_puppet(0))["gradient"])


def test_a_forgotten_attention_mask_is_seen_as_gradients_outside():
    assert train(a_puppet(), "attention mask forgotten")["unknown"].max() > 1e-2


def test_a_reference_in_training_mode_is_seen():
    assert train(a_puppet(), "reference in training mode")["ref_training"]


def test_a_gradient_of_the_reference_is_seen():
    outputs = train(a_puppet(), "gradient of the reference")
    assert outputs["ref_gradient"] > 1e-4
    torch.testing.assert_close(outputs["gradient"], train(a_puppet())["gradient"])


def test_rewards_that_are_asked_twice_are_counted():
    assert (train(a_puppet(), "reward asked twice")["scored"] == 2).all()


def test_an_end_that_is_not_trained_has_no_gradient():
    tokens = a_case(0)[0]
    ends = torch.isin(tokens, torch.tensor(EOS))
    for p, g, t in ends.nonzero().tolist():  # no other row has the same prefix
        alike = (tokens[p, :, :t] == tokens[p, g, :t]).all(-1)
        ends[p, g, t] = alike.sum() == 1
    right, wrong = (train(a_puppet(), it)["gradient"] for it in (None, "eos left out"))
    assert ends.any()
    assert right[:, ends].any() and not wrong[:, ends].any()


def test_the_number_of_updates_must_be_the_declared_one():
    with pytest.raises(Strayed, match=r"^the trainer made 9 updates, 8 are declared: train"):
        train(a_puppet(), "an update more")
    puppet = a_puppet()
    puppet.optimizer.step()
    with pytest.raises(Strayed, match=r"^the trainer made 1 updates, 8 are declared: train"):
        puppet.outputs()


def test_updates_without_any_backward_pass_are_no_training():
    puppet = a_puppet()
    for _ in range(8):
        puppet.optimizer.step()
    with pytest.raises(Strayed, match=r"^no update had a backward pass through `puppet.model`$"):
        puppet.outputs()


def test_completions_come_in_order_and_are_only_those_of_the_case():
    puppet = a_puppet()
    prompt = torch.tensor([puppet.batches[0][0]])
    tokens = a_case(0)[0]
    first, *others = (puppet.model.generate(prompt)[0, prompt.shape[1] :] for _ in range(2))
    others += puppet.model.generate(prompt, num_return_sequences=2)[:, prompt.shape[1] :]
    for g, completion in enumerate([first, *others]):
        assert completion.tolist() == tokens[0, g, : len(completion)].tolist()
    with pytest.raises(Strayed, match=r"^5 completions were asked for \[3, 4\], 4 are declared$"):
        puppet.model.generate(prompt)
    with pytest.raises(Strayed, match=r"^completions were asked for \[3, 3\], no prompt"):
        puppet.model.generate(torch.tensor([[3, 3]]))


def test_rewards_are_found_by_words_and_by_ids_and_refuse_other_pairs():
    tokens = torch.tensor([[[3, 4, 1], [4, 4, 5], [5, 1, 0]]])
    rewards = torch.tensor([[[0.5, 1.0], [1.5, float("nan")], [2.5, 3.0]]])
    case = tokens, rewards, torch.zeros(1, 1, 3, 3, 6)
    puppet = Puppet(*case, eos=[1, 2], pad=0)
    prompts = puppet.batches[0] * 3
    texts = puppet.tokenizer.batch_decode(tokens[0], skip_special_tokens=True)
    assert texts == ["t03 t04", "t04 t04 t05", "t05"]
    first, second = puppet.rewards
    assert first([puppet.words(it) for it in prompts], texts) == [0.5, 1.5, 2.5]
    assert second(prompts, ["any"] * 3, completion_ids=tokens[0].tolist()) == [1.0, None, 3.0]
    with pytest.raises(Strayed, match=r"prompt \[3, 4\] with completion \[4, 4\], which was never"):
        first(prompts[:1], ["t04 t04"])
    with pytest.raises(Strayed, match=r"^rewards were asked for 1 prompts with 3 completions"):
        first(prompts[:1], texts)
    with pytest.raises(UsageError, match=r"2 reward functions: `puppet.rewards`"):
        puppet.reward  # noqa: B018


def test_prompts_have_different_lengths_and_none_begins_another():
    assert a_puppet().prompts == [(3, 4), (3, 3, 4), (3, 3, 3, 4), (3, 3, 3, 3, 4)]
    with pytest.raises(UsageError, match=r"prompt \[5\] is the beginning of prompt \[5, 3\]"):
        a_puppet(prompts=[[5], [5, 3], [4], [6]])
    with pytest.raises(UsageError, match=r"^a prompt begins with the pad, 0, or is empty$"):
        a_puppet(prompts=[[0, 5], [3], [4], [6]])


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(UsageError, match=r"^4 updates are declared, and there are logits of 8$"):
        a_puppet(iterations=1)
    with pytest.raises(UsageError, match=r"^4 prompts cannot be split evenly into 3 generations$"):
        a_puppet(generations=3)
    with pytest.raises(UsageError, match=r"^8 rows of a generation cannot be split evenly into 2 "):
        a_puppet(accumulation=3)
    tokens, rewards, logits, _ = a_case(0)
    with pytest.raises(UsageError, match="the case has the shapes"):
        a_puppet().load(tokens, rewards, logits)
    with pytest.raises(UsageError, match=r"^tokens are \[4, 4, 3\], expected \[4, 4, 4\]$"):
        Puppet(tokens[..., :3], rewards, logits, eos=EOS, pad=PAD, **CUT)
    with pytest.raises(UsageError, match=r"^of 4 ids, two at least must be neither pad nor eos$"):
        Puppet(tokens, rewards, logits[..., :4], eos=EOS, pad=PAD, **CUT)


def test_padding_packing_and_other_forms_of_a_model_give_the_same_logits():
    puppet = a_puppet()
    tokens, _, logits, _ = a_case(0)
    rows = [[*puppet.prompts[p], *tokens[p, 0].tolist()] for p in (0, 1)]
    for p, row in enumerate(rows):
        wanted = logits[0, p, 0, 0]
        at = len(puppet.prompts[p]) - 1
        padded = torch.tensor([[PAD, PAD, *row]])
        mask = torch.tensor([[0, 0, *[1] * len(row)]])
        for found in (
            puppet.model(torch.tensor([row])).logits[0, at],
            puppet.model(padded, mask).logits[0, at + 2],
            puppet.model(padded, mask, logits_to_keep=len(row)).logits[0, at],
            puppet.logits(padded, mask)[0, at + 2],
        ):
            assert torch.equal(found, wanted)
    positions = torch.tensor([[*range(len(rows[0])), *range(len(rows[1]))]])
    packed = puppet.model(torch.tensor([sum(rows, [])]), position_ids=positions).logits
    assert torch.equal(packed[0, len(rows[0]) + len(puppet.prompts[1]) - 1], logits[0, 1, 0, 0])
    packed.sum().backward()
    for _ in range(8):
        puppet.optimizer.step()
    assert puppet.outputs()["micro_batches"][0].tolist() == [[0, GROUP]]


def test_a_copy_of_the_model_is_the_reference():
    puppet = a_puppet()
    ids = torch.tensor([list(puppet.prompts[0])])
    copied = copy.deepcopy(puppet.model)
    assert torch.equal(copied(ids).logits, puppet.reference(ids).logits)


# TRL, unmodified.

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "grpo_steps.json"
CASES = json.loads(GOLDEN.read_text())["cases"]
OF_THE_CASE = {
    "eos", "num_generations", "pad", "per_device_train_batch_size", "rewards",
}  # fmt: skip


class Runs(GRPO):
    """Losses that the contract does not judge have golden values too."""

    @classmethod
    def must_be_judged(cls, settings):
        pass


class Golden:
    """A golden case as arrays. The dataset was shuffled there: its prompts are brought into the
    order in which they were generated."""

    def __init__(self, case):
        self.configuration, self.steps = case["configuration"], case["steps"]
        self.group = self.configuration["num_generations"]
        self.generations = len(case["prompts"])
        per = len(self.steps) // self.generations
        halves = [self.steps[i : i + per] for i in range(0, len(self.steps), per)]
        order = [pair for half in halves for pair in sorted({(c, i) for c, i, _ in rows_of(half)})]
        self.prompts = [case["prompts"][c][i] for c, i in order]
        completions = [case["completions"][c][i] for c, i in order]
        self.number = {pair: p for p, pair in enumerate(order)}

        shape = len(order), self.group, self.configuration["max_completion_length"]
        self.tokens = torch.full(shape, self.configuration["pad"])
        self.where = torch.zeros(shape, dtype=torch.long)  # of each prefix in a table
        at = {tuple(prefix or ()): i for i, prefix in enumerate(case["prefixes"])}
        for p, group in enumerate(completions):
            for g, ids in enumerate(group):
                self.tokens[p, g, : len(ids)] = torch.tensor(ids)
                for t in range(len(ids)):
                    self.where[p, g, t] = at[(*self.prompts[p], *ids[:t])]
        rewards = [case["rewards"][c][i] for c, i in order]
        self.rewards = torch.tensor(numpy.array(rewards, dtype=numpy.float32))
        self.logits = torch.stack([self._laid_out(table) for table in case["tables"]])
        self.ref_logits = self._laid_out(case["reference"]) if "reference" in case else None

    def _laid_out(self, table):
        table = torch.tensor(table)
        table[0] = 0.0  # where there is no token
        return table[self.where]

    def row(self, c, i, g):
        return self.number[c, i] * self.group + g

    def shuffles(self):
        """The order of the rows of each generation, read off its first pass."""
        size = len(self.prompts) // self.generations * self.group
        per = len(self.steps) // self.generations
        for generation in range(self.generations):
            rows = [self.row(*it) for it in rows_of(self.steps[generation * per :])][:size]
            yield torch.tensor(rows) - generation * size

    def run(self):
        free = {it: self.configuration[it] for it in {*self.configuration} - OF_THE_CASE}
        ids = {"eos": self.configuration["eos"], "pad": self.configuration["pad"]}
        case = self.tokens, self.rewards, self.logits, self.ref_logits
        return Runs(free).train(*case, **ids, generations=self.generations, prompts=self.prompts)


def rows_of(steps):
    return [tuple(row) for step in steps for part in step["micro_batches"] for row in part]


@pytest.mark.parametrize("case", CASES, ids=lambda it: it["configuration"]["loss_type"])
def test_trl_gives_the_golden_gradients(case, monkeypatch):
    """The trainer shuffles the rows of a generation. Its permutations are exchanged for those that
    were observed with the golden values, so that all of these can be compared.

    The trainer computes in f32: the largest error seen is 2e-6 of an update's largest gradient,
    and 2e-5 where terms cancel, so 1e-4 of it is allowed. Advantages that should be 0 are rounding
    errors over 1e-4: so is 1e-7 wherever nothing should move.
    """
    golden = Golden(case)
    shuffles = golden.shuffles()
    monkeypatch.setattr(torch, "randperm", lambda _: next(shuffles))
    outputs = golden.run()
    assert [
        [[row for row in part if row >= 0] for part in update]
        for update in outputs["micro_batches"].tolist()
    ] == [[[golden.row(*it) for it in part] for part in s["micro_batches"]] for s in golden.steps]
    for grad, step in zip(outputs["gradient"].double(), golden.steps):
        expected = torch.tensor(step["gradient"], dtype=torch.float64)
        found = torch.zeros_like(expected)
        found.index_add_(0, golden.where.flatten(), grad.flatten(0, 2))
        allowed = 1e-4 * expected.abs().max() + 1e-7
        assert (found - expected).abs().max() <= allowed
    assert not outputs["unknown"].any() and (outputs["scored"] == 1).all()
    assert not outputs.get("ref_gradient") and not outputs.get("ref_training")


def a_run(config, case, **others):
    return GRPO(config, **others).train(*case)


TWO_UPDATES = a_case(0, torch.float32, updates=2)


def test_trl_leaves_random_states_and_streams_as_they_were(capfd):
    random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
    drawn = random.random(), numpy.random.rand(), torch.rand(1)
    random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
    a_run({"beta": 0.1}, TWO_UPDATES)
    assert drawn == (random.random(), numpy.random.rand(), torch.rand(1))
    assert capfd.readouterr() == ("", "")


def test_trl_reports_nothing_to_anybody(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.delenv("CI", raising=False)
    sent = []
    starts = "huggingface_hub.utils._telemetry._start_telemetry_thread"
    monkeypatch.setattr(starts, lambda: sent.append("telemetry"))
    a_run({}, TWO_UPDATES[:3])
    assert not sent


def test_a_seed_is_another_shuffle_and_nothing_else():
    run = GRPO({"loss_type": "grpo", "beta": 0.1})
    first, again, other = (run.train(*TWO_UPDATES, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first["micro_batches"], again["micro_batches"])
    assert not torch.equal(first["micro_batches"], other["micro_batches"])
    torch.testing.assert_close(first["gradient"], other["gradient"])


def test_a_subclass_is_checked_in_the_place_of_the_trainer():
    class Doubled(GRPOTrainer):
        def compute_loss(self, *args, **kwargs):
            return 2 * super().compute_loss(*args, **kwargs)

    once, twice = (a_run({}, TWO_UPDATES[:3], trainer=it) for it in (GRPOTrainer, Doubled))
    assert once["gradient"].any()
    torch.testing.assert_close(2 * once["gradient"], twice["gradient"])


def test_a_subclass_of_the_configuration_reaches_its_trainer(tmp_path):
    @dataclasses.dataclass
    class Config(GRPOConfig):
        factor: float = 1.0

    class Scaled(GRPOTrainer):
        def compute_loss(self, *args, **kwargs):
            return self.args.factor * super().compute_loss(*args, **kwargs)

    config = Config(output_dir=str(tmp_path), bf16=False, use_cpu=True, factor=3.0)
    assert options_of(config)[1] == ["factor"]
    once, thrice = a_run({}, TWO_UPDATES[:3]), a_run(config, TWO_UPDATES[:3], trainer=Scaled)
    torch.testing.assert_close(3 * once["gradient"], thrice["gradient"])


def test_a_trainer_that_raised_is_built_anew():
    class Fails(GRPOTrainer):
        def compute_loss(self, *args, **kwargs):
            if failing:
                raise RuntimeError("mine")
            return super().compute_loss(*args, **kwargs)

    run = GRPO(trainer=Fails)
    failing = True
    with pytest.raises(RuntimeError, match="mine"):
        run.train(*TWO_UPDATES[:3])
    failing = False
    torch.testing.assert_close(run.train(*TWO_UPDATES[:3]), a_run({}, TWO_UPDATES[:3]))


def test_options_are_read_from_a_configuration(tmp_path):
    config = GRPOConfig(
        output_dir=str(tmp_path), bf16=False, use_cpu=True, loss_type="dr_grpo", epsilon_high=0.28,
        beta=0.04, delta=1.5, temperature=0.7, scale_rewards="batch", num_iterations=2,
        gradient_accumulation_steps=2, steps_per_generation=4, max_completion_length=32,
        mask_truncated_completions=True, reward_weights=[1.0, 2.0], weight_decay=0.1,
        learning_rate=1e-5, importance_sampling_level="sequence",
    )  # fmt: skip
    options, not_judged = options_of(config)
    assert options == {
        "eos": [1, 2], "pad": 0, "unfinished": "drop", "weights": [1.0, 2.0], "unscored": "skip",
        "scale": "batch-std", "temperature": 0.7, "ratio": "sequence", "clip_low": 0.2,
        "clip_high": 0.28, "dual_clip": 1.5, "beta": 0.04, "kl_weighted": True, "generations": 2,
        "iterations": 2, "mini_batches": 2, "accumulation": 2,
        "aggregate": "seq-mean-token-sum-norm", "norm_length": 32,
    }  # fmt: skip
    assert not_judged == ["learning_rate", "weight_decay"]


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("grpo", {"aggregate": "seq-mean-token-mean"}),
        ("bnpo", {"aggregate": "token-mean"}),
        ("dapo", {"aggregate": "token-mean", "over": "generation"}),
        ("cispo", {"objective": "cispo", "clip_bounds": "absolute", "clip_high": 5.0}),
        ("cispo", {"aggregate": "token-mean", "over": "generation", "dual_clip": None}),
    ],
)
def test_each_loss_has_its_options(loss, expected):
    settings = {"loss_type": loss, "epsilon_high": 5.0, "entropy_coef": 0.0}
    options, not_judged = options_of(settings)
    assert expected.items() <= options.items() and not not_judged


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss_type": "sapo"}, "loss_type 'sapo' is not judged yet; supported: grpo, bnpo, dapo"),
        ({"epsilom": 0.1}, "GRPOConfig has no `epsilom` (did you mean `epsilon`?)"),
        (
            {"gradient_accumulation_steps": 2, "steps_per_generation": 1},
            "steps_per_generation 1 is no multiple of gradient_accumulation_steps 2",
        ),
        (
            {"top_entropy_quantile": 0.5},
            "top_entropy_quantile 0.5 is not judged yet: take it out of the configuration",
        ),
        (
            {"multi_objective_aggregation": "normalize_then_sum"},
            "multi_objective_aggregation 'normalize_then_sum' is not judged yet",
        ),
        ({"delta": 1.2}, "delta 1.2 is not above 1 + epsilon_high, 1.2"),
    ],
)
def test_what_cannot_be_judged_is_refused_by_name(settings, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        options_of(settings)


def test_options_in_force_come_before_the_configuration():
    fresh = GRPO({"beta": 0.1, "temperature": 0.7, "loss_type": "grpo"}).train(*TWO_UPDATES)
    others = GRPO({"loss_type": "grpo"}).train(*TWO_UPDATES, beta=0.1, temperature=0.7)
    torch.testing.assert_close(fresh, others)
    with pytest.raises(UsageError, match="TRL has no `scale: loo-std`, only std, batch-std, none"):
        GRPO().train(*TWO_UPDATES[:3], scale="loo-std")
