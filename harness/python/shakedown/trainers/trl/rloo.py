"""TRL's RLOO trainer as a component of `grpo-step`: an action is a whole completion."""

from __future__ import annotations

import typing

from torch import Tensor
from trl.trainer.rloo_config import RLOOConfig
from trl.trainer.rloo_trainer import RLOOTrainer

from .grpo import Sampling, cut_of
from .runs import Options, Settings, defaults, not_judged


class RLOO(Sampling):
    """An RLOO trainer under one configuration: see `Runs`."""

    trainer_class = RLOOTrainer
    base_config = RLOOConfig
    judged = {
        "beta", "epsilon", "epsilon_high", "gradient_accumulation_steps",
        "mask_truncated_completions", "num_generations", "num_iterations", "reward_weights",
        "steps_per_generation", "temperature",
    }  # fmt: skip
    refused = {
        "neftune_noise_alpha", "normalize_advantages", "reward_clip_range", "router_aux_loss_coef",
        "sync_ref_model", "use_liger_kernel",
    }  # fmt: skip

    harmless = (
        {"train_sampling_strategy": "group_by_length"},
        {"top_k": 5, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.1},
        {"logging_strategy": "steps", "logging_steps": 1, "log_completions": True},
        {"label_smoothing_factor": 0.1},  # of another loss
        {"max_completion_length": 16},
        {"ref_model_mixup_alpha": 0.1, "ref_model_sync_steps": 1},  # of `sync_ref_model`
    )
    telling = (
        [{"beta": 0.5}, {"beta": 0.04}],
        [{"epsilon": 0.1}, {"epsilon": 0.3}],
        [{"epsilon_high": 0.5}, {"epsilon_high": 0.3}],
        [{"gradient_accumulation_steps": 2}, {"gradient_accumulation_steps": 1}],
        [{"mask_truncated_completions": True}, {"mask_truncated_completions": False}],
        [{"num_iterations": 2}, {"num_iterations": 1}],
        [{"reward_weights": [2.0, 0.5]}, {"reward_weights": [1.0, 3.0]}],
        [{"steps_per_generation": 2}, {"steps_per_generation": 4}, {"steps_per_generation": 8}],
        [{"temperature": 0.7}, {"temperature": 1.3}],
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
        temperature: float,
        clip_low: float,
        clip_high: float,
        beta: float,
        generations: int,
        iterations: int,
        mini_batches: int,
        accumulation: int,
    ) -> dict[str, Tensor]:
        """Trains on a case of `grpo-step` under these options: the outputs of the contract."""
        return self.train(
            *(tokens, rewards, logits, ref_logits),
            eos=eos,
            pad=pad,
            unfinished=unfinished,
            weights=weights,
            temperature=temperature,
            clip_low=clip_low,
            clip_high=clip_high,
            beta=beta,
            generations=generations,
            iterations=iterations,
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

    @classmethod
    def must_be_judged(cls, settings: Settings) -> None:
        super().must_be_judged(settings)
        if settings.get("num_generations", 2) < 2:
            raise not_judged("num_generations 1, which leaves no other completion as a baseline,")

    @classmethod
    def options(cls, settings: Settings) -> Options:
        given = {**defaults(RLOOConfig), **settings}
        high = given["epsilon_high"]
        iterations, mini_batches, accumulation = cut_of(settings)
        return {
            "eos": [1, 2],
            "pad": 0,
            "unfinished": "drop" if given["mask_truncated_completions"] else "keep",
            "weights": given["reward_weights"],
            "unscored": "skip",
            "baseline": "leave-one-out",
            "scale": "none",
            "action": "completion",
            "kl_in": "reward",
            "kl_estimator": "k1",
            "temperature": given["temperature"],
            "clip_low": given["epsilon"],
            "clip_high": given["epsilon"] if high is None else high,
            "beta": given["beta"],
            "generations": 2,
            "iterations": iterations,
            "mini_batches": mini_batches,
            "accumulation": accumulation,
        }

    @classmethod
    def settings_under(cls, options: Options) -> dict[str, typing.Any]:
        weights = options["weights"]
        return {
            "mask_truncated_completions": options["unfinished"] == "drop",
            "reward_weights": None if weights is None else list(weights),
            "temperature": options["temperature"],
            "epsilon": options["clip_low"],
            "epsilon_high": options["clip_high"],
            "beta": options["beta"],
            "num_iterations": options["iterations"],
            "num_train_epochs": 1,
            "gradient_accumulation_steps": options["accumulation"],
            "steps_per_generation": options["mini_batches"] * options["accumulation"],
        }
