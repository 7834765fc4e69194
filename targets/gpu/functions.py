"""Functions of a contract each, in torch, that are right on any device and in any float format."""

import torch
from torch.nn.functional import logsigmoid


def wide(numbers):
    """Half formats are for storage: in bf16 a log-probability of -90 has steps of half a nat."""
    return numbers.float() if numbers.dtype in (torch.float16, torch.bfloat16) else numbers


def token_mean(numbers, mask):
    """The mean over all tokens of the batch; 0 of none."""
    return numbers.masked_fill(~mask, 0).sum() / mask.sum().clamp(min=1)


def completion_mask(tokens, eos, pad):
    is_end = torch.isin(tokens, torch.tensor(eos, device=tokens.device))
    to_the_end = is_end.cumsum(1) - is_end.long() == 0
    is_filled_up = (tokens == pad).flip(1).cumprod(1).flip(1).bool()
    return torch.where(is_end.any(1, keepdim=True), to_the_end, ~is_filled_up)


def sampling_filter(logits, temperature, min_p):
    probs = (wide(logits) / temperature).softmax(-1)
    kept = probs.masked_fill(probs < min_p * probs.amax(-1, keepdim=True), 0)
    return kept / kept.sum(-1, keepdim=True)


def length_penalty(lengths, max_length, buffer):
    overlong = (lengths.float() - (max_length - buffer)) / buffer
    return -overlong.clamp(0, 1)


def group_advantage(rewards, groups, epsilon):
    rewards = wide(rewards)
    advantages = torch.zeros_like(rewards)
    for group in groups.unique():
        own = rewards[groups == group]
        if len(own) > 1:
            advantages[groups == group] = (own - own.mean()) / (own.std() + epsilon)
    return advantages


def outcome_advantage(token_rewards, mask, groups, epsilon):
    outcomes = wide(token_rewards).masked_fill(~mask, 0).sum(1)
    return group_advantage(outcomes, groups, epsilon).unsqueeze(1) * mask


def token_rewards(scores, log_probs, ref_log_probs, mask, beta):
    penalty = -beta * (wide(log_probs) - wide(ref_log_probs))
    is_last = mask & (mask.flip(1).cumsum(1).flip(1) == 1)
    return (penalty + wide(scores).unsqueeze(1) * is_last).masked_fill(~mask, 0)


def gae(rewards, values, mask, gamma, lam):
    rewards, values = wide(rewards), wide(values)
    advantages = torch.zeros_like(values)
    later = following = torch.zeros_like(values[:, :1].sum(1))
    for column in reversed(range(mask.shape[1])):
        counts, value = mask[:, column], values[:, column]
        error = rewards[:, column] + gamma * following - value
        later = torch.where(counts, error + gamma * lam * later, later)
        following = torch.where(counts, value, following)
        advantages[:, column] = later.masked_fill(~counts, 0)
    return advantages, (advantages + values).masked_fill(~mask, 0)


def returns(rewards, mask):
    rewards = wide(rewards).masked_fill(~mask, 0)
    return rewards.flip(1).cumsum(1).flip(1).masked_fill(~mask, 0)


def whiten(values, mask, epsilon):
    values = wide(values)
    own = values[mask]
    if len(own) < 2:
        return torch.zeros_like(values)
    return ((values - own.mean()) / (own.var() + epsilon).sqrt()).masked_fill(~mask, 0)


def token_log_probs(logits, tokens, temperature):
    log_probs = (wide(logits) / temperature).log_softmax(-1)
    return log_probs.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def token_entropy(logits, temperature):
    log_probs = (wide(logits) / temperature).log_softmax(-1)
    return -(log_probs.exp() * log_probs).sum(-1)


def kl_estimate(log_probs, ref_log_probs):
    log_ratio = wide(log_probs) - wide(ref_log_probs)
    return torch.expm1(-log_ratio) + log_ratio


def importance_weights(log_probs, sampler_log_probs, mask, clamp_high):
    weights = (wide(log_probs) - wide(sampler_log_probs)).detach().exp().clamp(max=clamp_high)
    return weights.masked_fill(~mask, 0)


def policy_loss(log_probs, old_log_probs, advantages, mask, clip_low, clip_high):
    advantages = wide(advantages)
    log_ratio = (wide(log_probs) - wide(old_log_probs)).masked_fill(~mask, 0)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    return token_mean(-torch.minimum(ratio * advantages, clipped * advantages), mask)


def entropy_bonus(logits, mask, coefficient, temperature):
    return -coefficient * token_mean(token_entropy(logits, temperature), mask)


def value_loss(values, returns, mask, factor):
    return factor * token_mean((wide(values) - wide(returns)).square(), mask)


def preference_loss(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta):
    chosen, rejected = (
        wide(policy_chosen) - wide(ref_chosen),
        wide(policy_rejected) - wide(ref_rejected),
    )
    return -logsigmoid(beta * (chosen - rejected))


def simpo(policy_chosen, policy_rejected, chosen_lengths, rejected_lengths, beta, gamma):
    chosen, rejected = (
        wide(policy_chosen) / chosen_lengths,
        wide(policy_rejected) / rejected_lengths,
    )
    return -logsigmoid(beta * (chosen - rejected) - gamma)


def accumulated_loss(micro_batches):
    tokens = sum(batch["mask"].sum() for batch in micro_batches).clamp(min=1)
    losses = [wide(batch["token_losses"]).masked_fill(~batch["mask"], 0) for batch in micro_batches]
    return sum(batch.sum() for batch in losses) / tokens


def metric_reduction(shards):
    values = torch.cat([wide(shard["values"])[shard["mask"]] for shard in shards])
    return {"mean": values.sum() / max(len(values), 1), "sum": values.sum()}
