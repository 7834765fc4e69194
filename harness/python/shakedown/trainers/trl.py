"""TRL's GRPO trainer, unmodified, as a component of `grpo-step`; and its configuration as options.

config = GRPOConfig(loss_type="dapo", epsilon_high=0.28)
trl.contract(config).check(trl.GRPO(config, OurGRPOTrainer))
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import logging
import sys
import tempfile
import typing
import warnings

import huggingface_hub.constants as hub
import torch
from datasets import Dataset  # type: ignore[import-untyped]
from torch import Tensor
from transformers import PrinterCallback
from transformers.utils import logging as bars
from trl.scripts.utils import ScriptArguments
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.model_config import ModelConfig

from .. import _serve
from .._contracts import GrpoStep
from .._errors import UsageError
from .puppet import Puppet, PuppetModel, seed_all, seeded

# Where trl looks for the class of its reference model. `transformers` replaces its own entry while
# it is imported, so the name `transformers` here may be another module.
sys.modules["transformers"].PuppetModel = PuppetModel  # type: ignore[attr-defined]

Settings = typing.Mapping[str, typing.Any]
MakeTrainer = typing.Callable[..., GRPOTrainer]

KEPT = 24
"""Trainers that are not built anew when a case of their shapes comes again."""

QUIET: Settings = {
    "max_grad_norm": 0.0,  # the gradient is read as it is
    "shuffle_dataset": False,  # generations get the prompts in order
    "num_train_epochs": 1,
    "bf16": False,
    "fp16": False,
    "gradient_checkpointing": False,
    "dataloader_pin_memory": False,
    "save_strategy": "no",
    "logging_strategy": "no",
    "report_to": [],
    "disable_tqdm": True,
}
"""What a check needs, whatever the configuration says."""
SET_BY_CASE = {"per_device_train_batch_size", "generation_batch_size", "output_dir"}
"""What follows from the shapes of a case, or does not matter."""
LEFT_OUT = {
    "accelerator_config", "activation_checkpointing", "activation_checkpointing_kwargs",
    "dataloader_num_workers", "dataloader_persistent_workers", "dataloader_prefetch_factor",
    "deepspeed", "do_eval", "eval_on_start", "eval_strategy", "fsdp", "fsdp_config",
    "full_determinism", "gradient_checkpointing_kwargs", "load_best_model_at_end",
    "log_completions", "log_completions_hub_repo", "max_steps", "model_init_kwargs", "optim",
    "optim_args", "parallelism_config", "push_to_hub", "tf32", "torch_compile",
    "torch_compile_backend", "torch_compile_mode", "use_transformers_continuous_batching",
    "use_vllm",
}  # fmt: skip
"""What needs a device, a server or files: the check runs with TRL's defaults."""
REFUSED = {
    "entropy_coef", "neftune_noise_alpha", "off_policy_mask_threshold", "sync_ref_model",
    "top_entropy_quantile", "use_adaptive_entropy", "use_liger_kernel",
}  # fmt: skip
"""What changes the gradient, and is no option of the contract."""
JUDGED = {
    "beta", "delta", "epsilon", "epsilon_high", "gradient_accumulation_steps",
    "importance_sampling_level", "loss_type", "mask_truncated_completions",
    "max_completion_length", "multi_objective_aggregation", "num_generations", "num_iterations",
    "reward_weights", "scale_rewards", "steps_per_generation", "temperature",
    "use_bias_correction_kl",
}  # fmt: skip

LOSSES: dict[str, dict[str, object]] = {
    "grpo": {"aggregate": "seq-mean-token-mean"},
    "bnpo": {"aggregate": "token-mean"},
    "dapo": {"aggregate": "token-mean", "over": "generation"},
    "dr_grpo": {"aggregate": "seq-mean-token-sum-norm"},  # norm_length: max_completion_length
    "luspo": {"aggregate": "seq-mean-token-sum"},
    "cispo": {
        "aggregate": "token-mean",
        "over": "generation",
        "objective": "cispo",
        "clip_bounds": "absolute",  # epsilon_high itself; there is no lower one
        "dual_clip": None,  # delta has no effect
    },
}
SCALES: dict[object, str] = {
    "group": "std",
    True: "std",
    "batch": "batch-std",
    "none": "none",
    False: "none",
}


def contract(config: Settings | GRPOConfig | None = None) -> GrpoStep:
    """The contract `grpo-step` with the options that a configuration declares."""
    return GrpoStep(**options_of(config)[0])  # type: ignore[arg-type]


