"""Right trainers pass the check of `grpo-step`, by every way to it."""

import json
import os
import subprocess

import by_hand
import pytest
import yaml

import shakedown
from shakedown.trainers import trl
from shakedown.trainers.__main__ import main

NIGHT = os.environ.get("SHAKEDOWN_NIGHT") == "1"
CASES = 48 if NIGHT else 1
RIGHT = {
    "TRL's defaults": {},
    "dapo": {
        "loss_type": "dapo", "epsilon_high": 0.28, "beta": 0.04, "steps_per_generation": 4,
        "gradient_accumulation_steps": 2,
    },
    "bnpo": {
        "loss_type": "bnpo", "beta": 0.1, "temperature": 0.7, "gradient_accumulation_steps": 2,
    },
    "Dr. GRPO": {"loss_type": "dr_grpo", "scale_rewards": "none", "max_completion_length": 16},
    "GSPO": {
        "loss_type": "grpo", "importance_sampling_level": "sequence", "beta": 0.04,
        "num_iterations": 2,
    },
    "not divided": {
        "loss_type": "grpo", "scale_rewards": "none", "beta": 0.05,
        "mask_truncated_completions": True,
    },
    "cispo": {"loss_type": "cispo", "epsilon_high": 5.0, "num_iterations": 2},
    "luspo": {
        "loss_type": "luspo", "importance_sampling_level": "sequence", "num_iterations": 2,
        "epsilon": 0.1,
    },
    "several rewards": {
        "reward_weights": [2.0, 0.5], "scale_rewards": "batch", "delta": 1.5, "num_iterations": 2,
        "mask_truncated_completions": True,
    },
    "plain divergence": {
        "loss_type": "grpo", "use_bias_correction_kl": False, "beta": 0.5,
        "steps_per_generation": 4, "gradient_accumulation_steps": 2,
    },
}  # fmt: skip
BY_DAY = ["TRL's defaults"]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(config, id=name, marks=[] if name in BY_DAY else [pytest.mark.night])
        for name, config in RIGHT.items()
    ],
)
def test_trl_passes(config):
    trl.contract(config).settings(cases=CASES, time=None).check(trl.GRPO(config))


BY_HAND = shakedown.GrpoStep(
    aggregate="token-mean", over="update", eos=[1, 2], generations=2, iterations=2, mini_batches=2
).settings(cases=CASES, time=None, places=["cpu/f32", "cpu/f64"])


@BY_HAND
def test_a_trainer_by_hand_passes(puppet):
    train(puppet)


@BY_HAND
def test_options_that_a_test_names_change_from_case_to_case(
    puppet, temperature, beta, clip_low, clip_high, accumulation
):
    assert puppet.accumulation == accumulation
    assert (puppet.reference is not None) == (beta > 0)
    train(puppet, temperature, beta, clip_low, clip_high)


def train(puppet, *options, trainer=by_hand.Trainer):
    mine = trainer(puppet, *options)
    for prompts in puppet.batches:
        mine.step(prompts)


@pytest.fixture
def factor():
    return 3.0


@shakedown.GrpoStep(temperature=0.7, eos=[1, 2], aggregate="token-mean", over="update").settings(
    cases=CASES
)
def test_a_puppet_goes_with_fixtures(puppet, factor):
    assert factor == 3.0
    train(puppet, 0.7)


def test_a_wrong_number_of_updates_is_told():
    def once_more(puppet):
        train(puppet)
        puppet.optimizer.step()

    report = BY_HAND.settings(cases=1, places=["cpu/f32"]).report(once_more)
    assert report.findings[0].invariant == "does-not-raise"
    assert "the trainer made 9 updates, 8 are declared" in report.text


def test_an_option_by_another_name_reaches_the_test():
    def mine(puppet, kl_coef):
        train(puppet, 1.0, kl_coef)

    contract = shakedown.GrpoStep(eos=[1, 2], aggregate="token-mean", over="update")
    contract.settings(cases=1, names={"beta": "kl_coef"}).check(mine)


def test_a_configuration_becomes_a_manifest_that_passes(tmp_path, capsys):
    lines = [
        "model_name_or_path: some/model", "loss_type: grpo", "learning_rate: 2e-6", "beta: 0.04",
        "reward_funcs: [accuracy_reward]", "max_completion_length: 1024",
    ]  # fmt: skip
    tmp_path.joinpath("grpo.yaml").write_text("\n".join(lines))
    assert main(["trl.GRPOTrainer", "--config", "grpo.yaml"]) is None
    written = capsys.readouterr()
    assert written.err.splitlines() == [
        "not judged: learning_rate",
        "not judged: model_name_or_path",
        "not judged: reward_funcs",
    ]
    tmp_path.joinpath("shakedown.yaml").write_text(written.out)
    command = [os.environ["SHAKEDOWN_BIN"], "check", "--cases=1", "--json=report.json"]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    [component] = json.loads(tmp_path.joinpath("report.json").read_text())["components"]
    assert component["name"] == "trl.GRPOTrainer" and component["status"] == "pass"


def test_a_subclass_and_its_configuration_come_from_a_script(tmp_path, capsys):
    tmp_path.joinpath("our_training.py").write_text(
        "import trl\n"
        "class Config(trl.GRPOConfig): pass\n"
        "class Ours(trl.GRPOTrainer): pass\n"
        "args = Config(output_dir='out', bf16=False, use_cpu=True, beta=0.1)\n"
    )
    assert main(["our_training.py:Ours", "--config", "our_training.py"]) is None
    [component] = yaml.safe_load(capsys.readouterr().out)["components"]
    assert component["init"] == {
        "trainer": "our_training.py:Ours",
        "config_class": "our_training.py:Config",
        "config": {"beta": 0.1},
    }
    assert component["name"] == "Ours" and component["options"]["beta"] == 0.1
    assert callable(trl.GRPO(**component["init"]))


