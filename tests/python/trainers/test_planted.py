"""Known bugs planted into TRL's trainer and into one by hand: the check finds them, by name."""

import pytest
from planting import BY_HAND, TRL, by_day, must_be_found, planted

import shakedown
from shakedown.trainers import trl

BY_DAY = ["kl-term-subtracted", "micro-batches-summed"]

GRPO = {"loss_type": "grpo"}
OFF_POLICY = {"loss_type": "grpo", "steps_per_generation": 2}
PARTS = {"loss_type": "grpo", "gradient_accumulation_steps": 2}
DIVERGENCE = {"loss_type": "grpo", "beta": 0.5}
PLAIN = {"loss_type": "grpo", "beta": 0.5, "use_bias_correction_kl": False}
MASK = (
    '        mask = completion_mask if "tool_mask" not in inputs else'
    ' completion_mask * inputs["tool_mask"]\n'
)
RENEWED = "            if self._step % generate_every == 0 or self._buffered_inputs is None:\n"
SHUFFLED = "                generation_batch = shuffle_sequence_dict(generation_batch)\n"
ENDS = "eos_and_pad = [*self.eos_token_ids, self._tokenizer.pad_token_id]\n            is_truncated"
SUM = "            # Apply weights to each reward function's output and sum\n            rewards = "
WEIGHED = SUM + "(rewards_per_func * self.reward_weights.to(device).unsqueeze(0))"
STD = "advantages = advantages / (std_rewards + 1e-4)"
CLAMPED = "torch.clamp(coef_1, 1 - self.epsilon_low, 1 + self.epsilon_high)"
KL = (
    "torch.exp(ref_per_token_logps - per_token_logps) - (ref_per_token_logps - per_token_logps) - 1"
)
WEIGHTING = "if self.args.use_bias_correction_kl:"
ADDED = "per_token_loss + self.beta * per_token_kl"
RESCALED = (
    "normalizer = normalizer * self.current_gradient_accumulation_steps"
    " / self.args.steps_per_generation"
)
BUFFERED = "self._buffered_inputs[self._step % self.args.steps_per_generation]"
SCALED = '        elif self.loss_type == "bnpo":\n            loss = (per_token_loss * mask).sum()'


def left(name):
    """What was shuffled, and one part of it that stays."""
    kept = f"                kept = generation_batch.get({name!r})\n"
    return kept + SHUFFLED + f"                generation_batch[{name!r}] = kept\n"


def masked(code):
    return MASK + f"        mask = {code}\n"


