"""TRL's GRPO trainer as a component of `grpo-step`."""

from __future__ import annotations

import typing

from datasets import Dataset  # type: ignore[import-untyped]
from torch import Tensor
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from ..._errors import UsageError
from ..puppets import GrpoPuppet
from .runs import Options, Runs, Settings, defaults, not_judged

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


class Sampling(Runs):
    """A trainer that samples completions of prompts, and asks reward functions about them."""

    contract_id = "grpo-step"
    puppet_class = GrpoPuppet
    kept = 24

    def _sizes(self, puppet: GrpoPuppet) -> dict[str, typing.Any]:
        return {**super()._sizes(puppet), "num_generations": puppet.group}

    def _arguments(self, puppet: GrpoPuppet, options: Options) -> dict[str, typing.Any]:
        prompts = [{"prompt": puppet.words(prompt)} for prompt in puppet.prompts]
        return {"reward_funcs": puppet.rewards, "train_dataset": Dataset.from_list(prompts)}


class GRPO(Sampling):
    """A GRPO trainer under one configuration: see `Runs`."""

    trainer_class = GRPOTrainer
    base_config = GRPOConfig
    judged = {
        "beta", "delta", "epsilon", "epsilon_high", "gradient_accumulation_steps",
        "importance_sampling_level", "loss_type", "mask_truncated_completions",
        "max_completion_length", "multi_objective_aggregation", "num_generations",
        "num_iterations", "reward_weights", "scale_rewards", "steps_per_generation",
        "temperature", "use_bias_correction_kl",
    }  # fmt: skip
    refused = {
        "entropy_coef", "neftune_noise_alpha", "off_policy_mask_threshold", "sync_ref_model",
        "top_entropy_quantile", "use_adaptive_entropy", "use_liger_kernel",
    }  # fmt: skip
    harmless = (
        {"cast_lm_head_to_fp32": True},
        {"train_sampling_strategy": "group_by_length"},
        {"top_k": 5, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.1},
        {"logging_strategy": "steps", "logging_steps": 1, "log_completions": True},
        {"entropy_coef_min": 0.1, "entropy_coef_max": 0.5, "entropy_coef_delta": 0.1,
         "entropy_target": 0.9},  # of `use_adaptive_entropy`
        {"label_smoothing_factor": 0.1},  # of another loss
        {"ref_model_mixup_alpha": 0.1, "ref_model_sync_steps": 1},  # of `sync_ref_model`
        {"sapo_temperature_neg": 2.0, "sapo_temperature_pos": 2.0},  # of the loss sapo
        {"vespo_k_neg": 1.0, "vespo_k_pos": 1.0, "vespo_lambda_neg": 1.0, "vespo_lambda_pos": 1.0},
    )  # fmt: skip
    telling = (
        [{"beta": 0.5}, {"beta": 0.04}],
        [{"delta": 1.5}, {"delta": 2.5}, {"delta": 10.0}],
        [{"epsilon": 0.1}, {"epsilon": 0.3}],
        [{"epsilon_high": 0.5}, {"epsilon_high": 0.3}],
        [{"gradient_accumulation_steps": 2}, {"gradient_accumulation_steps": 1}],
        [{"importance_sampling_level": "sequence"}, {"importance_sampling_level": "token"}],
        [{"loss_type": "bnpo"}, {"loss_type": "grpo"}],
        [{"mask_truncated_completions": True}, {"mask_truncated_completions": False}],
        [{"max_completion_length": 16}, {"max_completion_length": 32}],
        [{"multi_objective_aggregation": "normalize_then_sum"}],
        [{"num_iterations": 2}, {"num_iterations": 1}],
        [{"reward_weights": [2.0, 0.5]}, {"reward_weights": [1.0, 3.0]}],
        [{"scale_rewards": "none"}, {"scale_rewards": "group"}],
        [{"steps_per_generation": 2}, {"steps_per_generation": 4}, {"steps_per_generation": 8}],
        [{"temperature": 0.7}, {"temperature": 1.3}],
        [{"use_bias_correction_kl": False}, {"use_bias_correction_kl": True}],
    )

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

    @classmethod
    def must_be_judged(cls, settings: Settings) -> None:
        super().must_be_judged(settings)
        if settings.get("multi_objective_aggregation") == "normalize_then_sum":
            raise not_judged("multi_objective_aggregation 'normalize_then_sum'")
        loss = {**defaults(GRPOConfig), **settings}["loss_type"]
        if loss not in LOSSES:
            supported = ", ".join(LOSSES)
            raise UsageError(f"loss_type {loss!r} is not judged yet; supported: {supported}")
        options = cls.options(settings)
        delta, bound = options["dual_clip"], 1 + options["clip_high"]
        if delta is not None and delta <= bound:
            what = f"delta {delta} is not above 1 + epsilon_high, {bound:g}"
            raise UsageError(f"{what}: not judged yet")

    @classmethod
    def options(cls, settings: Settings) -> Options:
        given = {**defaults(GRPOConfig), **settings}
        loss, high = given["loss_type"], given["epsilon_high"]
        iterations, mini_batches, accumulation = cut_of(settings)
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

    @classmethod
    def settings_under(cls, options: Options) -> dict[str, typing.Any]:
        """Those that these options stand for, but for `loss_type`."""
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
            "num_train_epochs": 1,
            "gradient_accumulation_steps": options["accumulation"],
            "steps_per_generation": options["mini_batches"] * options["accumulation"],
        }


def cut_of(settings: Settings) -> tuple[int, int, int]:
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