class Runs:
    """A GRPO trainer under one configuration, run on case after case: see `GRPO`.

    One trainer serves all cases of as many prompts, completions and reward functions.
    """

    def __init__(
        self,
        config: Settings | GRPOConfig | None = None,
        trainer: MakeTrainer | str = GRPOTrainer,
        config_class: type[GRPOConfig] | str = GRPOConfig,
    ) -> None:
        made: type = type(config) if isinstance(config, GRPOConfig) else found(config_class)
        self._config_class: type[GRPOConfig] = made
        self._settings = settings_of(config, made)
        self._options = _options(self._settings)
        self._trainer: MakeTrainer = found(trainer)
        self._built: dict[object, tuple[Puppet, GRPOTrainer]] = {}

    def train(
        self,
        tokens: Tensor,
        rewards: Tensor,
        logits: Tensor,
        ref_logits: Tensor | None = None,
        *,
        prompts: typing.Sequence[typing.Sequence[int]] | None = None,
        seed: int = 0,
        **options: object,
    ) -> dict[str, Tensor]:
        """Trains on a case: what `Puppet.outputs` observed.

        Options that are left out are those of the configuration. TRL shuffles the rows of a
        generation: `seed` is the seed of the global generators during the call.
        """
        case = tokens, rewards, logits, ref_logits
        sizes = [logits.shape[:3], rewards.shape[2], ref_logits is None]
        key = repr((sizes, logits.dtype, logits.device, options, prompts))
        with seeded(seed), _quiet():
            if key not in self._built:
                if len(self._built) == KEPT:
                    del self._built[next(iter(self._built))]
                self._built[key] = self._build(*case, prompts, {**self._options, **options})
            puppet, trainer = self._built[key]
            try:
                puppet.load(*case)
                seed_all(seed)  # building a trainer sets its own
                with _without_garbage():
                    trainer.train()
                return puppet.outputs()
            except BaseException:
                del self._built[key]  # it may have stopped anywhere
                raise

    def _build(
        self,
        tokens: Tensor,
        rewards: Tensor,
        logits: Tensor,
        ref_logits: Tensor | None,
        prompts: typing.Sequence[typing.Sequence[int]] | None,
        options: dict[str, typing.Any],
    ) -> tuple[Puppet, GRPOTrainer]:
        names = ("eos", "pad", "generations", "iterations", "mini_batches", "accumulation")
        cut = {name: options[name] for name in names}
        puppet = Puppet(tokens, rewards, logits, ref_logits, prompts=prompts, **cut)
        _, number, group, _, _ = logits.shape
        steps = puppet.mini_batches * puppet.accumulation
        wanted = {
            **QUIET,
            **settings_under(options),
            "per_device_train_batch_size": number // puppet.generations * group // steps,
            "num_generations": group,
            "use_cpu": logits.device.type == "cpu",
        }
        known = _defaults(self._config_class)
        lacking = [name for name in wanted if name not in known and wanted[name]]
        if lacking:
            raise UsageError(f"GRPOConfig of this TRL release has no {lacking[0]}")
        with tempfile.TemporaryDirectory() as folder:
            if puppet.reference is not None:
                puppet.reference.save_pretrained(folder)
                puppet.model.config._name_or_path = folder  # where trl loads its reference from
            constant = torch.optim.lr_scheduler.LambdaLR(puppet.optimizer, lambda _: 1.0)
            settings = {
                **{n: it for n, it in self._settings.items() if n not in SET_BY_CASE | LEFT_OUT},
                **{name: it for name, it in wanted.items() if name in known},
                "output_dir": folder,
            }
            trainer = self._trainer(
                model=puppet.model,
                reward_funcs=puppet.rewards,
                args=self._config_class(**settings),
                train_dataset=Dataset.from_list(
                    [{"prompt": puppet.words(prompt)} for prompt in puppet.prompts]
                ),
                processing_class=puppet.tokenizer,
                optimizers=(puppet.optimizer, constant),
            )
        trainer.remove_callback(PrinterCallback)
        return puppet, trainer


