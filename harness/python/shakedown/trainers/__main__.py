"""`python -m shakedown.trainers trl.GRPOTrainer --config grpo.yaml`: prints a manifest."""

from __future__ import annotations

import argparse
import difflib
import runpy
import sys
import typing

import yaml  # type: ignore[import-untyped]

from .._errors import UsageError

SUPPORTED = [
    "trl.GRPOTrainer", "trl.RLOOTrainer", "trl.SFTTrainer", "trl.DPOTrainer", "trl.RewardTrainer",
    "trl.KTOTrainer", "trl.CPOTrainer", "trl.ORPOTrainer",
]  # fmt: skip
PATHS = {
    "trl.experimental.cpo.CPOTrainer": "trl.CPOTrainer",
    "trl.experimental.orpo.ORPOTrainer": "trl.ORPOTrainer",
}
"""Where TRL has some of these trainers."""
IN_A_SCRIPT = ("config", "args", "training_args")
"""What a configuration is called in a file of Python."""
OF_SCRIPTS = {"datasets", "env", "reward_funcs", "reward_model_name_or_path"}
"""Keys of TRL's configuration files that belong to its scripts, beside those of its dataclasses."""


def main(words: list[str]) -> str | None:
    parser = argparse.ArgumentParser(
        prog="python -m shakedown.trainers",
        description="Print a manifest that checks a whole trainer: `shakedown check FILE` runs it.",
        epilog="Settings that the check does not judge are listed on standard error.",
    )
    what = f"{', '.join(SUPPORTED)}, or a subclass: MODULE:CLASS or FILE.py:CLASS"
    parser.add_argument("trainer", help=what)
    what = "its arguments: .yaml, .json, or .py with a `config`, `args` or `training_args`"
    parser.add_argument("--config", metavar="FILE", help=f"{what} [default: those of TRL]")
    what = "also a component for each setting that is changed: it must not matter, or must arrive"
    parser.add_argument("--sweep", action="store_true", help=what)
    given = parser.parse_args(words)
    try:
        manifest, notes = manifest_of(given.trainer, given.config, given.sweep)
    except OSError as error:
        return f"error: {error.filename}: {error.strerror}"
    except UsageError as error:
        return f"error: {error}"
    print(yaml.safe_dump(manifest, sort_keys=False, default_flow_style=None, width=100), end="")
    for note in notes:
        print(note, file=sys.stderr)
    return None


def manifest_of(
    trainer: str, file: str | None, is_swept: bool = False
) -> tuple[dict[str, object], list[str]]:
    """A manifest of one component, or of a sweep; and a note on what is not judged or changed."""
    trainer = PATHS.get(trainer, trainer)
    if trainer not in SUPPORTED and ":" not in trainer:
        near = [it for it in SUPPORTED if it.lower() == trainer.lower()]
        # The names of TRL's other trainers are near, too.
        near = near or difflib.get_close_matches(trainer, SUPPORTED, 1, 0.9)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        supported = f"supported: {', '.join(SUPPORTED)}, and subclasses as MODULE:CLASS"
        raise UsageError(f"trainer `{trainer}` is not supported{hint} ({supported})")
    config = {} if file is None else read(file)
    from transformers import TrainingArguments

    from . import trl  # takes seconds

    init: dict[str, typing.Any] = {}
    if trainer in trl.ALL:
        runs = trl.ALL[trainer]
    else:
        runs = trl.runs_with(trl.found(trainer), trainer)
        init["trainer"] = trainer
    others: list[str] = []
    config_class: type[TrainingArguments] = runs.base_config
    if isinstance(config, dict):
        others = sorted({*config} & {*trl.of_scripts(), *OF_SCRIPTS})
        named = {name: it for name, it in config.items() if name not in others}
        config = trl.as_typed(named, config_class)
    elif not isinstance(config, config_class):
        made = type(config).__name__
        raise UsageError(f"{file} makes a {made}, expected a {config_class.__name__}")
    elif type(config) is not config_class:
        config_class = type(config)
        script = config_class.__module__ in ("__main__", "<run_path>")
        where = file if script else config_class.__module__
        init["config_class"] = f"{where}:{config_class.__qualname__}"
    options, not_judged = trl.options_of(config, config_class)
    settings = trl.settings_of(config, config_class)
    init["config"] = trl.to_write(settings)
    component: dict[str, typing.Any] = {
        "name": trainer.rpartition(":")[2],
        "contract": runs.contract_id,
        "target": f"python:shakedown.trainers.trl:{runs.__name__}",
        "init": init,
        "options": options,
    }
    notes = [f"not judged: {name}" for name in (*not_judged, *others)]
    components = [component]
    if is_swept:
        changes, not_swept = trl.sweep(runs, settings, config_class)
        notes += not_swept
        components += [
            {
                **component,
                "name": f"{component['name']}, {trl.named(change)}",
                "init": {**init, "changed": change},
                "options": runs.options({**settings, **change}),
            }
            for change in changes
        ]
    return {"version": 1, "components": components}, notes


def read(file: str) -> typing.Any:
    """A configuration as its file has it: settings by name, or an object."""
    ending = file.rpartition(".")[2]
    if ending == "py":
        names = runpy.run_path(file)
        config = next((names[name] for name in IN_A_SCRIPT if name in names), None)
        if config is None:
            raise UsageError(f"{file} defines none of {', '.join(IN_A_SCRIPT)}")
        return config
    if ending not in ("yaml", "yml", "json"):
        raise UsageError(f"{file}: expected a file that ends in .yaml, .json or .py")
    with open(file, encoding="utf-8") as text:
        try:
            config = yaml.safe_load(text) or {}
        except yaml.YAMLError as error:
            raise UsageError(f"{file}: {error}") from None
    if not isinstance(config, dict):
        raise UsageError(f"{file}: expected settings by name")
    return config


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
