"""The losses of an installed TRL, under the names of the contracts.

Each is the trainer's own method with a minimal `self`: a model in training on one process, whose
forward pass gives the log-probabilities of the case. Nothing is copied from the library.
"""

import os
from collections import defaultdict
from types import SimpleNamespace

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from library import statements, using
from trl.experimental.async_grpo.async_grpo_trainer import AsyncGRPOTrainer
from trl.experimental.cpo import CPOTrainer
from trl.experimental.online_dpo import OnlineDPOTrainer
from trl.experimental.orpo import ORPOTrainer
from trl.experimental.sdpo import SDPOTrainer
from trl.experimental.tpo import TPOTrainer
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.reward_trainer import RewardTrainer

# `aggregate` of the contract: `loss_type` of the trainers.
LOSS_TYPE = {
    "seq-mean-token-mean": "grpo",
    "seq-mean-token-sum-norm": "dr_grpo",
    "seq-mean-token-sum": "luspo",
    "token-mean": "dapo",
}


class Accelerator(SimpleNamespace):
    """One process: what is gathered is what there is. It remembers what `gather` was given."""

    def __init__(self):
        super().__init__(device="cpu", num_processes=1, gathered=[])

    def gather(self, tensor):
        self.gathered.append(tensor)
        return tensor

    def gather_for_metrics(self, tensor):
        return tensor

    def reduce(self, tensor, reduction):
        return tensor


def trainer(**settings):
    """The `self` of a trainer's method."""
    model = SimpleNamespace(training=True)
    metrics = defaultdict(lambda: defaultdict(list))
    shared = {"accelerator": Accelerator(), "aux_loss_enabled": False, "_metrics": metrics}
    return SimpleNamespace(model=model, **shared, **settings)


def grpo(
    log_probs,
    old_log_probs,
    advantages,
    mask,
    ref_log_probs,
    objective,
    ratio,
    clip_low,
    clip_high,
    beta,
    aggregate,
    norm_length,
    loss_type=None,
    items=None,
    steps=1,
):
    """`GRPOTrainer._compute_loss`. Ours: masks as integers, and the count that DAPO divides by."""
    loss_type = "cispo" if objective == "cispo" else loss_type or LOSS_TYPE[aggregate]
    counted = mask.long()
    arguments = {"delta": None, "use_bias_correction_kl": False, "steps_per_generation": steps}
    self = trainer(
        args=SimpleNamespace(**arguments),
        beta=beta,
        current_gradient_accumulation_steps=steps,
        epsilon_high=clip_high,
        epsilon_low=clip_low,
        importance_sampling_level=ratio,
        loss_type=loss_type,
        max_completion_length=norm_length,
        off_policy_mask_threshold=None,
        top_entropy_quantile=1.0,
        use_vllm=False,
        _entropy_bonus_enabled=False,
        _get_per_token_logps_and_entropies=lambda *_, **__: (log_probs, log_probs.detach(), None),
    )
    inputs = {
        "prompt_ids": counted[:, :0],
        "prompt_mask": counted[:, :0],
        "completion_ids": counted,
        "completion_mask": counted,
        "advantages": advantages,
        "old_per_token_logps": old_log_probs,
        "ref_per_token_logps": ref_log_probs,
        "num_items_in_batch": counted.sum() if items is None else items,
    }
    outputs = {"loss": GRPOTrainer._compute_loss(self, self.model, inputs)}
    metrics = self._metrics["train"]
    if objective == "ppo-clip" and ratio == "token":
        [outputs["clip_fraction"]] = metrics["clip_ratio/region_mean"]
    if beta and aggregate == "token-mean":  # the metric is a mean over tokens in every mode
        [outputs["kl"]] = metrics["kl"]
    return outputs


def bnpo(log_probs, old_log_probs, advantages, mask, ref_log_probs, **options):
    """The same with `loss_type="bnpo"`, which counts the tokens of the micro-batch itself."""
    names = "objective", "ratio", "clip_low", "clip_high", "beta", "aggregate", "norm_length"
    options = {name: options[name] for name in names}
    return grpo(
        log_probs, old_log_probs, advantages, mask, ref_log_probs, loss_type="bnpo", **options
    )


def accumulated(micro_batches, loss_type):
    """The sum of the losses of micro-batches, as the trainer's steps add up their gradients.

    Ours: a token's loss is given as minus its advantage, at ratio 1.
    """
    items = sum(batch["mask"].sum() for batch in micro_batches)
    losses = []
    for batch in micro_batches:
        advantages = -batch["token_losses"]
        zeros = torch.zeros_like(advantages)
        outputs = grpo(
            zeros,
            zeros,
            advantages,
            batch["mask"],
            None,
            objective="ppo-clip",
            ratio="token",
            clip_low=0.2,
            clip_high=0.2,
            beta=0.0,
            aggregate="token-mean",
            norm_length=None,
            loss_type=loss_type,
            items=items,
            steps=len(micro_batches),
        )
        losses.append(outputs["loss"])
    return sum(losses)