# Known bug, or what it is where none is known: the configuration, the line, the wrong one.
INTO_TRL = {
    "mask-one-position-early": (GRPO, MASK, masked("nn.functional.pad(mask[:, 1:], (0, 1))")),
    "first-token-left-out": (GRPO, MASK, masked("nn.functional.pad(mask[:, 1:], (1, 0))")),
    "eos-left-out": (
        GRPO, MASK, masked("mask * ~torch.isin(completion_ids, torch.tensor(self.eos_token_ids))"),
    ),
    "padding-trained": (GRPO, MASK, masked("torch.ones_like(mask)")),
    "only-one-eos-id": (
        {**GRPO, "mask_truncated_completions": True},
        ENDS, ENDS.replace("*self.eos_token_ids", "self.eos_token_ids[0]"),
    ),
    "unfinished-rows-dropped": (
        GRPO, "if self.mask_truncated_completions:", "if not self.mask_truncated_completions:",
    ),
    "unfinished-rows-kept": (
        {**GRPO, "mask_truncated_completions": True},
        "if self.mask_truncated_completions:", "if not self.mask_truncated_completions:",
    ),
    "weights-lost": (
        {**GRPO, "reward_weights": [2.0, 0.5]}, WEIGHED, SUM + "rewards_per_func",
    ),
    "first-function-only": (
        {**GRPO, "reward_weights": [1.0, 1.0]}, WEIGHED, WEIGHED + "[:, :1]",
    ),
    "rewards-of-the-next-prompt": (
        GRPO, SUM,
        "            rewards_per_func = rewards_per_func.roll(-num_generations, 0)\n" + SUM,
    ),
    "baseline repeated, not interleaved": (
        GRPO, "mean_grouped_rewards.repeat_interleave(num_generations, dim=0)",
        "mean_grouped_rewards.repeat(num_generations)",
    ),
    "baseline-missing": (
        GRPO, "advantages = rewards - mean_grouped_rewards", "advantages = rewards.clone()",
    ),
    "sign-flipped": (
        GRPO, "advantages = rewards - mean_grouped_rewards",
        "advantages = mean_grouped_rewards - rewards",
    ),
    "batch-mean-as-baseline": (
        GRPO, "torch.nanmean(rewards.view(-1, num_generations), dim=1)",
        "torch.nanmean(rewards).expand(len(rewards) // num_generations)",
    ),
    "batch-deviation-for-the-group-s": (
        GRPO, "self.scale_rewards = args.scale_rewards", 'self.scale_rewards = "batch"',
    ),
    "group-deviation-for-the-batch-s": (
        {**GRPO, "scale_rewards": "batch"},
        "self.scale_rewards = args.scale_rewards", 'self.scale_rewards = "group"',
    ),
    "not-divided": (
        GRPO, "self.scale_rewards = args.scale_rewards", 'self.scale_rewards = "none"',
    ),
    "biased-for-unbiased-deviation": (
        GRPO, "nanstd(rewards.view(-1, num_generations), dim=1)",
        "rewards.view(-1, num_generations).std(dim=1, correction=0)",
    ),
    "epsilon-of-another-size": (GRPO, STD, STD.replace("1e-4", "1e-1")),
    "negative-advantages-dropped": (
        GRPO, STD, "advantages = (advantages / (std_rewards + 1e-4)).clamp(min=0)",
    ),
    "temperature-ignored": (
        {**GRPO, "temperature": 0.7}, "self.temperature = args.temperature",
        "self.temperature = 1.0",
    ),
    "temperature-not-applied-to-the-reference": (
        {**PLAIN, "temperature": 0.7}, "self.ref_model, temperature=self.temperature",
        "self.ref_model, temperature=1.0",
    ),
    "old-log-probs-are-current": (
        OFF_POLICY, "per_token_logps.detach() if old_per_token_logps is None else",
        "per_token_logps.detach() if True else",
    ),
    "ratio-inverted": (
        OFF_POLICY, "log_ratio = per_token_logps - old_per_token_logps",
        "log_ratio = old_per_token_logps - per_token_logps",
    ),
    "clipping-ignored": (OFF_POLICY, CLAMPED, "coef_1"),
    "lower-bound-ignored": (
        OFF_POLICY, CLAMPED, "torch.clamp(coef_1, max=1 + self.epsilon_high)",
    ),
    "upper-bound-ignored": (
        OFF_POLICY, CLAMPED, "torch.clamp(coef_1, min=1 - self.epsilon_low)",
    ),
    "clip-bounds-swapped": (
        {**OFF_POLICY, "epsilon_high": 0.28}, CLAMPED,
        "torch.clamp(coef_1, 1 - self.epsilon_high, 1 + self.epsilon_low)",
    ),
    "one-range-for-both-bounds": (
        {**OFF_POLICY, "epsilon_high": 0.28}, CLAMPED,
        "torch.clamp(coef_1, 1 - self.epsilon_low, 1 + self.epsilon_low)",
    ),
    "minimum-for-maximum": (
        OFF_POLICY, "-torch.min(per_token_loss1, per_token_loss2)",
        "-torch.max(per_token_loss1, per_token_loss2)",
    ),
    "dual-clip-ignored": (
        {**OFF_POLICY, "delta": 1.5}, "if self.args.delta is not None:", "if False:",
    ),
    "sequence-ratio-for-token": (
        OFF_POLICY, "self.importance_sampling_level = args.importance_sampling_level",
        'self.importance_sampling_level = "sequence"',
    ),
    "token-ratio-for-sequence": (
        {**OFF_POLICY, "importance_sampling_level": "sequence"},
        "self.importance_sampling_level = args.importance_sampling_level",
        'self.importance_sampling_level = "token"',
    ),
    "norm-by-padded-width": (
        {"loss_type": "dr_grpo", "max_completion_length": 16},
        "(per_token_loss.size(0) * self.max_completion_length)", "per_token_loss.numel()",
    ),
    "kl-term-subtracted": (
        PLAIN, ADDED, "per_token_loss - self.beta * per_token_kl",
    ),
    "kl-coefficient-forced-to-zero": (
        PLAIN, ADDED, "per_token_loss",
    ),
    "beta-applied-twice": (
        PLAIN, ADDED,
        "per_token_loss + self.beta**2 * per_token_kl",
    ),
    "kl-direction-reversed": (
        PLAIN, KL,
        "torch.exp(per_token_logps - ref_per_token_logps)"
        " - (per_token_logps - ref_per_token_logps) - 1",
    ),
    "kl-estimator-mistaken": (PLAIN, KL, "per_token_logps - ref_per_token_logps"),
    # On the policy that sampled, k3 times its ratio has the gradient of k2.
    "kl-not-weighted": ({**DIVERGENCE, **OFF_POLICY}, WEIGHTING, "if False:"),
    "kl-weighted-undeclared": ({**PLAIN, **OFF_POLICY}, WEIGHTING, "if True:"),
    "k3 times the ratio subtracted": (
        DIVERGENCE, ADDED,
        "per_token_loss - self.beta * per_token_kl",
    ),
    "reference-is-the-policy": (
        {**PLAIN, **OFF_POLICY},
        "                        self.ref_model,\n                        prompt_completion_ids,",
        "                        self.model,\n                        prompt_completion_ids,",
    ),
    "reference-in-training-mode": (
        PLAIN, "self.accelerator.prepare_model(self.ref_model, evaluation_mode=True)",
        "self.ref_model.train()",
    ),
    "mean-of-micro-batch-means": (
        {"gradient_accumulation_steps": 2}, "self.loss_type = args.loss_type",
        'self.loss_type = "bnpo"',
    ),
    "micro-batches-summed": (
        {"loss_type": "bnpo", "gradient_accumulation_steps": 2}, SCALED, SCALED + " * 2",
    ),
    "divided-again-by-micro-batches": (
        PARTS, "loss_is_scaled_for_ga = True", "loss_is_scaled_for_ga = False",
    ),
    "the generation's tokens, not rescaled": ({"steps_per_generation": 2}, RESCALED, "pass"),
    "dropped tokens counted": (
        {"mask_truncated_completions": True},
        "self.accelerator.gather(loss_mask.sum()).sum()",
        "torch.tensor(sum(len(ids) for ids in completion_ids_list))",
    ),
    "same-slice-again": (OFF_POLICY, BUFFERED, "self._buffered_inputs[0]"),
    "generation-never-renewed": (
        GRPO, RENEWED, "            if self._step == 0:\n",
    ),
    "iterations ignored": (
        {**GRPO, "num_iterations": 2}, RENEWED,
        "            if self._step % self.args.steps_per_generation == 0:\n",
    ),
    "advantages-stay-behind": (GRPO, SHUFFLED, left("advantages")),
    "old-log-probs-stay-behind": (OFF_POLICY, SHUFFLED, left("old_per_token_logps")),
    "reference's log-probs stay behind a shuffle": (PLAIN, SHUFFLED, left("ref_per_token_logps")),
    "attention-mask-forgotten": (
        GRPO, "labels[:, :-logits_to_keep] = -100\n",
        'labels[:, :-logits_to_keep] = -100\n            model_inputs.pop("attention_mask")\n',
    ),
    "scored-twice": (
        GRPO, "        rewards_per_func = self._calculate_rewards(",
        "        self._calculate_rewards(inputs, prompts, completions, completion_ids_list)\n"
        "        rewards_per_func = self._calculate_rewards(",
    ),
}  # fmt: skip