class GRPO(Runs):
    """A GRPO trainer under one configuration: called with a case, it trains and is observed.

    `config` is a `GRPOConfig`, or its arguments by name. Batch sizes and lengths are those of the
    case, and options in force come before what the configuration says. `trainer` makes the
    trainer: `trl.GRPOTrainer`, a subclass, a function with its parameters, or where to find one of
    these, as in "mypkg.trainers:OurTrainer". `config_class` is a subclass of `GRPOConfig`, or
    where to find it.
    """

    def __init__(
        self,
        config: Settings | GRPOConfig | None = None,
        trainer: MakeTrainer | str = GRPOTrainer,
        config_class: type[GRPOConfig] | str = GRPOConfig,
    ) -> None:
        super().__init__(config, trainer, config_class)
        must_be_judged(self._settings)

    def __call__(
        self,
        tokens: Tensor,
        rewards: Tensor,
        logits: Tensor,
        ref_logits: Tensor | None = None,
        *,
        eos: typing.Sequence[int],
        pad: int,
        unfinished: str,
        weights: typing.Sequence[float] | None,
        scale: str,
        temperature: float,
        ratio: str,
        clip_low: float,
        clip_high: float,
        dual_clip: float | None,
        beta: float,
        kl_weighted: bool,
        generations: int,
        iterations: int,
        mini_batches: int,
        accumulation: int,
    ) -> dict[str, Tensor]:
        """Trains on a case of `grpo-step` under these options: the outputs of the contract."""
        case = (tokens, rewards, logits, ref_logits)
        return self.train(
            *case,
            eos=eos,
            pad=pad,
            unfinished=unfinished,
            weights=weights,
            scale=scale,
            temperature=temperature,
            ratio=ratio,
            clip_low=clip_low,
            clip_high=clip_high,
            dual_clip=dual_clip,
            beta=beta,
            kl_weighted=kl_weighted,
            generations=generations,
            iterations=iterations,
            mini_batches=mini_batches,
            accumulation=accumulation,
        )


def options_of(
    config: Settings | GRPOConfig | None = None, config_class: type[GRPOConfig] = GRPOConfig
) -> tuple[dict[str, object], list[str]]:
    """The options of `grpo-step` that a configuration declares, and the names of its other
    settings, which the check does not judge.

    What the configuration leaves out has the default of the installed TRL. Settings that change
    the gradient and have no option raise UsageError.
    """
    settings = settings_of(config, config_class)
    must_be_judged(settings)
    return _options(settings), sorted({*settings} - JUDGED - SET_BY_CASE)


def must_be_judged(settings: Settings) -> None:
    """Raises UsageError where a setting changes the gradient and is no option of the contract."""
    for name, value in settings.items():
        if name in REFUSED or value == "normalize_then_sum":
            what = f"{name} {value!r} is not judged yet"
            raise UsageError(f"{what}: take it out of the configuration to check the rest")
    loss = {**_defaults(GRPOConfig), **settings}["loss_type"]
    if loss not in LOSSES:
        raise UsageError(f"loss_type {loss!r} is not judged yet; supported: {', '.join(LOSSES)}")
    options = _options(settings)
    delta, bound = options["dual_clip"], 1 + options["clip_high"]
    if delta is not None and delta <= bound:
        raise UsageError(f"delta {delta} is not above 1 + epsilon_high, {bound:g}: not judged yet")


def _options(settings: Settings) -> dict[str, typing.Any]:
    given = {**_defaults(GRPOConfig), **settings}
    loss, high = given["loss_type"], given["epsilon_high"]
    iterations, mini_batches, accumulation = _cut(settings)
    options = {
        "eos": [1, 2],
        "pad": 0,
        "unfinished": "drop" if given["mask_truncated_completions"] else "keep",
        "weights": given["reward_weights"],
        "unscored": "skip",
        "scale": SCALES[given["scale_rewards"]],
        "temperature": given["temperature"],
        "ratio": given["importance_sampling_level"],
        "clip_low": given["epsilon"],
        "clip_high": given["epsilon"] if high is None else high,
        "dual_clip": given["delta"],
        "beta": given["beta"],
        "kl_weighted": given.get("use_bias_correction_kl", False),
        "generations": 2,
        "iterations": iterations,
        "mini_batches": mini_batches,
        "accumulation": accumulation,
        **LOSSES.get(loss, {}),
    }
    if loss == "dr_grpo":
        options["norm_length"] = given["max_completion_length"]
    return options


def settings_under(options: Settings) -> dict[str, typing.Any]:
    """The arguments of a `GRPOConfig` that these options stand for, but for its `loss_type`."""
    scales = {ours: theirs for theirs, ours in SCALES.items() if isinstance(theirs, str)}
    for name, known in (("scale", [*scales]), ("ratio", ["token", "sequence"])):
        if options[name] not in known:
            raise UsageError(f"TRL has no `{name}: {options[name]}`, only {', '.join(known)}")
    weights = options["weights"]
    return {
        "mask_truncated_completions": options["unfinished"] == "drop",
        "reward_weights": None if weights is None else list(weights),
        "scale_rewards": scales[options["scale"]],
        "temperature": options["temperature"],
        "importance_sampling_level": options["ratio"],
        "epsilon": options["clip_low"],
        "epsilon_high": options["clip_high"],
        "delta": options["dual_clip"],
        "beta": options["beta"],
        "use_bias_correction_kl": options["kl_weighted"],
        "num_iterations": options["iterations"],
        "gradient_accumulation_steps": options["accumulation"],
        "steps_per_generation": options["mini_batches"] * options["accumulation"],
    }


