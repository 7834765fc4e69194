import torch


def log_probs_of(table, tokens):
    # A prefix that several sequences share has one row of the table: where it comes first.
    z = torch.empty_like(table)
    for at in range(tokens.shape[1]):
        before = tokens[:, :at]
        same = (before[:, None] == before[None, :]).all(-1)
        z[:, at] = table[same.int().argmax(-1), at]
    log_probs = z - z.logsumexp(-1, keepdim=True)
    return log_probs.gather(-1, tokens[..., None])[..., 0]


def sft_step(tokens, mask, logits, mini_batches):
    size = len(tokens) // mini_batches
    gradients, batches = [], []
    for update, values in enumerate(logits):
        table = values.clone().requires_grad_()
        rows = torch.arange(size) + update % mini_batches * size
        log_probs = log_probs_of(table, tokens)
        loss = -log_probs[rows][mask[rows]].mean()
        gradients.append(torch.autograd.grad(loss, table)[0])
        batches.append(rows[None])
    outputs = {"gradient": torch.stack(gradients), "micro_batches": torch.stack(batches)}
    outputs["unknown"] = torch.zeros(len(logits))
    return outputs