@pytest.mark.parametrize(
    ("trainer", "lines", "expected"),
    [
        (
            "SFTTrainer", ["completion_only_loss: false", "max_length: 64"],
            {
                "contract": "sft-step", "target": "python:shakedown.trainers.trl:SFT",
                "init": {"config": {"completion_only_loss": False}},
                "options": {
                    "eos": 1, "pad": 0, "epochs": 2, "mini_batches": 2, "accumulation": 1,
                    "trained": "text", "loss": "nll", "over": "update",
                },
            },
        ),
        (
            "DPOTrainer", ["loss_type: [ipo]", "beta: 1e-1", "num_train_epochs: 1"],
            {
                "contract": "preference-step", "target": "python:shakedown.trainers.trl:DPO",
                "init": {"config": {"loss_type": ["ipo"], "num_train_epochs": 1}},
                "options": {
                    "eos": 1, "pad": 0, "epochs": 1, "mini_batches": 2, "accumulation": 1,
                    "kind": "ipo-norm", "beta": 0.1, "label_smoothing": 0.0,
                },
            },
        ),
        (
            "RewardTrainer", ["center_rewards_coefficient: 1e-2", "gradient_accumulation_steps: 2"],
            {
                "contract": "reward-model-step",
                "target": "python:shakedown.trainers.trl:RewardModel",
                "init": {
                    "config": {"center_rewards_coefficient": 0.01, "gradient_accumulation_steps": 2}
                },
                "options": {
                    "eos": 1, "pad": 0, "epochs": 2, "mini_batches": 2, "accumulation": 2,
                    "pooled": "last-non-pad", "center": 0.01,
                },
            },
        ),
        (
            "KTOTrainer", ["desirable_weight: 1.5", "num_train_epochs: 1"],
            {
                "contract": "kto-step", "target": "python:shakedown.trainers.trl:KTO",
                "init": {"config": {"desirable_weight": 1.5, "num_train_epochs": 1}},
                "options": {
                    "eos": 1, "pad": 0, "epochs": 1, "mini_batches": 2, "accumulation": 1,
                    "kind": "kto", "beta": 0.1, "desirable_weight": 1.5, "undesirable_weight": 1.0,
                },
            },
        ),
    ],
    ids=["sft", "dpo", "reward", "kto"],
)  # fmt: skip
def test_other_trainers_have_their_manifests(trainer, lines, expected, tmp_path, capsys):
    tmp_path.joinpath("training.yaml").write_text("\n".join([*lines, "dataset_name: some/data"]))
    assert main([f"trl.{trainer}", "--config", "training.yaml"]) is None
    written = capsys.readouterr()
    assert written.err.splitlines() == ["not judged: dataset_name"]
    [component] = yaml.safe_load(written.out)["components"]
    assert component == {"name": f"trl.{trainer}", **expected}


@pytest.mark.parametrize("kind", ["CPO", "ORPO"])
def test_a_trainer_has_one_name_wherever_trl_has_it(kind, capsys):
    written = []
    for name in (f"trl.{kind}Trainer", f"trl.experimental.{kind.lower()}.{kind}Trainer"):
        assert main([name]) is None
        written.append(capsys.readouterr().out)
    [component] = yaml.safe_load(written[0])["components"]
    assert component["name"] == f"trl.{kind}Trainer"
    assert component["contract"] == "preference-step"
    assert written[0] == written[1]


@pytest.mark.parametrize("kind", ["SFT", "DPO"])
def test_subclasses_of_other_trainers_are_run_as_their_base_is(kind, tmp_path, capsys):
    tmp_path.joinpath("ours.py").write_text(
        "import trl\n"
        f"class Config(trl.{kind}Config): pass\n"
        f"class Ours(trl.{kind}Trainer): pass\n"
        "args = Config(output_dir='out', bf16=False, use_cpu=True, seed=3)\n"
    )
    assert main(["ours.py:Ours", "--config", "ours.py"]) is None
    written = capsys.readouterr()
    [component] = yaml.safe_load(written.out)["components"]
    assert component["target"] == f"python:shakedown.trainers.trl:{kind}"
    assert component["init"] == {
        "trainer": "ours.py:Ours",
        "config_class": "ours.py:Config",
        "config": {"seed": 3},
    }
    assert written.err == "not judged: seed\n"
    other = {"SFT": "DPO", "DPO": "GRPO"}[kind]
    assert f"ours.py makes a Config, expected a {other}Config" in main(
        [f"trl.{other}Trainer", "--config", "ours.py"]
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trl.DPOTrianer"], "`trl.DPOTrianer` is not supported; did you mean `trl.DPOTrainer`?"),
        (["trl.GRPTrainer"], "`trl.GRPTrainer` is not supported; did you mean `trl.GRPOTrainer`?"),
        (["json:dumps"], "`json:dumps` is not a subclass of trl.GRPOTrainer or trl.RLOOTrainer or"),
        (["jsn:dumps"], "no module `jsn`"),
        (["trl.GRPOTrainer", "--config=no.yaml"], "No such file"),
        (["trl.GRPOTrainer", "--config=no.toml"], "expected a file that ends in .yaml"),
        (["trl.GRPOTrainer", "--config=grpo.json"], "GRPOConfig has no `epsilom`"),
    ],
)
def test_what_cannot_be_checked_is_told(words, message, tmp_path):
    tmp_path.joinpath("grpo.json").write_text('{"epsilom": 0.1}')
    assert message in main(words)
