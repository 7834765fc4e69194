"""A sweep: a trainer under one configuration, and with one setting after the other changed.

Settings on which no update may depend have no option of the contract, so the trainer has to do the
same as before. Judged settings are changed in the options, too: one that never arrives is found.
"""

from __future__ import annotations

import fnmatch
import json
import typing

from transformers import TrainingArguments

from ..._errors import UsageError
from .runs import QUIET, Config, Runs, Settings, defaults, settings_of

HARMLESS: list[Settings] = [
    {"average_tokens_across_devices": False},
    {"dataloader_drop_last": True},
    {"dataloader_num_workers": 1},
    {"dataloader_pin_memory": True},
    {"disable_dropout": True},
    {"disable_dropout": False},
    {"gradient_checkpointing": True},
    {"include_num_input_tokens_seen": "all"},
    {"logging_strategy": "steps", "logging_steps": 1},
    {"pad_to_multiple_of": 8},
    {"remove_unused_columns": False},
    {"remove_unused_columns": True},
    {"save_strategy": "steps", "save_steps": 1},
    {"seed": 7, "data_seed": 7},
    {"train_sampling_strategy": "sequential"},
    {"use_cache": True},
]
"""Settings of all trainers on which no update may depend."""
NOT_SWEPT = {
    "the optimizer and its schedule are the puppet's": [
        "adam_*", "learning_rate", "lr_*", "max_grad_norm", "optim*", "warmup_*", "weight_decay",
    ],
    "each case has its own": [
        "auto_find_batch_size", "generation_batch_size", "max_length", "max_steps",
        "num_generations", "num_train_epochs", "per_device_*", "shuffle_dataset",
        "truncation_mode",
    ],
    "arithmetic of another precision": ["bf16*", "fp16*", "tf32"],
    "needs a GPU, or several": [
        "accelerator_config", "activation_*", "ddp_*", "deepspeed", "ds3_*", "fsdp*",
        "liger_kernel_config", "local_rank", "parallelism_config", "torch_empty_cache_steps",
        "use_cpu",
    ],
    "needs vLLM or another server": ["transformers_*", "use_transformers_*", "use_vllm", "vllm_*"],
    "needs the network": [
        "hub_*", "log_completions_hub_repo", "project", "push_to_hub", "report_to", "trackio_*",
    ],
    "needs data for an evaluation": [
        "batch_eval_metrics", "do_*", "eval_*", "generate_during_eval", "greater_is_better",
        "include_for_metrics", "load_best_model_at_end", "metric_for_best_model",
        "num_generations_eval", "prediction_loss_only",
    ],
    "needs a run to go on from": [
        "ignore_data_skip", "restore_callback_states_from_checkpoint", "resume_from_checkpoint",
    ],
    "needs tools, or experts": ["max_tool_calling_iterations", "router_aux_loss_coef"],
    "compiles for minutes": ["torch_compile*"],
    "changes the whole process": ["full_determinism"],
    "names files, models, layers, tokenizers or columns": [
        "cache_implementation", "chat_template_*", "dataset_kwargs", "dataset_text_field",
        "eos_token", "generation_kwargs", "gradient_checkpointing_kwargs", "is_encoder_decoder",
        "label_names", "length_column_name", "model_init_kwargs", "output_dir", "pad_token",
        "padding_value", "run_name", "trust_remote_code",
    ],
    "goes with a setting that is changed": [
        "dataloader_*", "debug", "disable_tqdm", "enable_jit_checkpoint", "eval_packing",
        "log_level*", "log_multimodal", "log_on_each_node", "log_unique_prompts",
        "logging_first_step", "logging_nan_inf_filter", "num_completions_to_print", "save_*",
        "skip_memory_metrics",
    ],
}  # fmt: skip
"""Why settings are not swept, and their names."""


def sweep(
    runs: type[Runs], config: Config, config_class: type[TrainingArguments]
) -> tuple[list[Settings], list[str]]:
    """What is changed in each run of a sweep, and why other settings are not."""
    settings, known = settings_of(config, config_class), defaults(config_class)
    given = {**known, **settings, **QUIET}
    changes: list[Settings] = []
    notes = []
    for change in (*HARMLESS, *runs.harmless):
        if {*change} <= {*known} and any(given[name] != it for name, it in change.items()):
            changes.append(change)
    for candidates in runs.telling:
        if not {*candidates[0]} <= {*known}:
            continue  # this release does not have it
        try:
            changes.append(_telling(runs, settings, candidates))
        except UsageError as error:
            why = str(error).partition(":")[0]
            notes.append(f"not swept: {named(candidates[-1])} ({why})")
    notes += [f"not swept: {change} ({why})" for change, why in runs.not_swept.items()]
    swept = {name for change in changes for name in change}
    for reason, patterns in NOT_SWEPT.items():
        there = [it for it in patterns if {*fnmatch.filter(known, it)} - swept]
        if there:
            notes.append(f"not swept: {', '.join(there)} ({reason})")
    return changes, notes


def named(change: Settings) -> str:
    """A change as a file of YAML has it."""
    written = (f"{name}: {json.dumps(value)}" for name, value in change.items())
    return ", ".join(written).replace('"', "")


def _telling(
    runs: type[Runs], settings: Settings, candidates: typing.Sequence[Settings]
) -> Settings:
    """The first change of a judged setting that the options show, or else that may not matter."""
    before, same = runs.options(settings), []
    for change in candidates:
        changed = {**settings, **change}
        try:
            runs.must_be_judged(changed)
            if runs.options(changed) != before:
                return change
            same.append(change)
        except UsageError as error:
            refused = error
    if not same:
        raise refused
    return same[-1]
