"""A puppet: the stand-ins that a trainer is handed, which lead it through one case.

The model is a table of logits, one row for each prefix, and that table is its only parameter. That
of a reward model has a score in each row, that of a critic a value. So the gradient of every logit
is read off `table.grad`, whatever the trainer does inside. The optimizer keeps these gradients, and
sets the table to what the case wants at the next update.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import random
import typing
import weakref

import numpy
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from torch import Tensor, nn
from torch import distributed as dist
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    GenerationMixin,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.modeling_layers import GenericForSequenceClassification
from transformers.modeling_outputs import (
    BaseModelOutputWithPast,
    CausalLMOutputWithPast,
    TokenClassifierOutput,
)

from .._errors import UsageError
from . import around

Ids = tuple[int, ...]
Shapes = dict[str, tuple[int, ...]]

MOST_IDS = 100
"""The largest vocabulary; that of the tokenizer."""
UNKNOWN_LOGIT = 20.0
"""Row 0 of a table goes from minus this to this. No row of a case looks like it."""
HIDDEN = -1
"""In the place of the id of a token that the mask hides."""


class Strayed(RuntimeError):
    """The trainer did what no right run of the case does, so there is nothing to observe."""


class Puppet:
    """The stand-ins for one case, or by `load` for one after the other of the same shapes.

    What a case consists of is said by the class of each kind of trainer. All have rows of `T`
    tokens over a vocabulary of `V`. A row follows a prompt, ends with the first id of `eos`, and
    `pad` follows it. The logits are those of the policy before each token, while update `u` is
    computed. Where several rows have the same prefix, those of the first one hold.

    A trainer gets `model`, `reference`, `tokenizer` and `optimizer`. It passes over the rows,
    and each pass makes `mini_batches` updates of `accumulation` backward passes.
    """

    axes: typing.ClassVar[dict[str, str]]
    """The arrays of a case in order, each with the letters of its axes."""
    table_name: typing.ClassVar[str] = "logits"
    """The array that is the model's table at each update: `logits`, `scores` of a reward model, or
    `values` of a critic."""

    def __init__(
        self,
        *case: Tensor | None,
        eos: typing.Sequence[int],
        pad: int,
        prompts: typing.Iterable[typing.Sequence[int]],
        passes: int,
        of_a_pass: tuple[int, str],
        mini_batches: int,
        accumulation: int,
    ) -> None:
        self.eos, self.pad = tuple(eos), pad
        self.mini_batches, self.accumulation = mini_batches, accumulation
        self.prompts = [tuple(it) for it in prompts]
        arrays = self._named(case)
        self._fixed = self.fixed(case)
        self._shapes = {name: tuple(array.shape) for name, array in arrays.items()}
        self._must_fit()
        self.micro_batch = self._cut(passes, *of_a_pass)
        """How many rows, or pairs, are in one."""

        self.tokenizer = _tokenizer(self.eos, pad)
        self._word_ids: dict[str, int] = self.tokenizer.get_vocab()
        self._words = sorted(self._word_ids, key=lambda word: self._word_ids[word])
        tables = self._values(arrays)
        config = PuppetConfig(
            puppet=f"{next(_NUMBERS)}",
            rows=1 + math.prod(tables.shape[1:-1]),
            vocab_size=tables.shape[-1] if self._has_logits else MOST_IDS,
            hidden_size=tables.shape[-1],
            eos_token_id=list(eos),
            pad_token_id=pad,
        )
        _PUPPETS[config.puppet] = self
        self._config = config
        self._kind = MODELS[self.table_name]
        self._replicas: dict[int, Replica] = {}  # by rank
        self.reference = _model(config, tables, PuppetModel) if "ref_logits" in arrays else None
        self._begin(arrays)

    @property
    def model(self) -> typing.Any:
        """The policy; in each of `shakedown.ranks` another one."""
        return self._own().model

    @property
    def table(self) -> nn.Parameter:
        backbone: Backbone = self.model.model
        return backbone.table

    @property
    def optimizer(self) -> PuppetOptimizer:
        return self._own().optimizer

    def _own(self) -> Replica:
        """What the rank that runs has."""
        rank = _rank()
        if rank not in self._replicas:
            self._replicas[rank] = Replica(self, self._kind, self._config, self._tables[0])
        return self._replicas[rank]

    def words(self, ids: typing.Iterable[int]) -> str:
        """What the tokenizer reads as these ids."""
        return " ".join(self._words[i] for i in ids)

    def _going_on(self, completion: typing.Sequence[int]) -> str:
        """A completion as the words that follow those of its prompt, without its end."""
        ended = completion[-1] in self.eos
        return "".join(f" {self._words[i]}" for i in completion[: len(completion) - ended])

    def logits(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """The logits of the policy `[N, L, V]` behind each token, for models of another form."""
        return self._logits(self.model.model, ids, mask)

    def around(self, model: typing.Any) -> typing.Any:
        """The model itself, with the puppet's logits in the place of its own from now on.

        For a model of transformers that has to stay, such as one with adapters of peft: its layers
        run, a hook replaces their output, and its head becomes an identity. `generate` returns the
        completions of the case. A copy of it, and the model without its adapters, are the
        reference. Train with `puppet.optimizer`: its own parameters have no gradient.
        """
        if not self._has_logits:
            raise UsageError(f"`puppet.around` has logits, and the case has {self.table_name}")
        own: Backbone = self.model.model
        head = _identity(own.table.shape[1]).to(own.table)

        def read(
            is_policy: bool, training: bool, ids: Tensor, mask: Tensor | None, at: Tensor | None
        ) -> Tensor:
            if is_policy:
                return self._logits(self.model.model, ids, mask, at)
            if self.reference is None:
                raise Strayed("a second model was asked, and the case has no reference")
            self.reference.train(training)
            return self._logits(self.reference.model, ids, mask, at)

        around.hook(model, head, read, self.model.generate)
        own.heads = (*own.heads, head)
        return model

    def load(self, *case: Tensor | None) -> None:
        """Begins anew with another case of as many rows and updates; its tokens and its vocabulary
        may be more or fewer. All that was handed out stays.
        """
        arrays = self._named(case)
        shapes = {name: tuple(array.shape) for name, array in arrays.items()}
        if self.fixed(case) != self._fixed:
            raise UsageError(f"the case has the shapes {shapes}, expected {self._shapes}")
        self._shapes = shapes
        self._must_fit()
        self._begin(arrays)

    def outputs(self) -> dict[str, Tensor]:
        """What was observed in a run that has ended; `B` rows at most are in a micro-batch, of
        which an update has `M` at most.

        gradient: float, of the shape of the logits, scores or values
            The gradient of what each update minimises; 0 where another row has the same prefix.
        micro_batches: int [U, M, B]
            The rows of each, filled up with -1. Rows are counted through all axes before `T`.
        unknown: float [U]
            The largest gradient on what follows an unknown prefix or a part of a prompt.
        ref_gradient: float, ref_training: bool, optional
            The largest gradient that reached the reference, and whether it was called in training
            mode; only where there is one.
        """
        for rank, replica in self._replicas.items():
            if replica.updates != len(self._tables):
                on = f" on rank {rank}" if len(self._replicas) > 1 else ""
                made = f"the trainer made {replica.updates} updates{on}"
                what_to_do = (
                    "train with `puppet.optimizer`, and declare as many as the trainer makes"
                )
                raise Strayed(f"{made}, {len(self._tables)} are declared: {what_to_do}")
        updates = zip(*(replica.micro_batches for replica in self._replicas.values()))
        micro_batches = [[*itertools.chain(*of_ranks)] for of_ranks in updates]
        if not any(micro_batches):
            raise Strayed("no update had a backward pass through `puppet.model`")
        grads = self._agreed()
        shape = self._shapes[self.table_name]
        places = math.prod(shape[1:]) // grads.shape[2]
        outputs = {
            "gradient": grads[:, 1 : 1 + places].reshape(shape),
            "micro_batches": _filled_up(micro_batches),
            "unknown": grads[:, 0].abs().amax(dim=-1),
        }
        if self._ref_table is not None:
            outputs["ref_gradient"] = self._ref_gradient
            outputs["ref_training"] = torch.tensor(self._ref_training)
        return outputs

    def _agreed(self) -> Tensor:
        """The gradient of each update, which is the same on all ranks."""
        grads = {rank: torch.stack(it.grads) for rank, it in self._replicas.items()}
        first, *others = grads
        for rank in others:
            if not torch.allclose(grads[rank], grads[first], 0.0, 0.0, equal_nan=True):
                why = "average them before `puppet.optimizer.step()`"
                raise Strayed(f"ranks {first} and {rank} apply different gradients: {why}")
        return grads[first]

    @classmethod
    def fixed(cls, case: typing.Sequence[Tensor | None]) -> list[object]:
        """What two cases of one puppet have in common."""
        arrays = cls._named(case)
        sizes = [
            (name, [n for n, axis in zip(array.shape, cls.axes[name]) if axis not in "TV"])
            for name, array in arrays.items()
        ]
        table = arrays[cls.table_name]
        return [table.dtype, table.device, *sizes]

    @classmethod
    def _named(cls, case: typing.Sequence[Tensor | None]) -> dict[str, Tensor]:
        return {name: array for name, array in zip(cls.axes, case) if array is not None}

    @property
    def _has_logits(self) -> bool:
        return self.table_name == "logits"

    def _values(self, arrays: dict[str, Tensor]) -> Tensor:
        """The tables of all updates; the last axis is a row, which has one score or value."""
        tables = arrays[self.table_name]
        return tables if self._has_logits else tables[..., None]

    def _ref_values(self, arrays: dict[str, Tensor]) -> Tensor | None:
        """The same of the reference, which has one table."""
        ref_logits = arrays.get("ref_logits")
        return None if ref_logits is None else ref_logits[None]

    def _read_into(self, width: int) -> Prefixes:
        """Where the tokens of a row lead."""
        prefixes = ScoredPrefixes if self.table_name == "scores" else Prefixes
        return prefixes(self._prompts, self._completions, width)

    def _must_fit(self) -> None:
        """The arrays fit together, and a row of tokens has one reading only."""
        sizes = {**dict(zip(self.axes[self.table_name], self._shapes[self.table_name])), "2": 2}
        for name, shape in self._shapes.items():
            expected = [sizes.get(axis, size) for axis, size in zip(self.axes[name], shape)]
            if [*shape] != expected:
                raise UsageError(f"{name} are {[*shape]}, expected {expected}")
        if sizes.get("V", 0) > MOST_IDS:
            raise UsageError(f"a vocabulary of {sizes['V']}, at most {MOST_IDS}")
        if any(not prompt or prompt[0] == self.pad for prompt in self.prompts):
            raise UsageError(f"a prompt begins with the pad, {self.pad}, or is empty")
        for one, other in itertools.permutations(set(self.prompts), 2):
            if other[: len(one)] == one:
                raise UsageError(f"prompt {list(one)} is the beginning of prompt {list(other)}")

    def _cut(self, passes: int, number: int, what: str) -> int:
        """The size of a micro-batch; all updates and all their micro-batches are alike."""
        name = self.table_name
        declared, updates = passes * self.mini_batches, self._shapes[name][0]
        if updates != declared:
            raise UsageError(f"{declared} updates are declared, and there are {name} of {updates}")
        if number % (self.mini_batches * self.accumulation):
            parts = f"{self.mini_batches} mini-batches of {self.accumulation} micro-batches"
            raise UsageError(f"{number} {what} cannot be split evenly into {parts}")
        return number // self.mini_batches // self.accumulation

    def _begin(self, arrays: dict[str, Tensor]) -> None:
        tokens, tables = arrays["tokens"], self._values(arrays)
        rows = tokens.reshape(-1, tokens.shape[-1]).tolist()
        self._completions = [self._until_eos(ids) for ids in rows]
        copies = len(rows) // len(self.prompts)
        self._prompts = [prompt for prompt in self.prompts for _ in range(copies)]  # of each row
        self._prefixes = self._read_into(tokens.shape[-1])
        self._tables = _tables(tables)
        ref_tables = self._ref_values(arrays)
        self._ref_table = None if ref_tables is None else _tables(ref_tables)[0]

        self._trained = [0] * len(rows)
        self._forwards = 0
        self._references: weakref.WeakSet[Backbone] = weakref.WeakSet()
        self._ref_training = False
        self._ref_gradient = torch.zeros((), dtype=tables.dtype, device=tables.device)
        self._replicas = {rank: it for rank, it in self._replicas.items() if rank == _rank()}
        self._own().begin(self._tables[0])

    def _until_eos(self, ids: typing.Sequence[int]) -> Ids:
        end = next((t for t, token in enumerate(ids) if token in self.eos), len(ids))
        return tuple(ids[: end + 1])

    def _generate(self, ids: Tensor, mask: Tensor | None, copies: int) -> Tensor:
        raise Strayed("completions were sampled, and the case has no rewards to give them")

    def _logits(
        self, backbone: Backbone, ids: Tensor, mask: Tensor | None, positions: Tensor | None = None
    ) -> Tensor:
        """The rows of the model's table for each token, and an eye on what happens to them."""
        seen = torch.ones_like(ids) if mask is None else mask
        if seen.shape != ids.shape:
            shapes = f"{list(seen.shape)}, and the ids are {list(ids.shape)}"
            raise UsageError(f"the mask is {shapes}: a puppet reads masks of the ids' shape alone")
        # Where positions restart, a packed row begins anew.
        starts = torch.zeros_like(ids) if positions is None else (positions == 0).expand_as(ids)
        index, ends = self._prefixes.read(ids.tolist(), seen.tolist(), starts.tolist())
        is_policy = backbone is self.model.model
        if not is_policy:
            self._meet(backbone)
        logits = nn.functional.embedding(torch.tensor(index, device=ids.device), backbone.table)
        if logits.requires_grad:
            self._forwards += 1
            forward = self._forwards, ends
            seen_by = (lambda _: self._trains(*forward)) if is_policy else self._reached
            logits.register_hook(seen_by)  # type: ignore[no-untyped-call]
        return logits

    def _trains(self, forward: int, ends: list[int]) -> None:
        """A forward pass gets its gradient. All that one backward pass reaches is a micro-batch."""
        task = torch._C._current_graph_task_id()
        self._own().backwards.setdefault(task, []).append((forward, ends))

    def _meet(self, reference: Backbone) -> None:
        """Whatever is a copy of the model, or loaded from its folder, is the reference."""
        if self._ref_table is None:
            raise Strayed("a second model was asked, and the case has no reference")
        if reference not in self._references:
            self._references.add(reference)
            reference.put(self._ref_table)
        self._ref_training |= reference.training

    def _reached(self, grad: Tensor) -> None:
        self._ref_gradient = torch.maximum(self._ref_gradient, grad.abs().max())

    def _update(self) -> None:
        """Keeps the gradient, and goes on to the table of the next update."""
        own = self._own()
        own.updates += 1
        if own.updates > len(self._tables):
            return  # told at the end, with the number of all
        grad = self.table.grad
        own.grads.append(torch.zeros_like(self.table) if grad is None else grad.detach().clone())
        found = sorted(sorted(forwards) for forwards in own.backwards.values())
        own.micro_batches.append(
            [[self._next_of(end) for _, ends in forwards for end in ends] for forwards in found]
        )
        own.backwards.clear()
        if own.updates < len(self._tables):
            self.model.model.put(self._tables[own.updates])

    def _next_of(self, end: int) -> int:
        """Of completions that are equal, the one that was trained least."""
        row = min(self._prefixes.ends[end], key=lambda row: self._trained[row])
        self._trained[row] += 1
        return row