INTO_ONE_BY_HAND = {
    "eos-left-out": ({}, "is_end.cumsum(1) - is_end.long() == 0", "is_end.cumsum(1) == 0"),
    "only-one-eos-id": ({}, "torch.isin(completions, self.eos)", "completions == self.eos[0]"),
    "biased-for-unbiased-deviation": ({}, "std(1, keepdim=True)", "std(1, 0, keepdim=True)"),
    "sign-flipped": (
        {}, "rewards - rewards.mean(1, keepdim=True)", "rewards.mean(1, keepdim=True) - rewards",
    ),
    "temperature-ignored": ({}, "logits = logits / self.temperature", "pass"),
    "temperature-not-applied-to-the-reference": (
        {"temperature": 0.7, "beta": 0.5}, "logits / self.temperature",
        "logits / (self.temperature if model is self.model else 1)",
    ),
    "old-log-probs-are-current": ({}, "(new - old).exp()", "(new - new.detach()).exp()"),
    "upper-bound-ignored": (
        {}, "ratio.clamp(1 - self.low, 1 + self.high)", "ratio.clamp(min=1 - self.low)",
    ),
    "minimum-for-maximum": ({}, "torch.minimum(", "torch.maximum("),
    "kl-term-subtracted": ({}, "losses + self.beta", "losses - self.beta"),
    "kl-direction-reversed": (
        {}, "(ref - new).exp() - (ref - new) - 1", "(new - ref).exp() - (new - ref) - 1",
    ),
    "reference-is-the-policy": ({}, "self.log_probs(self.reference,", "self.log_probs(self.model,"),
    "reference-in-training-mode": (
        {}, "            if self.beta:\n                batch",
        "            if self.beta:\n                self.reference.train()\n                batch",
    ),
    "mean-of-micro-batch-means": (
        {}, "(loss / count)", '(loss / batch["trained"][part].sum() / self.accumulation)',
    ),
    "micro-batches-summed": ({}, "(loss / count)", "(loss / count * self.accumulation)"),
    "divided-again-by-micro-batches": ({}, "(loss / count)", "(loss / count / self.accumulation)"),
    "same-slice-again": ({}, "first = update % self.mini_batches * size", "first = 0"),
    "advantages-stay-behind": (
        {}, "for name, values in batch.items()}\n\n",
        'for name, values in batch.items()} | {"advantages": batch["advantages"]}\n\n',
    ),
    "attention-mask-forgotten": ({}, "attention_mask=mask", "attention_mask=None"),
    "scored-twice": (
        {}, "        rewards = [it(",
        "        [it(prompts, completions) for it in self.rewards]\n        rewards = [it(",
    ),
    "gradients never cleared": ({}, "            self.optimizer.zero_grad()\n", ""),
}  # fmt: skip
DECLARED = {
    "aggregate": "token-mean", "over": "update", "eos": [1, 2], "generations": 2,
    "mini_batches": 2, "accumulation": 2,
}  # fmt: skip