def dapo_accumulated(micro_batches):
    """`loss_type="dapo"`: divided by the tokens of all micro-batches."""
    return accumulated(micro_batches, "dapo")


def bnpo_accumulated(micro_batches):
    """`loss_type="bnpo"`: each micro-batch by its own tokens, as its documentation says."""
    return accumulated(micro_batches, "bnpo")


# It scores logits itself, so the scoring is replaced by the log-probabilities of the case.
SDPO = using(SDPOTrainer._compute_policy_loss, selective_log_softmax=lambda logits, _: logits)


def sdpo(
    log_probs,
    old_log_probs,
    advantages,
    mask,
    ratio,
    clip_low,
    clip_high,
    aggregate,
    norm_length,
):
    """`SDPOTrainer._compute_policy_loss` (experimental)."""
    self = trainer(
        epsilon_high=clip_high,
        epsilon_low=clip_low,
        importance_sampling_level=ratio,
        loss_type=LOSS_TYPE[aggregate],
        max_completion_length=norm_length,
    )
    inputs = {
        "completion_ids": mask.long(),
        "completion_mask": mask.long(),
        "old_per_token_logps": old_log_probs,
        "advantages": advantages,
    }
    return SDPO(self, inputs, log_probs)


def async_grpo(log_probs, old_log_probs, advantages, mask, clip_low, clip_high):
    """The whole `AsyncGRPOTrainer.compute_loss` (experimental), which packs tokens into one row.

    Ours: the packing, as its collator does it; `segment_id` is the row of a token.
    """
    row = torch.arange(len(mask)).unsqueeze(1).expand_as(mask)
    flat = {"old_log_probs": old_log_probs, "advantages": advantages, "segment_id": row}
    inputs = {name: values[mask].unsqueeze(0) for name, values in flat.items()}
    count = int(mask.sum())
    packed = log_probs[mask].unsqueeze(0)
    positions = torch.arange(count).unsqueeze(0)
    names = "token_index", "input_ids", "position_ids", "shift_labels", "tree_kv_index"
    inputs |= dict.fromkeys((*names, "tree_cu_seqlens_q", "tree_cu_seqlens_k"), positions)
    inputs |= {
        "attention_mask": torch.ones_like(positions),
        "tree_max_seqlens": torch.tensor([[count, count]]),
        "global_n_tokens": torch.tensor([count]),
        "global_n_forward_tokens": torch.tensor([count]),
        "mean_seq_len": torch.tensor([max(count, 1)]),
    }
    self = trainer(
        current_gradient_accumulation_steps=1,
        epsilon_high=clip_high,
        epsilon_low=clip_low,
        _step_forward_s=0.0,
        _step_forward_tokens=0.0,
        _step_samples=0.0,
        _step_seq_len_weighted=0.0,
        _step_trained_tokens=0.0,
    )

    def model(**_):
        return SimpleNamespace(log_probs=packed, entropy=packed.detach())

    loss = AsyncGRPOTrainer.compute_loss(self, model, inputs)
    metrics = self._metrics["train"]
    [clip_fraction], [approx_kl] = metrics["clip_ratio/region_mean"], metrics["kl"]
    return {"loss": loss, "clip_fraction": clip_fraction, "approx_kl": approx_kl}


def dpo(
    policy_chosen,
    policy_rejected,
    ref_chosen,
    ref_rejected,
    kind,
    beta,
    label_smoothing,
    lengths=None,
):
    """`DPOTrainer._compute_loss`. Ours: completions of one token, so that sums are what is given.

    The implicit rewards are the first two things that the trainer gathers for its log.
    """
    self = trainer(
        args=SimpleNamespace(),
        beta=beta,
        f_divergence_type="reverse_kl",
        label_smoothing=label_smoothing,
        ld_alpha=None,
        loss_types=[kind],
        loss_weights=[1.0],
        precompute_ref_logps=True,
        use_weighting=False,
        _total_train_tokens=0,
        _tp_size=1,
    )
    sums = torch.cat([policy_chosen, policy_rejected])
    lengths = torch.ones(len(sums), dtype=torch.long) if lengths is None else torch.cat(lengths)
    # Each token has the same share of its completion's sum; column 0 is the prompt.
    columns = torch.arange(1 + int(lengths.max()))
    completion_mask = ((columns > 0) & (columns <= lengths.unsqueeze(1))).long()
    log_probs = (sums / lengths).unsqueeze(1) * completion_mask[:, 1:]
    zeros = torch.zeros_like(log_probs.detach())
    outputs = SimpleNamespace(
        log_probs=log_probs, entropy=zeros, mean_logits=zeros, is_top1=zeros.bool()
    )
    inputs = {
        "input_ids": completion_mask,
        "attention_mask": torch.ones_like(completion_mask),
        "completion_mask": completion_mask,
        "ref_chosen_logps": ref_chosen,
        "ref_rejected_logps": ref_rejected,
    }
    loss = DPOTrainer._compute_loss(self, lambda **_: outputs, inputs, return_outputs=False)
    chosen_rewards, rejected_rewards, *_ = self.accelerator.gathered
    return {"loss": loss, "chosen_rewards": chosen_rewards, "rejected_rewards": rejected_rewards}