class Replica:
    """The policy of one rank, and what was observed there. Without ranks there is one."""

    def __init__(
        self, puppet: Puppet, kind: type[PreTrainedModel], config: PuppetConfig, table: Tensor
    ) -> None:
        self.model = _model(config, table, kind)
        self.optimizer = PuppetOptimizer(puppet, self.model.model.table)
        self.begin(table)

    def begin(self, table: Tensor) -> None:
        self.backwards: dict[int, list[tuple[int, list[int]]]] = {}  # since the last update
        self.micro_batches: list[list[list[int]]] = []
        self.grads: list[Tensor] = []
        self.updates = 0
        self.model.model.table.grad = None
        self.model.model.put(table)


class Prefixes:
    """All prompts and their completions as a tree, and where the tokens of a row lead in it."""

    ROOT, LOST = 0, 1

    def __init__(self, prompts: list[Ids], completions: list[Ids], width: int) -> None:
        self._next: list[dict[int, int]] = [{}, {}]
        self._rows = [0, 0]  # of the table: 0 where no place of a completion follows
        self.ends: dict[int, list[int]] = {}
        """The completions that end at a node."""
        for row, (prompt, completion) in enumerate(zip(prompts, completions)):
            node = self.ROOT
            for token in prompt:
                node = self._after(node, token)
            end = self._grow(node, completion, range(1 + row * width, 1 + (row + 1) * width))
            self.ends.setdefault(end, []).append(row)

    def _grow(self, node: int, completion: Ids, places: range) -> int:
        """Leads a completion on from the end of its prompt, with a place of the table before each
        token and behind the last one: the node of its end."""
        for t, place in enumerate(places):
            self._rows[node] = self._rows[node] or place
            if t == len(completion):
                break
            node = self._after(node, completion[t])
        return node

    def _after(self, node: int, token: int) -> int:
        if token not in self._next[node]:
            self._next[node][token] = len(self._next)
            self._next.append({})
            self._rows.append(0)
        return self._next[node][token]

    def read(
        self, ids: list[list[int]], seen: list[list[int]], starts: list[list[int]]
    ) -> tuple[list[list[int]], list[int]]:
        """For each token the row of the table for what is seen up to it; and where completions end,
        which hidden tokens tell too."""
        index, ends = [], []
        for row in zip(ids, seen, starts):
            node = reading = self.ROOT
            rows = []
            for token, is_seen, is_start in zip(*row):
                if is_seen:
                    if is_start:
                        node = reading = self.ROOT
                    node = self._next[node].get(token, self.LOST)
                else:
                    node = self._next[node].get(HIDDEN, node)
                rows.append(self._rows[node])
                skipped = self.ROOT if reading == self.ROOT else self.LOST
                reading = self._next[reading].get(token, skipped)
                if reading in self.ends:
                    ends.append(reading)
                    reading = self.ROOT
            index.append(rows)
        return index, ends


