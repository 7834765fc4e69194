"""What all trainers of TRL have in common: they run on case after case, and are observed."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
import inspect
import logging
import os
import shutil
import sys
import tempfile
import typing
import warnings

import datasets  # type: ignore[import-untyped]
import huggingface_hub.constants as hub
import torch
from torch import Tensor
from transformers import PrinterCallback, Trainer, TrainingArguments
from transformers.utils import logging as bars
from trl.scripts.utils import ScriptArguments
from trl.trainer.model_config import ModelConfig

from ... import _serve
from ..._errors import UsageError
from ..puppet import Puppet, PuppetModel, seed_all, seeded

# Where trl looks for the class of its reference model. `transformers` replaces its own entry while
# it is imported, so the name `transformers` here may be another module.
sys.modules["transformers"].PuppetModel = PuppetModel  # type: ignore[attr-defined]

Settings = typing.Mapping[str, typing.Any]
MakeTrainer = typing.Callable[..., Trainer]
Config = typing.Union[Settings, TrainingArguments, None]
Options = dict[str, typing.Any]

QUIET: Settings = {
    "max_grad_norm": 0.0,  # the gradient is read as it is
    "max_length": None,  # the lengths are those of the case
    "shuffle_dataset": False,  # generations get the prompts in order
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
SET_BY_CASE = {
    "generation_batch_size", "max_length", "output_dir", "per_device_train_batch_size",
}  # fmt: skip
"""What follows from the shapes of a case, or does not matter."""
LEFT_OUT = {
    "accelerator_config", "activation_checkpointing", "activation_checkpointing_kwargs",
    "activation_offloading", "chat_template_path", "dataloader_num_workers",
    "dataloader_persistent_workers", "dataloader_prefetch_factor", "dataset_kwargs",
    "dataset_num_proc", "dataset_text_field", "deepspeed", "do_eval", "eos_token", "eval_on_start",
    "eval_packing", "eval_strategy", "fsdp", "fsdp_config", "full_determinism",
    "gradient_checkpointing_kwargs", "load_best_model_at_end", "log_completions",
    "log_completions_hub_repo", "max_steps", "model_init_kwargs", "optim", "optim_args",
    "pad_token", "parallelism_config", "push_to_hub", "tf32", "torch_compile",
    "torch_compile_backend", "torch_compile_mode", "use_transformers_continuous_batching",
    "use_vllm",
}  # fmt: skip
"""What needs a device, a server, files or a tokenizer: the check runs with TRL's defaults."""


