"""Live runs are watched: right ones are no alarm, bugs are found, and the training is the same."""

import shlex
import subprocess
import sys
import time

import live
import pytest
import torch
from planting import DPO, SFT, TRL, planted
from transformers import PrinterCallback, TrainerCallback
from trl import DPOTrainer, GRPOTrainer, SFTTrainer

import shakedown
from shakedown import _command
from shakedown.trainers import side, trl
from shakedown.trainers.trl import taps

BOTH = (live.variety, live.brevity)
PLAIN_KL = {"beta": 0.1, "use_bias_correction_kl": False}
TWICE = {"num_iterations": 2}
RIGHT = {
    "defaults": (live.grpo, {}),
    "two iterations, parts and an upper bound": (
        live.grpo, {**TWICE, "epsilon_high": 0.28, "gradient_accumulation_steps": 2},
    ),
    "a divergence": (live.grpo, {"loss_type": "bnpo", **PLAIN_KL, **TWICE}),
    "no scale and a fixed count": (
        live.grpo, {"loss_type": "dr_grpo", "scale_rewards": "none", "steps_per_generation": 4},
    ),
    "a divergence weighted by the ratio": (
        live.grpo, {"beta": 2.0, "importance_sampling_level": "sequence", **TWICE},
    ),
    "nothing but a weighted divergence": (
        live.grpo, {"loss_type": "dr_grpo", "rewards": [live.none], "beta": 5.0, **TWICE},
    ),
    "cispo": (
        live.grpo,
        {"loss_type": "cispo", "epsilon_high": 5.0, "scale_rewards": "batch", **TWICE},
    ),
    "ratios of sequences": (
        live.grpo,
        {"loss_type": "luspo", "importance_sampling_level": "sequence", "steps_per_generation": 2},
    ),
    "two functions, truncated rows masked": (
        live.grpo,
        {
            "loss_type": "grpo", "rewards": BOTH, "reward_weights": [1.0, 0.5], **PLAIN_KL,
            "mask_truncated_completions": True,
        },
    ),
    "functions normalised first": (
        live.grpo,
        {
            "rewards": BOTH, "multi_objective_aggregation": "normalize_then_sum", "delta": 2.0,
            "num_iterations": 3,
        },
    ),
    "bf16": (live.grpo, {"bf16": True, **TWICE}),
    "sft": (live.sft, {"gradient_accumulation_steps": 2}),
    "sft, packed": (live.sft, {"packing": True, "max_length": 16}),
    "sft, bf16": (live.sft, {"bf16": True}),
    "dpo": (live.dpo, {"gradient_accumulation_steps": 2}),
    "dpo, ipo": (live.dpo, {"loss_type": ["ipo"]}),
    "dpo, bf16": (live.dpo, {"bf16": True, "loss_type": ["nca_pair"]}),
}  # fmt: skip
BY_DAY = ["two iterations, parts and an upper bound", "sft", "dpo"]


def night(names, by_day):
    marks = {name: () if name in by_day else pytest.mark.night for name in names}
    return [pytest.param(name, marks=marks[name]) for name in names]


def watched(trainer, every=1, **options):
    """The watch over a whole training."""
    trainer.remove_callback(PrinterCallback)
    watching = trl.watch(trainer, every, **options)
    trainer.train()
    return watching


@pytest.mark.parametrize("name", night(RIGHT, BY_DAY))
def test_a_right_run_is_no_alarm(name, tmp_path):
    make, settings = RIGHT[name]
    watching = watched(make(tmp_path, steps=4, **settings))
    assert [it.text for it in watching.contradictions] == []
    assert watching.not_watched == {} and min(watching.checked.values()) >= 1
    assert set(watching.checked) == {*watching._stages}


@pytest.mark.night
@pytest.mark.parametrize("name", RIGHT)
def test_300_steps_of_a_right_run_are_no_alarm(name, tmp_path):
    make, settings = RIGHT[name]
    watching = watched(make(tmp_path, steps=300, **settings), every=10)
    assert [it.text for it in watching.contradictions] == []
    assert sum(watching.checked.values()) >= 60


@pytest.mark.night
@pytest.mark.parametrize("make", [live.grpo, live.sft, live.dpo])
def test_300_steps_cost_less_than_two_percent_more(make, tmp_path, monkeypatch):
    """Of the processor's time, which other processes do not change."""
    spent = []

    def timed(method):
        def call(*args):
            began = time.thread_time()
            method(*args)
            spent.append(time.thread_time() - began)

        return call

    for name in ("judge", "poll"):
        monkeypatch.setattr(taps.Watch, name, timed(getattr(taps.Watch, name)))
    trainer = make(tmp_path, steps=300)
    began = time.thread_time()
    watching = watched(trainer, every=50)
    whole = time.thread_time() - began
    print(f"{sum(spent):.3f} of {whole:.3f} s; {watching.checked}")
    assert len(spent) > 300 and min(watching.checked.values()) == 6
    assert sum(spent) < 0.02 * (whole - sum(spent))


