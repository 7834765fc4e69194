import torch


def log_probs_of(table, tokens):
    # A prefix that several completions share has one row of the table: where it comes first.
    group = torch.arange(tokens.shape[1])
    z = torch.empty_like(table)
    for at in range(tokens.shape[2]):
        before = tokens[:, :, :at]
        same = (before[:, :, None] == before[:, None, :]).all(-1)
        first = torch.where(same, group, len(group)).amin(-1)
        z[:, :, at] = table[:, :, at].take_along_dim(first[..., None], 1)
    log_probs = z - z.logsumexp(-1, keepdim=True)
    return log_probs.gather(-1, tokens[..., None])[..., 0].flatten(0, 1)


def grpo_step(tokens, rewards, logits, ref_logits, eos, beta, mini_batches):
    prompts, group, width = tokens.shape
    ended = torch.isin(tokens, torch.tensor(eos)).int()
    mask = (ended.cumsum(-1) - ended == 0).flatten(0, 1)
    combined = rewards.sum(-1)
    centred = combined - combined.mean(1, keepdim=True)
    advantages = (centred / (combined.std(1, keepdim=True) + 1e-4)).flatten()[:, None]
    old = log_probs_of(logits[0], tokens)
    size = prompts * group // mini_batches
    gradients, batches = [], []
    for update, values in enumerate(logits):
        table = values.clone().requires_grad_()
        rows = torch.arange(size) + update % mini_batches * size
        log_probs = log_probs_of(table, tokens)
        ratio = (log_probs - old).exp()
        losses = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        if beta > 0:
            with torch.no_grad():
                reference = log_probs_of(ref_logits, tokens)
            losses = losses + beta * ((reference - log_probs).expm1() + log_probs - reference)
        means = (losses * mask).sum(-1) / mask.sum(-1)
        (gradient,) = torch.autograd.grad(means[rows].mean(), table)
        gradients.append(gradient)
        batches.append(rows[None])
    outputs = {"gradient": torch.stack(gradients), "micro_batches": torch.stack(batches)}
    outputs["scored"] = torch.ones_like(rewards)
    outputs["unknown"] = torch.zeros(len(logits))
    outputs["ref_training"] = torch.tensor(False)
    return outputs
