"""Runs, configurations and data sets, from Python."""

import argparse
import dataclasses
import json
import pathlib
import re

import pytest

import shakedown

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "harness" / "python" / "shakedown" / "pages" / "runs.md"


def rows(first=0.5, last=0.1, number=120):
    """What a trainer logs while the reward goes from one value to another."""
    for step in range(number):
        noise = 0.01 * ((step * 37 % 17) - 8) / 8 + 0.003 * ((step * 53 % 11) - 5) / 5
        reward = first + (last - first) * step / (number - 1) + noise
        yield {
            "step": step + 1,
            "loss": noise,
            "grad_norm": 0.5 + noise,
            "learning_rate": 1e-6,
            "reward": reward,
            "reward_std": 0.3,
            "frac_reward_zero_std": 0.2,
        }


def test_rows_that_a_trainer_logged():
    diagnosis = shakedown.check_run(list(rows()))
    assert not diagnosis
    assert diagnosis.rules[0] == "reward-declines"
    finding = diagnosis.findings[0]
    assert finding["severity"] == "error" and finding["stage"] == "advantage"
    assert diagnosis.json["schema"] == "shakedown/diagnosis/1"
    assert "reward-declines" in str(diagnosis) and "run · rows" in str(diagnosis)
    assert "<svg" in diagnosis.html and "srcdoc" in diagnosis._repr_html_()
    with pytest.raises(shakedown.Broken, match="reward-declines"):
        diagnosis.verify()


def test_a_run_that_learns_is_true():
    diagnosis = shakedown.check_run(rows(0.1, 0.5), name="mine")
    assert diagnosis and diagnosis.rules == []
    diagnosis.verify()
    assert "mine" in repr(diagnosis)


def test_data_frames_and_columns_are_rows_too():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows())
    columns = {name: list(frame[name]) for name in frame}
    assert shakedown.check_run(frame).rules == shakedown.check_run(columns).rules
    assert shakedown.check_run(frame).rules == ["reward-declines"]


def test_numbers_of_numpy_and_what_is_not_finite():
    numpy = pytest.importorskip("numpy")
    history = [{**row, "loss": numpy.float32(row["loss"])} for row in rows(0.1, 0.5)]
    for row in history[60:]:
        row["loss"] = row["grad_norm"] = float("nan")
    assert "non-finite" in shakedown.check_run(history).rules


def test_paths_names_and_rules(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()).replace('reward"', 'mine"'))
    assert shakedown.check_run(path, only="reward-declines")
    names = {"reward.mean": "mine"}
    assert shakedown.check_run(path, names=names).rules == ["reward-declines"]
    assert shakedown.check_run(path, names=names, skip={"reward-declines": "known"})
    with pytest.raises(shakedown.UsageError, match="did you mean `reward-declines`"):
        shakedown.check_run(path, only="reward-decline")
    with pytest.raises(shakedown.UsageError, match="nothing.jsonl"):
        shakedown.check_run(tmp_path / "nothing.jsonl")
    with pytest.raises(shakedown.UsageError, match="dictionaries"):
        shakedown.check_run([1, 2])


def test_configurations_in_every_form(tmp_path):
    fields = {"num_generations": 8, "beta": 2.0, "learning_rate": 1e-6}

    @dataclasses.dataclass
    class GRPOConfig:
        num_generations: int = 8
        beta: float = 2.0
        learning_rate: float = 1e-6

    path = tmp_path / "train.yaml"
    path.write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    namespace = argparse.Namespace(**fields)
    for config, call in [
        (fields, "GRPOConfig"),
        (GRPOConfig(), None),
        (namespace, "GRPOConfig"),
    ]:
        diagnosis = shakedown.check_config(config, call=call)
        assert "kl-coefficient" in diagnosis.rules, diagnosis
    assert shakedown.check_config(path).json["subjects"][0]["library"] == "trl"
    with pytest.raises(shakedown.UsageError, match="expected a configuration"):
        shakedown.check_config(3)


def test_a_configuration_of_trl():
    pytest.importorskip("torch")
    trl = pytest.importorskip("trl")
    arguments = {"output_dir": "out", "report_to": [], "bf16": False}
    config = trl.GRPOConfig(num_generations=8, beta=0.0, **arguments)
    diagnosis = shakedown.check_config(config)
    assert diagnosis, diagnosis
    assert "kl-coefficient" in shakedown.check_config(trl.GRPOConfig(beta=3.0, **arguments)).rules


def test_data_sets():
    good = [{"prompt": f"what is {n} + {n}?", "answer": str(2 * n)} for n in range(40)]
    assert shakedown.check_data(good)
    diagnosis = shakedown.check_data([{**row, "answer": "7"} for row in good])
    assert "one-answer" in diagnosis.rules
    assert "train-test-overlap" in shakedown.check_data(good, eval=good[:3]).rules
    assert "what is" not in str(diagnosis)


def test_a_data_set_of_datasets():
    datasets = pytest.importorskip("datasets")
    rows = [{"prompt": f"what is {n} + {n}?", "answer": ""} for n in range(40)]
    assert "answer-missing" in shakedown.check_data(datasets.Dataset.from_list(rows)).rules


def test_the_callback_of_the_page(capsys):
    transformers = pytest.importorskip("transformers")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    (block,) = [block for block in blocks if block.startswith("# a callback")]
    scope = {"shakedown": shakedown}
    exec(block, scope)
    callback = scope["Shakedown"](every=50)
    assert isinstance(callback, transformers.TrainerCallback)
    state = transformers.TrainerState()
    control = transformers.TrainerControl()
    config = type("GRPOConfig", (), {"to_dict": lambda self: {"num_generations": 8}})()
    for row in rows():
        state.global_step = row["step"]
        state.log_history.append(row)
        callback.on_log(config, state, control)
    callback.on_train_end(config, state, control)
    shown = capsys.readouterr().out
    assert shown.count("run · rows") == 3
    assert shown.count("reward-declines") >= 2