# `kind` of the contract: `loss_type` of the trainer, where it is another word.
LOSS_OF_PAIRS = {
    "aot-unpaired": "aot_unpaired",
    "apo-down": "apo_down",
    "apo-zero": "apo_zero",
    "bco-pair": "bco_pair",
    "exo": "exo_pair",
    "ipo-norm": "ipo",
    "nca": "nca_pair",
    "sigmoid-norm": "sigmoid_norm",
    "sppo-hard": "sppo_hard",
}


def pairs(
    policy_chosen,
    policy_rejected,
    ref_chosen,
    ref_rejected,
    chosen_lengths,
    rejected_lengths,
    kind,
    beta,
    label_smoothing,
):
    """The same for the other objectives."""
    log_probs = policy_chosen, policy_rejected, ref_chosen, ref_rejected
    lengths = chosen_lengths, rejected_lengths
    kind = LOSS_OF_PAIRS.get(kind, kind)
    return dpo(*log_probs, kind, beta, label_smoothing, lengths)


def simpo(
    policy_chosen,
    policy_rejected,
    chosen_lengths,
    rejected_lengths,
    beta,
    gamma,
    label_smoothing,
):
    """`CPOTrainer.cpo_loss` (experimental) on averages, which its forward pass gives it."""
    self = trainer(
        alpha=0.0,
        beta=beta,
        label_smoothing=label_smoothing,
        loss_type="simpo",
        simpo_gamma=gamma,
    )
    averages = policy_chosen / chosen_lengths, policy_rejected / rejected_lengths
    losses, chosen_rewards, rejected_rewards = CPOTrainer.cpo_loss(self, *averages)
    rewards = {"chosen_rewards": chosen_rewards, "rejected_rewards": rejected_rewards}
    return {"losses": losses, **rewards}


def orpo(policy_chosen, policy_rejected, chosen_lengths, rejected_lengths, beta):
    """`ORPOTrainer.odds_ratio_loss` (experimental) on averages; the trainer subtracts it."""
    averages = policy_chosen / chosen_lengths, policy_rejected / rejected_lengths
    self = trainer(beta=beta)
    gained, chosen_rewards, rejected_rewards, *_ = ORPOTrainer.odds_ratio_loss(self, *averages)
    rewards = {"chosen_rewards": chosen_rewards, "rejected_rewards": rejected_rewards}
    return {"losses": -gained, **rewards}


def cpo(policy_chosen, policy_rejected, kind, beta, label_smoothing, margin):
    """`CPOTrainer.cpo_loss` (experimental); with a margin it is SimPO."""
    self = trainer(
        alpha=0.0,
        beta=beta,
        label_smoothing=label_smoothing,
        loss_type="simpo" if margin else kind,
        simpo_gamma=margin,
    )
    losses, _, _ = CPOTrainer.cpo_loss(self, policy_chosen, policy_rejected)
    return {"losses": losses}  # its rewards leave the reference out, which is its own convention


TPO = statements(TPOTrainer._compute_loss, "rejected_logps", "loss", "per_sequence_loss")


def tpo(policy_chosen, policy_rejected, kind, beta, label_smoothing, margin):
    """The contrastive lines of `TPOTrainer._compute_loss` (experimental); with a margin TPO-L."""
    self = SimpleNamespace(
        beta=beta,
        label_smoothing=label_smoothing,
        loss_type="tpo-l" if margin else kind,
        tpo_l_gamma=margin,
    )
    losses = TPO(self=self, chosen_logps=policy_chosen, rejected_logps=policy_rejected)
    return {"losses": losses}


ONLINE_DPO = statements(OnlineDPOTrainer.training_step, "cr_ref_logprobs_sum", "loss", "losses")


def online_dpo(policy_chosen, policy_rejected, ref_chosen, ref_rejected, kind, beta):
    """The lines of `OnlineDPOTrainer.training_step` (experimental) from sums to losses."""
    losses = ONLINE_DPO(
        self=SimpleNamespace(args=SimpleNamespace(loss_type=kind), beta=beta),
        batch_size=len(policy_chosen),
        cr_logprobs_sum=torch.cat([policy_chosen, policy_rejected]),
        cr_ref_logprobs_sum=torch.cat([ref_chosen, ref_rejected]),
    )
    return {"losses": losses}


def reward_model(policy_chosen, policy_rejected, margin):
    """`RewardTrainer.compute_loss`, with scores for log-probabilities and beta 1."""
    scores = torch.cat([policy_chosen, policy_rejected]).unsqueeze(1)
    self = trainer(
        args=SimpleNamespace(center_rewards_coefficient=None), _total_train_tokens=0, _tp_size=1
    )
    inputs = {"attention_mask": torch.ones(len(scores), 1), "margin": margin}
    outputs = SimpleNamespace(logits=scores)
    return {"loss": RewardTrainer.compute_loss(self, lambda **_: outputs, inputs)}