class ScoredPrefixes(Prefixes):
    """The same for scores: the place of a token is that of what is seen up to it. Behind an end
    each hidden token has a place of its own."""

    def _grow(self, node: int, completion: Ids, places: range) -> int:
        end = node
        for t, place in enumerate(places):
            node = self._after(node, completion[t] if t < len(completion) else HIDDEN)
            self._rows[node] = self._rows[node] or place
            if t < len(completion):
                end = node
        self._next[node].setdefault(HIDDEN, self.LOST)
        return end


class MismatchedPrefixes(Prefixes):
    """The same, and behind each prompt the completions of the other rows: their beginnings have a
    place for each length. Their ends are not observed."""

    def __init__(self, prompts: list[Ids], completions: list[Ids], width: int) -> None:
        super().__init__(prompts, completions, width)
        for row, prompt in enumerate(prompts):
            first = 1 + (len(prompts) + row) * width
            node = self.ROOT
            for token in prompt:
                node = self._next[node][token]
            for completion in completions:
                self._grow(node, completion, range(first, first + width))


class PuppetConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
    """The configuration of a `PuppetModel`: which puppet leads it, and the size of its table."""

    model_type = "shakedown-puppet"

    def __init__(
        self,
        puppet: str = "",
        rows: int = 1,
        vocab_size: int = 1,
        hidden_size: int = 1,
        **others: typing.Any,
    ) -> None:
        self.puppet, self.rows, self.vocab_size = puppet, rows, vocab_size
        self.hidden_size = hidden_size
        super().__init__(**{"tie_word_embeddings": False, "num_labels": 1, **others})


