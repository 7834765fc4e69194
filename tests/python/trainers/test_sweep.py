"""Sweeps: right trainers pass them; one that is wrong under a changed setting does not."""

import dataclasses
import fnmatch
import json
import os
import subprocess

import pytest
import torch
import yaml
from trl import GRPOTrainer

from shakedown.trainers import trl
from shakedown.trainers.__main__ import main
from shakedown.trainers.trl.sweep import HARMLESS, NOT_SWEPT

NIGHT = os.environ.get("SHAKEDOWN_NIGHT") == "1"
CASES = 12 if NIGHT else 1
BY_DAY = ["pad_to_multiple_of: 8", "gradient_checkpointing: true", "num_iterations: 2"]
RUNS = {runs.__name__: runs for runs in trl.ALL.values()}
CHANGES = [
    pytest.param(
        runs, change, id=f"{kind}, {trl.named(change)}",
        marks=[] if kind == "GRPO" and trl.named(change) in BY_DAY else pytest.mark.night,
    )
    for kind, runs in RUNS.items()
    for change in trl.sweep(runs, {}, runs.base_config)[0]
]  # fmt: skip


class PaddingTrained(GRPOTrainer):
    """Trains padding where there is more of it."""

    def _compute_loss(self, model, inputs):
        if self.args.pad_to_multiple_of == 8:
            inputs["completion_mask"] = torch.ones_like(inputs["completion_mask"])
        return super()._compute_loss(model, inputs)


class AlwaysOnPolicy(GRPOTrainer):
    """Forgets the log-probs of the sampler where the forward pass comes again."""

    def _compute_loss(self, model, inputs):
        if self.args.gradient_checkpointing:
            inputs["old_per_token_logps"] = None
        return super()._compute_loss(model, inputs)


class SumOfMicroBatches(GRPOTrainer):
    """Its loss depends on how many micro-batches there are."""

    def _compute_loss(self, model, inputs):
        return super()._compute_loss(model, inputs) * self.args.gradient_accumulation_steps


class OneBound(GRPOTrainer):
    """Drops `epsilon_high`."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.epsilon_high = self.epsilon_low


def report_of(trainer, change):
    contract = trl.contract(change).settings(cases=CASES, time=60)
    return contract.report(trl.GRPO(trainer=trainer, changed=change))


@pytest.mark.parametrize(("runs", "change"), CHANGES)
def test_trl_passes(runs, change):
    contract = trl.contract(change, runs.base_config).settings(cases=CASES, time=None)
    contract.check(runs(changed=change))


@pytest.mark.parametrize(
    ("trainer", "change"),
    [
        (PaddingTrained, {"pad_to_multiple_of": 8}),
        (AlwaysOnPolicy, {"gradient_checkpointing": True}),
    ],
)
@pytest.mark.night
def test_a_setting_that_must_not_matter_does(trainer, change):
    assert report_of(trainer, {}).status == "pass"
    assert report_of(trainer, change).status == "fail"


@pytest.mark.night
def test_a_loss_that_depends_on_the_micro_batches_is_found():
    report = report_of(SumOfMicroBatches, {"gradient_accumulation_steps": 2})
    assert "micro-batches-summed" in report.text


def test_an_option_without_effect_is_found():
    report = report_of(OneBound, {"epsilon_high": 0.5})
    assert "(the same as `clip_high: 0.2`)" in report.text


@pytest.mark.parametrize("kind", RUNS)
def test_no_setting_is_left_out_silently(kind):
    runs = RUNS[kind]
    swept = {name for change in (*HARMLESS, *runs.harmless) for name in change}
    swept |= {name for candidates in runs.telling for change in candidates for name in change}
    patterns = [*swept, *runs.refused, *(it for names in NOT_SWEPT.values() for it in names)]
    names = [it.name for it in dataclasses.fields(runs.base_config) if it.init]
    assert [it for it in names if not any(fnmatch.fnmatch(it, by) for by in patterns)] == []


def test_a_sweep_has_a_component_for_each_change(tmp_path, capsys):
    tmp_path.joinpath("grpo.yaml").write_text("{beta: 0.5, gradient_checkpointing: true}")
    assert main(["trl.GRPOTrainer", "--config=grpo.yaml", "--sweep"]) is None
    written = capsys.readouterr()
    first, *others = yaml.safe_load(written.out)["components"]
    others = {it["name"].partition(", ")[2]: it for it in others}
    assert "changed" not in first["init"]
    assert others["pad_to_multiple_of: 8"] == {
        **first,
        "name": "trl.GRPOTrainer, pad_to_multiple_of: 8",
        "init": {**first["init"], "changed": {"pad_to_multiple_of": 8}},
    }
    assert others["beta: 0.04"]["options"] == {**first["options"], "beta": 0.04}
    assert "gradient_checkpointing: true" in others  # a check leaves it out otherwise
    assert "not swept: multi_objective_aggregation: normalize_then_sum" in written.err
    assert "vllm_* (needs vLLM" in written.err


@pytest.mark.night
@pytest.mark.parametrize("kind", RUNS)
def test_the_command_sweeps(kind, tmp_path):
    command = [os.environ["SHAKEDOWN_BIN"], "check-trainer", f"trl.{kind}Trainer", "--sweep"]
    checked = subprocess.run([*command, "--json=report.json"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    components = json.loads(tmp_path.joinpath("report.json").read_text())["components"]
    assert len(components) == 1 + len(trl.sweep(RUNS[kind], {}, RUNS[kind].base_config)[0])
