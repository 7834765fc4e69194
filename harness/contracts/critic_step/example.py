import torch


def returns_of(scores, kls, old, mask, gamma, lam, beta):
    last = (mask.int() * torch.arange(mask.shape[1])).argmax(-1)
    rewards = torch.zeros_like(old) if kls is None else -beta * kls
    rewards[torch.arange(len(last)), last] += scores
    advantages, ahead, following = [], 0.0, 0.0
    for t in reversed(range(mask.shape[1])):
        error = rewards[:, t] + gamma * following - old[:, t]
        ahead = torch.where(mask[:, t], error + gamma * lam * ahead, 0.0)
        following = torch.where(mask[:, t], old[:, t], 0.0)
        advantages.insert(0, ahead)
    return torch.stack(advantages, -1) + old


def critic_step(
    tokens, mask, values, scores, kls, returns, gamma, lam, beta, clip, factor, mini_batches
):
    old = values[0]
    if returns is None:
        returns = returns_of(scores, kls, old, mask, gamma, lam, beta)
    size = len(tokens) // mini_batches
    gradients, batches = [], []
    for update, table in enumerate(values):
        table = table.clone().requires_grad_()
        part = torch.arange(size) + update % mini_batches * size
        errors = (table - returns) ** 2
        if clip is not None:
            held = torch.clamp(table, old - clip, old + clip)
            errors = torch.maximum(errors, (held - returns) ** 2)
        loss = factor * errors[part][mask[part]].mean()
        gradients.append(torch.autograd.grad(loss, table)[0])
        batches.append(part[None])
    outputs = {"gradient": torch.stack(gradients), "micro_batches": torch.stack(batches)}
    outputs["unknown"] = torch.zeros(len(values))
    return outputs