class Backbone(nn.Module):
    """The layers of the model: the hidden state of a token is its logits."""

    gradient_checkpointing = False
    _gradient_checkpointing_func: typing.Callable[..., Tensor]  # set where it is turned on

    def __init__(self, config: PuppetConfig) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(config.rows, config.hidden_size))
        self.heads: tuple[nn.Linear, ...] = ()  # a tuple is no part of the module
        self._config = config

    def put(self, table: Tensor) -> None:
        """Has these logits from now on, of whatever size."""
        if self.table.shape == table.shape:
            self.table.data.copy_(table)
            return
        self.table.data = table.clone()
        for head in self.heads:
            head.weight.data = torch.eye(table.shape[1]).to(head.weight)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        **_: typing.Any,
    ) -> BaseModelOutputWithPast:
        read: typing.Callable[..., Tensor] = _PUPPETS[self._config.puppet]._logits
        if self.gradient_checkpointing and self.training:
            read = functools.partial(self._gradient_checkpointing_func, read)
        hidden = read(self, input_ids, attention_mask, position_ids)
        return BaseModelOutputWithPast(last_hidden_state=hidden, hidden_states=(hidden,))


class PuppetModel(PreTrainedModel, GenerationMixin):  # type: ignore[no-untyped-call]
    """A causal language model whose logits stand in a table, by what is visible of each prefix."""

    config_class = PuppetConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True

    def __init__(self, config: PuppetConfig) -> None:
        super().__init__(config)
        self.loss_type = "ForCausalLM"  # transformers goes by the name of the class
        self.model = Backbone(config)
        # Trainers multiply the hidden state with its weight themselves.
        self.lm_head: nn.Linear = _identity(config.vocab_size)
        self.model.heads = (self.lm_head,)
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        pass

    def get_output_embeddings(self) -> nn.Linear:
        return self.lm_head

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int | Tensor = 0,
        **others: typing.Any,
    ) -> CausalLMOutputWithPast:
        hidden = self.model(input_ids, attention_mask, position_ids).last_hidden_state
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.lm_head(hidden[:, kept])
        if labels is None:
            return CausalLMOutputWithPast(logits=logits)
        loss = self.loss_function(logits, labels, logits.shape[-1], **others)
        return CausalLMOutputWithPast(loss=loss, logits=logits)

    def generate(  # type: ignore[override]
        self,
        inputs: Tensor | None = None,
        generation_config: typing.Any = None,
        *,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        num_return_sequences: int | None = None,
        **_: typing.Any,
    ) -> Tensor:
        """The prompts, each with the next of its completions."""
        ids = inputs if input_ids is None else input_ids
        assert ids is not None
        copies = num_return_sequences or getattr(generation_config, "num_return_sequences", None)
        return _PUPPETS[self.config.puppet]._generate(ids, attention_mask, copies or 1)


