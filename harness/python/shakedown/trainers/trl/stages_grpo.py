"""The stages of a live GRPO trainer: its methods are tapped."""

from __future__ import annotations

import typing

import torch
from torch import Tensor

from ..._errors import UsageError
from .grpo import GRPO
from .runs import Options, Settings
from .taps import Made, Method, Pass, Turn, Watch, beyond, causal, declared, scored, seen

Tensors = dict[str, Tensor]

MASK_ROWS = 64
"""Rows of a completion mask that are looked at."""
ANY_VALUE = {
    "generation_batch_size", "gradient_accumulation_steps", "multi_objective_aggregation",
    "steps_per_generation",
}  # fmt: skip
"""Settings that the loss of a micro-batch does not depend on, or that are undone."""
UNWEIGHTED = (
    "TRL weights the KL term by the ratio: its difference from the unweighted term of this contract"
    " was added before the check"
)
OF_THE_LOSS = (
    "objective", "ratio", "clip_low", "clip_high", "clip_bounds", "dual_clip", "beta", "aggregate",
    "norm_length",
)  # fmt: skip
"""The options of `policy-loss` that are options of `grpo-step`, too."""


class GrpoStages:
    """Rewards, advantages, completion masks, log-probabilities and losses of a GRPO trainer."""

    def __init__(self, watching: Watch) -> None:
        self.watch, self.trainer = watching, watching.trainer
        self.settings = declared(self.trainer.args)
        of_the_loss = {n: it for n, it in self.settings.items() if n not in ANY_VALUE}
        self.options = GRPO.options(of_the_loss)
        self.generation_is_due, self.loss_is_due = Turn(watching.every), Turn(watching.every)
        self.rewards: Tensor | None = None
        self.generation: dict[str, typing.Any] = {}
        self.is_looking = False
        """Whether the passes are looked at."""
        self.passed: Pass | None = None
        """The last of them."""
        self.inputs: dict[str, typing.Any] = {}
        """Of the loss that is looked at."""
        watching.begin(*self.stages())
        for contract, reason in self.unwatched(of_the_loss):
            watching.leave_out(contract, reason)
        watching.tap("_calculate_rewards", self.on_rewards)
        watching.tap("_generate_and_score_completions", self.on_generation)
        watching.tap("_get_per_token_logps_and_entropies", self.on_log_probs)
        watching.tap("_compute_loss", self.on_loss)
        watching.tap("training_step", self.on_step)

    def unwatched(self, of_the_loss: Settings) -> typing.Iterator[tuple[str, str]]:
        """The stages that do something for which no contract has an option, and what."""
        trainer, args = self.trainer, self.trainer.args
        if trainer.tools or trainer.rollout_func or trainer.environments:
            yield "completion-mask", "tools, environments or `rollout_func` make completions"
        are_many = trainer.accelerator.num_processes > 1
        rows = args.per_device_train_batch_size * args.steps_per_generation
        is_split = self.options["scale"] == "batch-std" or rows % trainer.num_generations
        if are_many and is_split and not self.normalises_first:
            yield "group-advantage", "its rows are on several ranks"
        if are_many and "reward-combination" in self.stages():
            yield "reward-combination", "its rows are on several ranks"
        reason = beyond(trainer)
        if trainer.use_vllm and trainer.vllm_importance_sampling_correction:
            reason = "vllm_importance_sampling_correction is not judged yet"
        elif are_many and self.counts_generation:
            reason = "its tokens are counted over several ranks"
        try:
            GRPO.must_be_judged(of_the_loss)
        except UsageError as error:
            reason = str(error)
        if reason:
            yield "policy-loss", reason

    def stages(self) -> typing.Iterator[str]:
        if not self.normalises_first:
            yield "group-advantage"
        if self.normalises_first or len(self.trainer.reward_funcs) > 1:
            yield "reward-combination"
        yield from ("completion-mask", "token-log-probs", "policy-loss")

    @property
    def normalises_first(self) -> bool:
        return self.settings.get("multi_objective_aggregation") == "normalize_then_sum"

    @property
    def counts_generation(self) -> bool:
        """Whether the loss is divided by the tokens of the whole generation."""
        return "over" in self.options

    def on_rewards(self, method: Method, *args: object, **named: object) -> Tensor:
        rewards: Tensor = method(*args, **named)
        self.rewards = rewards
        return rewards

    def on_generation(self, method: Method, *args: object, **named: object) -> typing.Any:
        is_due = self.trainer.model.training and self.generation_is_due()
        self.is_looking = is_due
        made: dict[str, typing.Any] = method(*args, **named)
        self.is_looking = False
        if self.trainer.model.training:
            self.generation = made
        if is_due:
            for contract, make in (
                ("group-advantage", self.group_advantage),
                ("reward-combination", self.reward_combination),
                ("completion-mask", self.completion_mask),
            ):
                if contract in self.stages():
                    self.watch.judge(contract, make)
        return made

    def on_log_probs(
        self,
        method: Method,
        model: torch.nn.Module,
        input_ids: Tensor,
        attention_mask: Tensor,
        *args: object,
        **named: object,
    ) -> typing.Any:
        """Passes of the policy, and of the reference: in a loss, and in the generation."""
        if not self.is_looking:
            return method(model, input_ids, attention_mask, *args, **named)
        inner = causal(self.trainer, model)
        with seen(inner) as passed:
            made = method(model, input_ids, attention_mask, *args, **named)
        passed.follow(made[0])
        if self.trainer.args.cast_lm_head_to_fp32:
            passed.dtype = torch.float32
        kept = made[0].shape[1]
        tokens, mask = input_ids[:, -kept:], attention_mask[:, -kept:].bool()
        temperature = self.trainer.args.temperature
        self.watch.judge("token-log-probs", scored, inner, passed, tokens, mask, temperature)
        self.passed = passed
        return made

    def on_loss(self, method: Method, model: object, inputs: dict[str, typing.Any]) -> Tensor:
        if not self.trainer.model.training or not self.loss_is_due():
            return typing.cast(Tensor, method(model, inputs))
        self.is_looking, self.passed = True, None
        loss: Tensor = method(model, inputs)
        self.is_looking, self.inputs = False, inputs
        if self.passed is not None:
            self.passed.loss = loss.detach()
        return loss

    def on_step(self, method: Method, *args: object, **named: object) -> Tensor:
        made: Tensor = method(*args, **named)
        if self.inputs:
            self.watch.judge("policy-loss", self.policy_loss)
            self.inputs, self.passed = {}, None
        self.watch.poll()
        return made

    def group_advantage(self) -> Made:
        rewards = self.combined()
        scored = rewards[~rewards.isnan()]
        ends = [*scored.tolist(), -10.0, 10.0]
        tensors = {
            "rewards": rewards,
            "groups": self.groups(),
            "advantages": self.generation["advantages"],
        }
        options = {
            "scale": self.options["scale"],
            "unscored": "exclude",
            "reward_range": [min(ends), max(ends)],
        }
        functions = len(self.trainer.reward_funcs)
        note = f"the rewards are the weighted sum of {functions} functions" if functions > 1 else ""
        return Made(tensors, options, rewards.dtype, note)

    def reward_combination(self) -> Made:
        """Of the combined rewards a trainer shows means, in its metrics; or the advantages, where
        they are the combined rewards."""
        rewards = self.per_function()
        tensors = {"rewards": rewards, "groups": self.groups()}
        options = {"weights": self.settings.get("reward_weights"), "unscored": "skip"}
        if self.normalises_first:
            tensors["combined"] = self.generation["advantages"]
            options |= {"normalise": "group", "final": "add", "nothing": "zero"}
        else:
            metrics = self.trainer._metrics["train"]
            names = [f"rewards/{name}/mean" for name in self.trainer.reward_func_names]
            tensors["combined"] = self.combined()
            tensors["reward_mean"] = torch.tensor(metrics["reward"][-1])
            tensors["function_means"] = torch.tensor([metrics[name][-1] for name in names])
        return Made(tensors, options, rewards.dtype)

    def completion_mask(self) -> Made:
        """A pad that was sampled at the end of an unfinished row cannot be told from padding."""
        tokens, mask = self.generation["completion_ids"], self.generation["completion_mask"]
        eos, pad = [*self.trainer.eos_token_ids], self.trainer._tokenizer.pad_token_id
        is_finished = torch.isin(tokens, torch.tensor(eos, device=tokens.device)).any(dim=1)
        is_clear = is_finished | (tokens[:, -1] != pad)
        tensors = {"tokens": tokens[is_clear][:MASK_ROWS], "mask": mask[is_clear][:MASK_ROWS]}
        options = {"eos": eos, "pad": pad, "unfinished": self.options["unfinished"]}
        return Made(tensors, options, torch.float32)

    def policy_loss(self) -> Made | None:
        """What the loss was to be made of comes from the generation, by prompt and completion."""
        passed, made = self.passed, self.generation
        if not made:  # the watch began later
            return None
        if passed is None or passed.log_probs is None:
            raise LookupError("the loss did not call `_get_per_token_logps_and_entropies`")
        log_probs, rows = passed.log_probs, self.rows()
        mask = self.mask_of(made)[rows]
        names = {"old_log_probs": "old_per_token_logps", "ref_log_probs": "ref_per_token_logps"}
        tensors = {
            "log_probs": log_probs,
            "old_log_probs": log_probs,  # where none are there, these are meant
            "advantages": made["advantages"][rows],
            "mask": mask,
            **{ours: made[it][rows] for ours, it in names.items() if it in made},
        }
        declared = self.options
        options = {name: declared[name] for name in OF_THE_LOSS if name in declared}
        options |= {"empty_rows": "count", "holes": "tool_mask" in made}
        options["advantage_shape"] = "row" if tensors["advantages"].ndim == 1 else "token"
        gradient = torch.zeros_like(log_probs) if passed.gradient is None else passed.gradient
        scale = self.undone(mask)
        loss, gradient = passed.loss.double() * scale, gradient.double() * scale
        notes = [self.astray(rows)]
        if options["beta"] and declared["kl_weighted"]:
            more, slopes = unweighted(tensors, options)
            loss, gradient = loss + more, gradient + slopes
            notes.append(UNWEIGHTED)
        tensors["loss"], tensors["grad_log_probs"] = loss.to(log_probs), gradient.to(log_probs)
        note = "; ".join(it for it in notes if it)
        return Made({**tensors, **self.metrics()}, options, log_probs.dtype, note)

    def per_function(self) -> Tensor:
        if self.rewards is None:
            raise LookupError("the trainer did not call `_calculate_rewards`")
        return self.rewards[: len(self.generation["prompt_ids"])]  # of the first rank

    def combined(self) -> Tensor:
        """The weighted sum of what the functions gave."""
        rewards = self.per_function()
        weights = self.settings.get("reward_weights") or [1.0] * rewards.shape[1]
        combined: Tensor = (rewards * torch.tensor(weights, device=rewards.device)).nansum(dim=1)
        return combined.masked_fill(rewards.isnan().all(dim=1), torch.nan)

    def groups(self) -> Tensor:
        """The group of each row: those of one prompt are adjacent, or else it is the prompt's."""
        prompts: Tensor = self.generation["prompt_ids"]
        size = self.trainer.num_generations
        by_prompt: Tensor = torch.unique(prompts, dim=0, return_inverse=True)[1]
        groups = torch.arange(len(prompts), device=prompts.device) // size
        firsts = by_prompt[groups * size]
        return groups if torch.equal(firsts, by_prompt) else by_prompt

    def rows(self) -> list[int]:
        """For each row of the loss, that of the generation with its prompt and completion."""
        made, inputs = self.generation, self.inputs
        others = [n for n in ("advantages", "old_per_token_logps") if n in made and n in inputs]
        known: dict[bytes, list[int]] = {}
        for row, key in enumerate(keys(made)):
            known.setdefault(key, []).append(row)
        rows = []
        for row, key in enumerate(keys(inputs)):
            if key not in known:
                raise LookupError("a row of the loss was not generated")
            # A completion that came twice: the row that is alike in all, if there is one.
            alike = [
                it
                for it in known[key]
                if all(torch.equal(made[n][it], inputs[n][row]) for n in others)
            ]
            rows.append((alike or known[key])[0])
        return rows

    def astray(self, rows: list[int]) -> str:
        """Which inputs of the loss are not what was computed for these completions."""
        made, inputs = self.generation, self.inputs
        others = [
            name
            for name in ("advantages", "old_per_token_logps", "ref_per_token_logps")
            if name in made and name in inputs and not torch.equal(made[name][rows], inputs[name])
        ]
        names = ", ".join(f"`{name}`" for name in others)
        return f"{names} of the loss are those of other completions" if others else ""

    def mask_of(self, batch: dict[str, typing.Any]) -> Tensor:
        mask: Tensor = batch["completion_mask"].bool()
        return mask & batch["tool_mask"].bool() if "tool_mask" in batch else mask

    def undone(self, mask: Tensor) -> float:
        """What the loss of a micro-batch is multiplied with, to be that of the contract."""
        accumulation: int = self.trainer.current_gradient_accumulation_steps
        if not self.counts_generation:
            return accumulation
        tokens = int(self.mask_of(self.generation).sum())
        share: float = accumulation / self.trainer.args.steps_per_generation
        return max(tokens, 1) * share / max(int(mask.sum()), 1)

    def metrics(self) -> Tensors:
        """What the trainer logs about a loss, where the contract defines it alike."""
        metrics, options = self.trainer._metrics["train"], self.options
        given = {}
        if options["ratio"] == "token" and "clip_ratio/region_mean" in metrics:
            given["clip_fraction"] = metrics["clip_ratio/region_mean"][-1]
        is_alike = options["aggregate"] == "token-mean" and not options["kl_weighted"]
        if is_alike and "kl" in metrics:
            given["kl"] = metrics["kl"][-1]
        if self.trainer.accelerator.num_processes > 1:
            given = {}  # theirs are means over all ranks
        return {name: torch.tensor(value) for name, value in given.items()}


