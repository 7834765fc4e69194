"""Puppets by the kind of trainer: GRPO, fine-tuning, pairs, reward models, KTO, critics."""

from __future__ import annotations

import math
import typing
import weakref

import torch
from torch import Tensor

from .._errors import UsageError
from .puppet import MOST_IDS, Ids, MismatchedPrefixes, Prefixes, Puppet, Strayed

Written = typing.Union[str, typing.Sequence[int], Tensor]
"""A prompt or a completion, as words or as ids."""
Example = dict[str, typing.Any]

UNTRAINED = -100
"""The label of a token that is not trained, as torch and transformers have it."""


class GrpoPuppet(Puppet):
    """The stand-ins for a GRPO trainer.

    A case has `P` prompts and `G` completions of each.
        tokens: int [P, G, T]
        rewards: float [P, G, K]
            One column for each reward function; NaN where it does not score. Equal completions of
            a prompt have equal rewards.
        logits: float [U, P, G, T, V]
        ref_logits: float [P, G, T, V], optional

    `U` is generations · iterations · mini_batches: the prompts are split evenly over the
    generations, and the rows of each are passed `iterations` times.

    A trainer also gets `rewards` (or `reward`, where there is one function), samples `group`
    completions of each prompt, and trains on one of `batches` after the other. One that does not
    sample gets `rollouts`.
    """

    axes = {"tokens": "PGT", "rewards": "PGK", "logits": "UPGTV", "ref_logits": "PGTV"}

    def __init__(
        self,
        tokens: Tensor,
        rewards: Tensor,
        logits: Tensor,
        ref_logits: Tensor | None = None,
        *,
        eos: typing.Sequence[int],
        pad: int,
        generations: int = 1,
        iterations: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
        prompts: typing.Sequence[typing.Sequence[int]] | None = None,
    ) -> None:
        _, number, self.group, _, size = logits.shape
        self.generations, self.iterations = generations, iterations
        self.rewards = [Reward(self, k) for k in range(rewards.shape[2])]
        if number % generations:
            into = f"{generations} generations"
            raise UsageError(f"{number} prompts cannot be split evenly into {into}")
        prompts = prompts or default_prompts(number, size, eos, pad)
        if number != len(prompts):
            raise UsageError(f"there are {len(prompts)} prompts, and logits of {number}")
        super().__init__(
            *(tokens, rewards, logits, ref_logits),
            eos=eos,
            pad=pad,
            prompts=prompts,
            passes=generations * iterations,
            of_a_pass=(number // generations * self.group, "rows of a generation"),
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

    @property
    def reward(self) -> Reward:
        """The reward function, where there is one."""
        if len(self.rewards) != 1:
            raise UsageError(f"the case has {len(self.rewards)} reward functions: `puppet.rewards`")
        return self.rewards[0]

    @property
    def batches(self) -> list[list[list[int]]]:
        """The prompts of each generation, as ids."""
        size = len(self.prompts) // self.generations
        prompts = [list(prompt) for prompt in self.prompts]
        return [prompts[i : i + size] for i in range(0, len(prompts), size)]

    @property
    def rollouts(self) -> list[list[Example]]:
        """The completions of each generation, for a trainer that does not sample.

        prompt_ids, completion_ids: without pads
        rewards: one for each reward function. With `baseline` and `scale` "none", their sum is the
            advantage.
        """
        self._are_sampled = True
        each = zip(self._prompts, self._completions, self._rewards)
        rows = [
            {"prompt_ids": [*prompt], "completion_ids": [*completion], "rewards": [*rewards]}
            for prompt, completion, rewards in each
        ]
        size = len(rows) // self.generations
        return [rows[i : i + size] for i in range(0, len(rows), size)]

    def outputs(self) -> dict[str, Tensor]:
        """What was observed, and also, where completions were sampled,

        scored: int [P, G, K]
            How often each function scored each completion.
        """
        if self._are_sampled:
            return super().outputs()
        scored = torch.tensor(self._scored).reshape(self._shapes["rewards"])
        return {**super().outputs(), "scored": scored}

    def _begin(self, arrays: dict[str, Tensor]) -> None:
        super()._begin(arrays)
        self._rewards = arrays["rewards"].flatten(0, 1).tolist()
        self._of_prompt: dict[Ids, list[Ids]] = {}  # completions in order
        self._pairs: dict[tuple[Ids, Ids], list[int]] = {}  # rows, by prompt and completion
        for row, (prompt, completion) in enumerate(zip(self._prompts, self._completions)):
            self._of_prompt.setdefault(prompt, []).append(completion)
            self._pairs.setdefault((prompt, completion), []).append(row)
        self._texts: dict[tuple[Ids, Ids], list[int]] = {}  # the same without special tokens
        for (prompt, completion), rows in self._pairs.items():
            self._texts.setdefault((prompt, self._unmarked(completion)), []).extend(rows)
        self._generated = dict.fromkeys(self._of_prompt, 0)
        self._scored = [[0] * len(self.rewards) for _ in self._completions]
        self._are_sampled = False  # beforehand: no reward function is asked

    def _unmarked(self, ids: typing.Iterable[int]) -> Ids:
        """What is left of the ids where special tokens are skipped."""
        return tuple(i for i in ids if i not in (self.eos[0], self.pad))

    def _read(self, written: Written) -> Ids:
        if isinstance(written, str):
            return tuple(self._word_ids.get(word, -1) for word in written.split())
        return tuple(written.tolist() if isinstance(written, Tensor) else written)

    def _generate(self, ids: Tensor, mask: Tensor | None, copies: int) -> Tensor:
        """The ids, each row followed by the next completion of its prompt."""
        if mask is None:  # as transformers infers it
            mask = torch.ones_like(ids) if self.pad in self.eos else ids != self.pad
        completions = []
        for row, seen in zip(ids.tolist(), mask.tolist()):
            prompt = tuple(token for token, is_seen in zip(row, seen) if is_seen)
            if prompt not in self._of_prompt:
                raise Strayed(f"completions were asked for {list(prompt)}, no prompt of the case")
            first = self._generated[prompt]
            self._generated[prompt] += copies
            if self._generated[prompt] > len(self._of_prompt[prompt]):
                asked = f"{self._generated[prompt]} completions were asked for {list(prompt)}"
                raise Strayed(f"{asked}, {len(self._of_prompt[prompt])} are declared")
            completions += self._of_prompt[prompt][first : first + copies]
        length = max(len(it) for it in completions)
        filled = [[*it, *[self.pad] * (length - len(it))] for it in completions]
        repeated = ids.repeat_interleave(copies, dim=0)
        return torch.cat([repeated, torch.tensor(filled, device=ids.device)], dim=1)

    def _score(self, k: int, prompt: Written, completion: Written) -> float | None:
        pair = self._read(prompt), self._until_eos(self._read(completion))
        rows = self._pairs.get(pair) or self._told_by_text(k, *pair)
        row = min(rows, key=lambda row: self._scored[row][k])
        self._scored[row][k] += 1
        reward = self._rewards[row][k]
        return None if math.isnan(reward) else reward

    def _told_by_text(self, k: int, prompt: Ids, completion: Ids) -> list[int]:
        """The rows of a pair that was written without some special tokens."""
        rows = self._texts.get((prompt, self._unmarked(completion)))
        asked = f"prompt {list(prompt)} with completion {list(completion)}"
        if rows is None:
            raise Strayed(f"a reward was asked for {asked}, which was never generated")
        if len({str(self._rewards[row][k]) for row in rows}) > 1:
            raise Strayed(
                f"a reward was asked for {asked}, which without eos and pad is not unique"
            )
        return rows


class SftPuppet(Puppet):
    """The stand-ins for a trainer of supervised fine-tuning.

    A case has `N` rows.
        tokens: int [N, T]
            All rows follow one prompt, a single token; each ends with `eos`.
        mask: bool [N, T]
            Whether a token is trained.
        logits: float [U, N, T, V]

    `U` is epochs · mini_batches. A trainer also gets `examples`, and passes over them `epochs`
    times.
    """

    axes = {"tokens": "NT", "mask": "NT", "logits": "UNTV"}

    def __init__(
        self,
        tokens: Tensor,
        mask: Tensor,
        logits: Tensor,
        *,
        eos: int,
        pad: int,
        epochs: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
    ) -> None:
        self.epochs = epochs
        super().__init__(
            *(tokens, mask, logits),
            eos=[eos],
            pad=pad,
            prompts=[_plain(logits.shape[3], [eos], pad, least=1)[:1]],
            passes=epochs,
            of_a_pass=(len(tokens), "rows"),
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

    @property
    def examples(self) -> list[Example]:
        """The rows in order, without pads.

        input_ids: the prompt and the tokens of the row
        labels: the same, with -100 where a token is not trained
        prompt, completion: the same as words, without `eos`. Only where the tokens that are
            trained are the last ones.
        """
        return [
            self._example([*prompt, *completion], [False] * len(prompt) + mask)
            for prompt, completion, mask in zip(self._prompts, self._completions, self._mask)
        ]

    def _example(self, ids: list[int], mask: list[bool]) -> Example:
        labels = [i if is_trained else UNTRAINED for i, is_trained in zip(ids, mask)]
        first = labels.count(UNTRAINED)
        example: Example = {"input_ids": ids, "labels": labels}
        if UNTRAINED not in labels[first:]:
            example["prompt"] = self.words(ids[:first])
            example["completion"] = self._going_on(ids[first:])
        return example

    def _begin(self, arrays: dict[str, Tensor]) -> None:
        super()._begin(arrays)
        self._mask = arrays["mask"].bool().tolist()


class PairsPuppet(Puppet):
    """The stand-ins for a trainer on pairs: `P` prompts and two completions of each, the chosen
    and the rejected one. A trainer passes over `examples` `epochs` times."""

    def __init__(
        self,
        *case: Tensor | None,
        eos: int,
        pad: int,
        epochs: int,
        mini_batches: int,
        accumulation: int,
    ) -> None:
        self.epochs = epochs
        tokens, tables, *_ = case
        assert tokens is not None and tables is not None
        size = tables.shape[-1] if self.table_name == "logits" else MOST_IDS
        super().__init__(
            *case,
            eos=[eos],
            pad=pad,
            prompts=default_prompts(len(tokens), size, [eos], pad),
            passes=epochs,
            of_a_pass=(len(tokens), "pairs"),
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

    @property
    def examples(self) -> list[Example]:
        """The pairs in order, without pads.

        prompt_ids, chosen_ids, rejected_ids: the tokens of each
        prompt, chosen, rejected: the same as words, without `eos`
        """
        sides = zip(self.prompts, self._completions[::2], self._completions[1::2])
        return [
            {
                "prompt": self.words(prompt),
                "chosen": self._going_on(chosen),
                "rejected": self._going_on(rejected),
                "prompt_ids": [*prompt],
                "chosen_ids": [*chosen],
                "rejected_ids": [*rejected],
            }
            for prompt, chosen, rejected in sides
        ]


class PreferencePuppet(PairsPuppet):
    """The stand-ins for a trainer on preference pairs, such as DPO.

    A case has `P` prompts and two completions of each, the chosen and the rejected one.
        tokens: int [P, 2, T]
            Each completion ends with `eos`.
        logits: float [U, P, 2, T, V]
        ref_logits: float [P, 2, T, V], optional

    `U` is epochs · mini_batches. A trainer also gets `examples`, and passes over them `epochs`
    times.
    """

    axes = {"tokens": "P2T", "logits": "UP2TV", "ref_logits": "P2TV"}

    def __init__(
        self,
        tokens: Tensor,
        logits: Tensor,
        ref_logits: Tensor | None = None,
        *,
        eos: int,
        pad: int,
        epochs: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
    ) -> None:
        cut = {"epochs": epochs, "mini_batches": mini_batches, "accumulation": accumulation}
        super().__init__(tokens, logits, ref_logits, eos=eos, pad=pad, **cut)


class RewardModelPuppet(PairsPuppet):
    """The stand-ins for a trainer of reward models.

    A case has `P` prompts and two completions of each, the chosen and the rejected one.
        tokens: int [P, 2, T]
            Each completion ends with `eos`.
        scores: float [U, P, 2, T]
            Those of the model for all tokens up to each one. Behind an end those of the pads, which
            are not to be read.
        margins: float [P], optional

    `U` is epochs · mini_batches. A trainer also gets `examples`, and passes over them `epochs`
    times. `model(ids, mask).logits` are scores `[N, 1]`, each of the last token that is not the
    pad, as transformers has it; `scores(ids, mask)` those of all tokens.
    """

    axes = {"tokens": "P2T", "scores": "UP2T", "margins": "P"}
    table_name = "scores"

    def __init__(
        self,
        tokens: Tensor,
        scores: Tensor,
        margins: Tensor | None = None,
        *,
        eos: int,
        pad: int,
        epochs: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
    ) -> None:
        cut = {"epochs": epochs, "mini_batches": mini_batches, "accumulation": accumulation}
        super().__init__(tokens, scores, margins, eos=eos, pad=pad, **cut)

    def scores(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """The scores `[N, L]` of all tokens up to each one."""
        return self.logits(ids, mask)[..., 0]

    @property
    def examples(self) -> list[Example]:
        """Those of all pairs, and also

        margin: what the difference of the scores has to exceed; only where the case has margins
        """
        examples = super().examples
        for example, margin in zip(examples, self._margins):
            example["margin"] = margin
        return examples

    def _begin(self, arrays: dict[str, Tensor]) -> None:
        super()._begin(arrays)
        self._margins = arrays["margins"].tolist() if "margins" in arrays else []


class KtoPuppet(Puppet):
    """The stand-ins for a trainer of KTO.

    A case has `N` completions, each of a prompt of its own.
        tokens: int [N, T]
            Each completion ends with `eos`.
        labels: bool [N]
            Whether it is desirable.
        logits: float [U, N, T, V]
        ref_logits: float [N, T, V]
        kl_logits: float [U, N, T, V], optional
            Those behind each prompt and so many tokens of any completion that begins otherwise
            than its own.
        ref_kl_logits: float [N, T, V], optional

    `U` is epochs · mini_batches. A trainer also gets `examples`, and passes over them `epochs`
    times.
    """

    axes = {
        "tokens": "NT", "labels": "N", "logits": "UNTV", "ref_logits": "NTV",
        "kl_logits": "UNTV", "ref_kl_logits": "NTV",
    }  # fmt: skip

    def __init__(
        self,
        tokens: Tensor,
        labels: Tensor,
        logits: Tensor,
        ref_logits: Tensor,
        kl_logits: Tensor | None = None,
        ref_kl_logits: Tensor | None = None,
        *,
        eos: int,
        pad: int,
        epochs: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
    ) -> None:
        self.epochs = epochs
        super().__init__(
            *(tokens, labels, logits, ref_logits, kl_logits, ref_kl_logits),
            eos=[eos],
            pad=pad,
            prompts=default_prompts(len(tokens), logits.shape[3], [eos], pad),
            passes=epochs,
            of_a_pass=(len(tokens), "completions"),
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

    @property
    def examples(self) -> list[Example]:
        """The completions in order, without pads.

        prompt_ids, completion_ids: the tokens of each
        prompt, completion: the same as words, without `eos`
        label: whether it is desirable
        """
        rows = zip(self.prompts, self._completions, self._labels)
        return [
            {
                "prompt": self.words(prompt),
                "completion": self._going_on(completion),
                "prompt_ids": [*prompt],
                "completion_ids": [*completion],
                "label": label,
            }
            for prompt, completion, label in rows
        ]

    def outputs(self) -> dict[str, Tensor]:
        """What was observed, and also

        kl_gradient: float [U]
            The largest gradient on `kl_logits`.
        """
        elsewhere = self._agreed()[:, 1 + math.prod(self._shapes["tokens"]) :]
        return {**super().outputs(), "kl_gradient": elsewhere.abs().flatten(1).amax(dim=1)}

    def _begin(self, arrays: dict[str, Tensor]) -> None:
        super()._begin(arrays)
        self._labels = arrays["labels"].bool().tolist()

    def _values(self, arrays: dict[str, Tensor]) -> Tensor:
        """Behind the table of the completions that of all others."""
        logits = arrays["logits"]
        return torch.cat([logits, arrays.get("kl_logits", torch.zeros_like(logits))], dim=1)

    def _ref_values(self, arrays: dict[str, Tensor]) -> Tensor:
        ref_logits = arrays["ref_logits"]
        others = arrays.get("ref_kl_logits", torch.zeros_like(ref_logits))
        return torch.cat([ref_logits, others])[None]

    def _read_into(self, width: int) -> Prefixes:
        return MismatchedPrefixes(self._prompts, self._completions, width)


class CriticPuppet(Puppet):
    """The stand-ins for a trainer of a critic, the value function of PPO.

    A case has `N` completions, each of a prompt of its own.
        tokens: int [N, T]
            A completion ends with `eos`, or fills its row.
        mask: bool [N, T]
            Whether the policy wrote a token: the first and the last one of each completion at
            least.
        values: float [U, N, T]
            Those of the state before each token, and behind an end that of the whole completion.
        scores: float [N], kls: float [N, T], returns: float [N, T], optional
            What returns are made of, or the returns.

    `U` is generations · epochs · mini_batches: the completions are split evenly over the
    generations, and those of each are passed `epochs` times.

    A trainer also gets `rollouts`. `model(ids, mask).logits` are values `[N, L, 1]`, as of a model
    for token classification, and `values(ids, mask)` are `[N, L]`. Each is that of the state behind
    its token: the value of a token is at the place before it.
    """

    axes = {
        "tokens": "NT", "mask": "NT", "values": "UNT", "scores": "N", "kls": "NT", "returns": "NT",
    }  # fmt: skip
    table_name = "values"

    def __init__(
        self,
        tokens: Tensor,
        mask: Tensor,
        values: Tensor,
        scores: Tensor | None = None,
        kls: Tensor | None = None,
        returns: Tensor | None = None,
        *,
        eos: int,
        pad: int,
        generations: int = 1,
        epochs: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
    ) -> None:
        number = len(tokens)
        self.generations, self.epochs = generations, epochs
        if number % generations:
            into = f"{generations} generations"
            raise UsageError(f"{number} completions cannot be split evenly into {into}")
        super().__init__(
            *(tokens, mask, values, scores, kls, returns),
            eos=[eos],
            pad=pad,
            prompts=default_prompts(number, MOST_IDS, [eos], pad),
            passes=generations * epochs,
            of_a_pass=(number // generations, "completions of a generation"),
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

    def values(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """The values `[N, L]` of the states behind each token."""
        return self.logits(ids, mask)[..., 0]

    @property
    def rollouts(self) -> list[list[Example]]:
        """The completions of each generation, without pads.

        prompt_ids, completion_ids: the tokens of each
        mask: for each token of the completion 1 where the policy wrote it, else 0
        old_values: those of its tokens when it was sampled
        score, kls: what the rewards of its tokens are made of, where the case has them
        returns: of each token, where the case has them
        """
        rows = [self._row(row) for row in range(len(self._completions))]
        size = len(rows) // self.generations
        return [rows[i : i + size] for i in range(0, len(rows), size)]

    def _row(self, row: int) -> Example:
        completion, arrays = self._completions[row], self._arrays
        size = len(self._completions) // self.generations
        first = row // size * self.epochs * self.mini_batches
        length = len(completion)
        example: Example = {
            "prompt_ids": [*self._prompts[row]],
            "completion_ids": [*completion],
            "mask": arrays["mask"][row, :length].int().tolist(),
            "old_values": arrays["values"][first, row, :length].tolist(),
        }
        if "scores" in arrays:
            example["score"] = arrays["scores"][row].item()
        for name in ("kls", "returns"):
            if name in arrays:
                example[name] = arrays[name][row, :length].tolist()
        return example

    def _begin(self, arrays: dict[str, Tensor]) -> None:
        super()._begin(arrays)
        self._arrays = arrays


class Reward:
    """A reward function in TRL's form: prompts and completions are words, or ids."""

    def __init__(self, puppet: GrpoPuppet, k: int) -> None:
        self.__name__ = f"reward_{k}"
        self._puppet, self._k = weakref.proxy(puppet), k

    def __call__(
        self,
        prompts: typing.Iterable[Written],
        completions: typing.Iterable[Written],
        completion_ids: typing.Iterable[Written] | None = None,
        **_: object,
    ) -> list[float | None]:
        written = [*(completions if completion_ids is None else completion_ids)]
        asked = [*prompts]
        if len(asked) != len(written):
            what = f"{len(asked)} prompts with {len(written)} completions"
            raise Strayed(f"rewards were asked for {what}, expected one prompt for each")
        return [self._puppet._score(self._k, *pair) for pair in zip(asked, written)]


def default_prompts(number: int, size: int, eos: typing.Sequence[int], pad: int) -> list[Ids]:
    """Prompts of different lengths. None is the beginning of another."""
    first, last, *_ = _plain(size, eos, pad, least=2)
    return [(*[first] * (p + 1), last) for p in range(number)]


def _plain(size: int, eos: typing.Sequence[int], pad: int, least: int) -> Ids:
    """The ids that are neither pad nor eos."""
    plain = tuple(i for i in range(size) if i != pad and i not in eos)
    if len(plain) < least:
        number = {1: "one", 2: "two"}[least]
        raise UsageError(f"of {size} ids, {number} at least must be neither pad nor eos")
    return plain


BY_CONTRACT: dict[str, type[Puppet]] = {
    "grpo-step": GrpoPuppet,
    "sft-step": SftPuppet,
    "preference-step": PreferencePuppet,
    "reward-model-step": RewardModelPuppet,
    "kto-step": KtoPuppet,
    "critic-step": CriticPuppet,
}
"""The puppet that the cases of a contract are for."""