class Runs:
    """A trainer under one configuration: called with a case, it trains and is observed.

    `config` is an object of the trainer's configuration class, or its arguments by name. Batch
    sizes and lengths are those of the case, and options in force come before what the
    configuration says. `trainer` makes the trainer: a class, a function with its parameters, or
    where to find one of these, as in "mypkg.trainers:OurTrainer". `config_class` is a subclass of
    the configuration class, or where to find it. `changed` are settings of a sweep: they hold
    whatever the configuration or a check says.
    """

    contract_id: typing.ClassVar[str]
    puppet_class: typing.ClassVar[type[Puppet]]
    trainer_class: typing.ClassVar[type[Trainer]]
    base_config: typing.ClassVar[type[TrainingArguments]]
    judged: typing.ClassVar[set[str]]
    """The settings that the options of the contract stand for."""
    refused: typing.ClassVar[set[str]]
    """What changes the gradient, and is no option of the contract."""
    harmless: typing.ClassVar[typing.Sequence[Settings]]
    """Settings on which no update may depend, beside those of all trainers."""
    telling: typing.ClassVar[typing.Sequence[typing.Sequence[Settings]]]
    """Other values of each judged setting: a sweep takes the first one that differs."""
    not_swept: typing.ClassVar[typing.Mapping[str, str]] = {}
    """Why a change is not part of the sweep, by the change."""
    kept: typing.ClassVar[int] = 0
    """Trainers that are not built anew when a case of their shapes comes again."""

    def __init__(
        self,
        config: Config = None,
        trainer: MakeTrainer | str | None = None,
        config_class: type[TrainingArguments] | str | None = None,
        changed: Settings | None = None,
    ) -> None:
        made = type(config) if isinstance(config, TrainingArguments) else None
        self._config_class: type[TrainingArguments] = made or found(
            config_class or self.base_config
        )
        self._changed = dict(changed or {})
        given = {**settings_of(config, self._config_class), **self._changed}
        self._settings = settings_of(given, self._config_class)
        self.must_be_judged(self._settings)
        self._options = self.options(self._settings)
        self._trainer: MakeTrainer = found(trainer or self.trainer_class)
        self._built: dict[str, tuple[Puppet, Trainer]] = {}

    def train(self, *case: Tensor | None, seed: int = 0, **options: object) -> dict[str, Tensor]:
        """Trains on a case: what the puppet observed.

        Options that are left out are those of the configuration. TRL shuffles the rows: `seed` is
        the seed of the global generators during the call.
        """
        key = repr((self.puppet_class.fixed(case), options))
        with seeded(seed), _quiet():
            built = self._built.pop(key, None)
            puppet, trainer = built or self._build(case, {**self._options, **options})
            puppet.load(*case)
            seed_all(seed)  # building a trainer sets its own
            with _without_garbage(), _folder_of(trainer):
                trainer.train()
            outputs = puppet.outputs()
        if self.kept:  # one that raised may have stopped anywhere
            self._built[key] = puppet, trainer
            if len(self._built) > self.kept:
                del self._built[next(iter(self._built))]
        return outputs

    @classmethod
    def options(cls, settings: Settings) -> Options:
        """The options of the contract that these settings declare."""
        raise NotImplementedError

    @classmethod
    def settings_under(cls, options: Options) -> dict[str, typing.Any]:
        """The arguments of a configuration that these options stand for."""
        raise NotImplementedError

    @classmethod
    def must_be_judged(cls, settings: Settings) -> None:
        """Raises UsageError where a setting changes the gradient and is no option."""
        for name in settings:
            if name in cls.refused:
                raise not_judged(f"{name} {settings[name]!r}")

    def _sizes(self, puppet: typing.Any) -> dict[str, typing.Any]:
        """The arguments of a configuration that follow from a case."""
        return {"per_device_train_batch_size": puppet.micro_batch}

    def _arguments(self, puppet: typing.Any, options: Options) -> dict[str, typing.Any]:
        """What the trainer takes beside the model, the configuration and what all take."""
        raise NotImplementedError

    def _build(
        self, case: typing.Sequence[Tensor | None], options: Options
    ) -> tuple[Puppet, Trainer]:
        names = {*inspect.signature(self.puppet_class).parameters} & {*options}
        puppet = self.puppet_class(*case, **{name: options[name] for name in names})
        wanted = {
            **{name: it for name, it in QUIET.items() if name not in self._changed},
            **self.settings_under(options),
            **self._sizes(puppet),
            "use_cpu": puppet.table.device.type == "cpu",
        }
        known = defaults(self._config_class)
        lacking = [name for name in wanted if name not in known and wanted[name]]
        if lacking:
            raise UsageError(f"{self.base_config.__name__} of this TRL release has no {lacking[0]}")
        with tempfile.TemporaryDirectory() as folder:
            if puppet.reference is not None:
                puppet.reference.save_pretrained(folder)
                puppet.model.config._name_or_path = folder  # where trl loads its reference from
            constant = torch.optim.lr_scheduler.LambdaLR(puppet.optimizer, lambda _: 1.0)
            settings = {
                **to_write(self._settings),
                **self._changed,
                **{name: it for name, it in wanted.items() if name in known},
                "output_dir": folder,
            }
            trainer = self._trainer(
                model=puppet.model,
                args=self._config_class(**settings),
                processing_class=puppet.tokenizer,
                optimizers=(puppet.optimizer, constant),
                **self._arguments(puppet, options),
            )
        trainer.remove_callback(PrinterCallback)
        return puppet, trainer