def keys(batch: dict[str, typing.Any]) -> list[bytes]:
    """Prompt and completion of each row."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    return [row.tobytes() for row in ids.cpu().numpy()]


def unweighted(tensors: Tensors, options: Options) -> tuple[Tensor, Tensor]:
    """What a KL term that is weighted by the ratio lacks of one that is not, and its gradient."""
    old, reference, mask = (tensors[n] for n in ("old_log_probs", "ref_log_probs", "mask"))
    log_probs = tensors["log_probs"].double().requires_grad_()
    lengths = mask.sum(dim=1, keepdim=True).clamp(min=1)
    log_ratio = log_probs - old
    if options["ratio"] == "sequence":
        log_ratio = (log_ratio * mask).sum(dim=1, keepdim=True) / lengths
    gap = reference - log_probs
    lacking = (torch.expm1(gap) - gap) * -torch.expm1(log_ratio)
    counts = {
        "token-mean": mask.sum().clamp(min=1),
        "seq-mean-token-mean": len(mask) * lengths,
        "seq-mean-token-sum": len(mask),
        "seq-mean-token-sum-norm": len(mask) * options.get("norm_length", 1),
    }
    sum_of_all = options["beta"] * (lacking * mask / counts[options["aggregate"]]).sum()
    [gradient] = torch.autograd.grad(sum_of_all, log_probs)
    return sum_of_all.detach(), gradient