class PuppetScorer(GenericForSequenceClassification, PreTrainedModel):  # type: ignore[no-untyped-call]
    """A reward model whose scores stand in a table: transformers' own forward pass takes that of
    the last token that is not the pad."""

    config_class = PuppetConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True

    def __init__(self, config: PuppetConfig) -> None:
        PreTrainedModel.__init__(self, config)
        self.num_labels = 1
        self.model = Backbone(config)
        self.score = _identity(1)
        self.model.heads = (self.score,)
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        pass


class PuppetCritic(PreTrainedModel):
    """A critic whose values stand in a table: that of a token is one of all tokens up to it."""

    config_class = PuppetConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True

    def __init__(self, config: PuppetConfig) -> None:
        super().__init__(config)
        self.num_labels = 1
        self.model = Backbone(config)
        self.score = _identity(1)
        self.model.heads = (self.score,)
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        pass

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        **_: typing.Any,
    ) -> TokenClassifierOutput:
        hidden = self.model(input_ids, attention_mask, position_ids).last_hidden_state
        return TokenClassifierOutput(logits=self.score(hidden))


class PuppetOptimizer(torch.optim.Optimizer):
    """Keeps the gradients, and leads the table to where the case wants it next."""

    def __init__(self, puppet: Puppet, table: Tensor) -> None:
        super().__init__([table], {"lr": 1.0})
        self._puppet = weakref.proxy(puppet)

    def step(self, closure: typing.Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None if closure is None else closure()
        self._puppet._update()
        return loss


def _rank() -> int:
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def _identity(size: int) -> nn.Linear:
    """A head that is frozen, and changes nothing."""
    head = nn.Linear(size, size, bias=False)
    head.weight.requires_grad_(False)
    nn.init.eye_(head.weight)
    return head


def _model(config: PuppetConfig, like: Tensor, kind: type[PreTrainedModel]) -> typing.Any:
    """In evaluation mode, as `from_pretrained` gives it."""
    model = kind(config)
    model.eval()  # type: ignore[no-untyped-call]
    model.to(like.device, like.dtype)  # type: ignore[arg-type]
    return model


def _tokenizer(eos: Ids, pad: int) -> PreTrainedTokenizerFast:
    """One word for each id, all of the same length: `t1` would be found in `t10`."""
    words = {f"t{i:02}": i for i in range(MOST_IDS)}
    core = Tokenizer(WordLevel(words, unk_token=[*words][-1]))
    core.pre_tokenizer = WhitespaceSplit()
    names = [*words]
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core,
        eos_token=names[eos[0]],
        pad_token=names[pad],
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def _tables(logits: Tensor) -> Tensor:
    """A table for each update, with the row of unknown prefixes first."""
    updates, size = logits.shape[0], logits.shape[-1]
    unknown = torch.linspace(-UNKNOWN_LOGIT, UNKNOWN_LOGIT, size).to(logits)
    rows = logits.detach().reshape(updates, -1, size)
    return torch.cat([unknown.expand(updates, 1, size), rows], dim=1)


def _filled_up(lists: list[list[list[int]]]) -> Tensor:
    most = max(len(update) for update in lists)
    largest = max((len(rows) for update in lists for rows in update), default=0)
    filled = torch.full((len(lists), most, largest), -1)
    for u, update in enumerate(lists):
        for m, rows in enumerate(update):
            filled[u, m, : len(rows)] = torch.tensor(rows, dtype=torch.long)
    return filled


def seed_all(seed: int) -> None:
    """Without `torch.manual_seed`, which queues a call and a traceback for CUDA every time."""
    random.seed(seed)
    numpy.random.seed(seed)
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


@contextlib.contextmanager
def seeded(seed: int) -> typing.Iterator[None]:
    """With the global generators seeded; afterwards they are as before."""
    states = random.getstate(), numpy.random.get_state()
    with torch.random.fork_rng():
        seed_all(seed)
        try:
            yield
        finally:
            random.setstate(states[0])
            numpy.random.set_state(states[1])


MODELS: dict[str, type[PreTrainedModel]] = {
    "logits": PuppetModel,
    "scores": PuppetScorer,
    "values": PuppetCritic,
}
"""The model whose table holds an array of a case."""
_NUMBERS = itertools.count()
_PUPPETS: weakref.WeakValueDictionary[str, Puppet] = weakref.WeakValueDictionary()
AutoConfig.register(PuppetConfig.model_type, PuppetConfig)
AutoModelForCausalLM.register(PuppetConfig, PuppetModel)
AutoModelForSequenceClassification.register(PuppetConfig, PuppetScorer)
AutoModelForTokenClassification.register(PuppetConfig, PuppetCritic)