def options_of(
    runs: type[Runs], config: Config, config_class: type[TrainingArguments]
) -> tuple[Options, list[str]]:
    """The options that a configuration declares, and the names of its other settings."""
    settings = settings_of(config, config_class)
    runs.must_be_judged(settings)
    return runs.options(settings), sorted({*settings} - runs.judged - SET_BY_CASE)


def settings_of(config: Config, config_class: type[TrainingArguments]) -> dict[str, typing.Any]:
    """What a configuration sets: the arguments that are not the defaults."""
    if isinstance(config, TrainingArguments):
        with tempfile.TemporaryDirectory() as folder, _quiet():
            alike = {name: getattr(config, name) for name in ("bf16", "fp16", "use_cpu")}
            plain = vars(type(config)(output_dir=folder, **alike))
        given = {name: getattr(config, name) for name in defaults(type(config))}
    else:
        plain, given = defaults(config_class), dict(config or {})
    for name in given:
        if name not in plain:
            near = _serve.nearest(name, list(plain))
            raise UsageError(f"{config_class.__name__} has no `{name}`{near}")
    return {name: value for name, value in given.items() if value != plain[name]}


def as_typed(
    settings: dict[str, typing.Any], config_class: type[TrainingArguments]
) -> dict[str, typing.Any]:
    """The settings of a YAML file, in which `1e-6` is a text."""
    floats = [it.name for it in dataclasses.fields(config_class) if "float" in str(it.type)]
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


def passes_of(settings: Settings) -> Options:
    """The options of passes over a dataset; of its rows two updates are made in each."""
    return {
        "eos": 1,
        "pad": 0,
        "epochs": 2 if settings.get("num_train_epochs", 3.0) > 1 else 1,
        "mini_batches": 2,
        "accumulation": settings.get("gradient_accumulation_steps", 1),
    }


def of_trl(name: str, *modules: str) -> typing.Any:
    """A class of TRL, from the first of these modules that has it: TRL moves its trainers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `trl.experimental` warns of itself
        for module in modules:
            with contextlib.suppress(ImportError, AttributeError):
                return getattr(importlib.import_module(module), name)
    raise ImportError(f"this TRL release has no {name} in {' or '.join(modules)}")


def not_judged(what: str) -> UsageError:
    """That a setting is not judged yet, and what to do."""
    return UsageError(
        f"{what} is not judged yet: take it out of the configuration to check the rest"
    )


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


def defaults(config_class: type[TrainingArguments]) -> dict[str, typing.Any]:
    """The arguments of a configuration class, with the defaults of the installed TRL."""
    return {
        it.name: it.default if it.default_factory is dataclasses.MISSING else it.default_factory()
        for it in dataclasses.fields(config_class)
        if it.init
    }


@contextlib.contextmanager
def _folder_of(trainer: Trainer) -> typing.Iterator[None]:
    """With the folder that its constructor saw, for what a sweep saves."""
    folder = str(trainer.args.output_dir)
    os.makedirs(os.path.join(folder, "completions"))  # as the constructor leaves it
    try:
        yield
    finally:
        shutil.rmtree(folder)


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
    had_bars = bars.is_progress_bar_enabled(), not datasets.are_progress_bars_disabled()
    logging.disable(logging.WARNING)
    bars.disable_progress_bar()  # type: ignore[no-untyped-call]
    datasets.disable_progress_bars()
    hub.HF_HUB_OFFLINE = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        hub.HF_HUB_OFFLINE = offline
        logging.disable(level)
        if had_bars[0]:
            bars.enable_progress_bar()  # type: ignore[no-untyped-call]
        if had_bars[1]:
            datasets.enable_progress_bars()