# Found, and called something else, or nothing yet.
UNNAMED = {
    ("trl", "padding-trained"),  # full rows have no place behind their end
    ("trl", "rewards-of-the-next-prompt"),  # the next of its generation
    ("trl", "epsilon-of-another-size"),  # epsilon: 0.1
    ("trl", "old-log-probs-stay-behind"),  # those behind an end are 0
    ("trl", "reference-is-the-policy"),  # as it is when it samples
    ("trl", "same-slice-again"),
    ("trl", "attention-mask-forgotten"),
    ("by hand", "only-one-eos-id"),  # as padding-trained
    ("by hand", "same-slice-again"),
}


@pytest.mark.parametrize("name", INTO_TRL)
@pytest.mark.night
def test_bugs_in_trl_are_found(name):
    config, right, wrong = INTO_TRL[name]
    trainer = planted(TRL, right, wrong).GRPOTrainer
    must_be_found("trl", name, trl.contract(config), trl.GRPO(config, trainer), UNNAMED)


@pytest.mark.parametrize("name", by_day(INTO_ONE_BY_HAND, BY_DAY))
def test_bugs_in_a_trainer_by_hand_are_found(name):
    options, right, wrong = INTO_ONE_BY_HAND[name]
    module = planted(BY_HAND, right, wrong)

    def mine(puppet, temperature, beta, clip_low, clip_high):
        trainer = module.Trainer(puppet, temperature, beta, clip_low, clip_high)
        for prompts in puppet.batches:
            trainer.step(prompts)

    must_be_found("by hand", name, shakedown.GrpoStep(**{**DECLARED, **options}), mine, UNNAMED)