@pytest.mark.parametrize("make", [live.grpo, live.sft, live.dpo])
def test_the_training_is_the_same_bit_for_bit(make, tmp_path):
    seen = []
    for is_watched in (False, True):
        settings = {"num_iterations": 2, **PLAIN_KL} if make is live.grpo else {}
        trainer = make(tmp_path, steps=4, dropout=0.2, **settings)
        losses = live.Losses()
        trainer.add_callback(losses)
        if is_watched:
            watching = watched(trainer)
        else:
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        seen.append((losses.rows, torch.get_rng_state(), [*trainer.model.parameters()]))
    (rows, state, weights), (rows_watched, state_watched, weights_watched) = seen
    assert watching.checked and len(rows) >= 4
    assert repr(rows) == repr(rows_watched)  # NaN is equal to itself here
    assert torch.equal(state, state_watched)
    assert all(map(torch.equal, weights, weights_watched))


SHUFFLED = "                generation_batch = shuffle_sequence_dict(generation_batch)\n"
LEFT = (
    '                kept = generation_batch["advantages"]\n'
    + SHUFFLED
    + '                generation_batch["advantages"] = kept\n'
)
MASK = (
    '        mask = completion_mask if "tool_mask" not in inputs else'
    ' completion_mask * inputs["tool_mask"]\n'
)
EARLY = MASK + "        mask = nn.functional.pad(mask[:, 1:], (0, 1))\n"
OFF_POLICY = {"loss_type": "grpo", "steps_per_generation": 2, "learning_rate": 3e-2}
SCALE = "self.scale_rewards = args.scale_rewards"
HEAD = "            temperature=self.temperature,\n            cast_lm_head"
CLAMPED = "torch.clamp(coef_1, 1 - self.epsilon_low, 1 + self.epsilon_high)"
KL = "per_token_loss + self.beta * per_token_kl"
WEIGHTING = "if self.args.use_bias_correction_kl:"
BUGS = {
    "baseline-missing": (
        TRL, {}, "advantages = rewards - mean_grouped_rewards", "advantages = rewards.clone()",
    ),
    "batch-deviation-for-the-group-s": (TRL, {}, SCALE, 'self.scale_rewards = "batch"'),
    "advantages[1] is": (
        TRL, {},
        "mean_grouped_rewards = mean_grouped_rewards.repeat_interleave(num_generations, dim=0)",
        "mean_grouped_rewards = mean_grouped_rewards.repeat(num_generations)",
    ),
    "mask-one-position-early": (TRL, {"loss_type": "grpo"}, MASK, EARLY),
    "unfinished": (
        TRL, {}, "if self.mask_truncated_completions:", "if not self.mask_truncated_completions:",
    ),
    "temperature": (TRL, {}, HEAD, HEAD.replace("self.temperature", "1.0")),
    "advantages": (TRL, {}, SHUFFLED, LEFT),
    "sequence-mean-called-token-mean": (
        TRL, {"loss_type": "bnpo"}, "self.loss_type = args.loss_type", 'self.loss_type = "grpo"',
    ),
    "gradient-doubled": (
        TRL, {"loss_type": "grpo", "gradient_accumulation_steps": 2},
        "loss_is_scaled_for_ga = True", "loss_is_scaled_for_ga = False",
    ),
    "old-log-probs-are-current": (
        TRL, OFF_POLICY, "per_token_logps.detach() if old_per_token_logps is None else",
        "per_token_logps.detach() if True else",
    ),
    "upper-bound-ignored": (
        TRL, OFF_POLICY, CLAMPED, "torch.clamp(coef_1, min=1 - self.epsilon_low)",
    ),
    "beta": (TRL, PLAIN_KL, KL, "per_token_loss - self.beta * per_token_kl"),
    "TRL weights the KL term": (
        TRL, {"beta": 0.5}, KL, "per_token_loss - self.beta * per_token_kl",
    ),
    "policy-loss": (TRL, {"beta": 0.5, **OFF_POLICY}, WEIGHTING, "if False:"),
    "reward_mean": (
        TRL, {"rewards": BOTH, "reward_weights": [2.0, 0.5]},
        "        rewards = (rewards_per_func * self.reward_weights.to(rewards_per_func.device)",
        "        rewards = (rewards_per_func * torch.ones(2)",
    ),
    "policy-gradient loss": (
        SFT, {"gradient_accumulation_steps": 2},
        "loss = per_token_loss.sum() / torch.as_tensor(num_tokens).clamp(min=1)",
        "loss = per_token_loss.sum() / outputs.label_mask.sum()",
    ),
    "chosen-and-rejected-inputs-swapped": (
        DPO, {}, "delta_score = chosen_scores - rejected_scores",
        "delta_score = rejected_scores - chosen_scores",
    ),
}  # fmt: skip
BASES = {TRL: (GRPOTrainer, live.grpo), SFT: (SFTTrainer, live.sft), DPO: (DPOTrainer, live.dpo)}