def settings_of(
    config: Settings | GRPOConfig | None, config_class: type[GRPOConfig] = GRPOConfig
) -> dict[str, typing.Any]:
    """What a configuration sets: the arguments that are not the defaults."""
    if isinstance(config, GRPOConfig):
        with tempfile.TemporaryDirectory() as folder, _quiet():
            alike = {name: getattr(config, name) for name in ("bf16", "fp16", "use_cpu")}
            plain = vars(type(config)(output_dir=folder, **alike))
        given = {name: getattr(config, name) for name in _defaults(type(config))}
    else:
        plain, given = _defaults(config_class), dict(config or {})
    for name in given:
        if name not in plain:
            near = _serve.nearest(name, list(plain))
            raise UsageError(f"{config_class.__name__} has no `{name}`{near}")
    return {name: value for name, value in given.items() if value != plain[name]}


def as_typed(settings: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """The settings of a YAML file, in which `1e-6` is a text."""
    floats = [it.name for it in dataclasses.fields(GRPOConfig) if "float" in str(it.type)]
    texts = [name for name in floats if isinstance(settings.get(name), str)]
    try:
        return {**settings, **{name: float(settings[name]) for name in texts}}
    except ValueError as error:
        raise UsageError(f"{', '.join(texts)}: {error}") from None


def to_write(settings: Settings) -> dict[str, typing.Any]:
    """Those settings that a manifest can hold and the check uses."""
    return {n: it for n, it in settings.items() if n not in SET_BY_CASE | LEFT_OUT}


def of_scripts() -> list[str]:
    """The keys of TRL's configuration files that are no arguments of its trainers."""
    return [it.name for kind in (ModelConfig, ScriptArguments) for it in dataclasses.fields(kind)]


def found(what: typing.Any) -> typing.Any:
    """The object at "MODULE:NAME" or "FILE.py:NAME"; anything else is the object itself."""
    if not isinstance(what, str):
        return what
    where, _, name = what.rpartition(":")
    if not where:
        raise UsageError(f"`{what}`: expected MODULE:NAME or FILE.py:NAME")
    try:
        module = _serve.module_at(where)
    except _serve.Refused as refused:
        raise UsageError(refused.reply["message"]) from None
    if not hasattr(module, name):
        near = _serve.nearest(name, [it for it in dir(module) if not it.startswith("_")])
        raise UsageError(f"`{name}` is not in {where}{near}")
    return getattr(module, name)


def _defaults(config_class: type[GRPOConfig]) -> dict[str, typing.Any]:
    return {it.name: it.default for it in dataclasses.fields(config_class) if it.init}


def _cut(settings: Settings) -> tuple[int, int, int]:
    """Iterations, mini-batches of each, and micro-batches of each of those."""
    accumulation = settings.get("gradient_accumulation_steps", 1)
    steps = settings.get("steps_per_generation") or accumulation
    if settings.get("generation_batch_size"):
        steps = settings["generation_batch_size"] // settings.get("per_device_train_batch_size", 8)
    if steps % accumulation:
        raise UsageError(
            f"steps_per_generation {steps} is no multiple of gradient_accumulation_steps"
            f" {accumulation}: an update would span two generations, which is not judged yet"
        )
    return settings.get("num_iterations", 1), steps // accumulation, accumulation


@contextlib.contextmanager
def _without_garbage() -> typing.Iterator[None]:
    """`train()` collects garbage several times: half a second with all that trl imports."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextlib.contextmanager
def _quiet() -> typing.Iterator[None]:
    """Without the hub, telemetry, progress bars and warnings."""
    level, offline = logging.root.manager.disable, hub.HF_HUB_OFFLINE
    had_bars = bars.is_progress_bar_enabled()
    logging.disable(logging.WARNING)
    bars.disable_progress_bar()  # type: ignore[no-untyped-call]
    hub.HF_HUB_OFFLINE = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        hub.HF_HUB_OFFLINE = offline
        logging.disable(level)
        if had_bars:
            bars.enable_progress_bar()  # type: ignore[no-untyped-call]