@pytest.mark.parametrize(
    "name", night(BUGS, ["batch-deviation-for-the-group-s", "advantages", "gradient-doubled"])
)
def test_bugs_in_a_live_run_are_found(name, tmp_path, monkeypatch):
    path, settings, right, wrong = BUGS[name]
    base, make = BASES[path]
    trainer_class = getattr(planted(path, right, wrong), base.__name__)
    stages = sys.modules["shakedown.trainers.trl.watch"].STAGES
    monkeypatch.setitem(stages, trainer_class, stages[base])
    watching = watched(make(tmp_path, trainer_class=trainer_class, steps=6, **settings))
    print(*[it.text for it in watching.contradictions], sep="\n")
    assert any(name in it.text for it in watching.contradictions)


class Wrong(GRPOTrainer):
    def _compute_loss(self, model, inputs):
        return -super()._compute_loss(model, inputs)


def test_a_contradiction_is_kept_with_the_command_that_shows_it(tmp_path, caplog):
    watching = watched(live.grpo(tmp_path, trainer_class=Wrong, steps=2))
    [wrong] = watching.contradictions
    assert wrong.contract == "policy-loss" and wrong.text in caplog.messages
    case = wrong.report.findings[0].case_file
    assert (tmp_path / ".shakedown/watch" / case).is_file() and case in wrong.text
    again = wrong.text.splitlines()[-1].partition("again")[2]
    words = [_command.find(), *shlex.split(again)[1:]]
    ran = subprocess.run(words, capture_output=True, text=True)
    assert ran.returncode == 1 and "objective-sign-flipped" in ran.stdout


def test_it_stops_the_training_where_that_is_wanted(tmp_path):
    trainer = live.grpo(tmp_path, trainer_class=Wrong, steps=400)
    with pytest.raises(shakedown.Broken, match="policy-loss"), trl.watch(trainer, 1, stop=True):
        trainer.train()
    assert trainer.state.global_step < 400


def test_it_leaves_the_trainer_as_it_was(tmp_path):
    for leave in ("train", "remove", "__exit__"):
        trainer = live.grpo(tmp_path, steps=1)
        callbacks = [*trainer.callback_handler.callbacks]
        watching = trl.watch(trainer)
        assert {"_compute_loss", "training_step"} <= {*vars(trainer)}
        getattr(trainer if leave == "train" else watching, leave)()
        assert not {"_compute_loss", "training_step", "_calculate_rewards"} & {*vars(trainer)}
        assert trainer.callback_handler.callbacks == callbacks
        watching.remove()  # once more does nothing


def test_what_is_not_watched_is_listed_once(tmp_path, caplog):
    trainer = live.grpo(tmp_path, steps=3, entropy_coef=0.1)
    watching = watched(trainer, skip={"completion-mask": "ours differs"})
    reasons = {
        "completion-mask": "ours differs",
        "policy-loss": "entropy_coef 0.1 is not judged yet: take it out of the configuration"
        " to check the rest",
    }
    assert watching.not_watched == reasons
    for contract, reason in reasons.items():
        assert caplog.messages.count(f"not watched: {contract}, because {reason}") == 1
    assert {*watching.checked} == {"group-advantage", "token-log-probs"}


def test_a_watch_that_saw_nothing_says_so(tmp_path, caplog):
    with trl.watch(live.sft(tmp_path)) as watching:
        pass
    assert {*watching.not_watched} == {"token-log-probs", "policy-loss"}
    assert "not watched: policy-loss, because no batch of it was checked" in caplog.messages


def test_a_watch_that_fails_does_not_stop_a_training(tmp_path, monkeypatch, caplog):
    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(side, "save_file", full)
    trainer = live.dpo(tmp_path, steps=2)
    watching = watched(trainer)
    assert trainer.state.global_step == 2
    assert watching.not_watched["preference-loss"] == "OSError: no space left on device"


def test_a_side_process_that_ends_is_reported(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(side, "LOOP", "raise SystemExit(3)")
    watching = watched(live.sft(tmp_path, steps=1))
    assert not watching.checked
    assert any("the side process has ended" in it for it in caplog.messages)


def test_calls_are_taken_at_changing_places():
    turn = taps.Turn(4)
    taken = [at for at in range(400) if turn()]
    assert len(taken) == 100 and taken[0] == 0
    assert {at % 4 for at in taken} == {0, 1, 2, 3}


def test_bad_arguments_are_refused(tmp_path):
    trainer = live.sft(tmp_path)
    with pytest.raises(shakedown.UsageError, match="every is 0, expected a number of batches"):
        trl.watch(trainer, every=0)
    with pytest.raises(
        shakedown.UsageError, match="a TrainerCallback cannot be watched; supported"
    ):
        trl.watch(TrainerCallback())
    with pytest.raises(shakedown.UsageError, match="skip: `policy-loss` needs a reason"):
        trl.watch(trainer, skip={"policy-loss": ""})
    tmp_path.joinpath("file").touch()
    with pytest.raises(shakedown.UsageError, match="Not a directory"):
        trl.watch(trainer, folder=str(tmp_path / "file" / "folder"))
    with (
        trl.watch(trainer, folder=str(tmp_path / "watch")),
        pytest.raises(shakedown.UsageError, match="this trainer is watched already"),
    ):
        trl.watch(trainer, folder=str(tmp_path / "watch"))
