import torch


def log_probs_of(table, tokens):
    # A prefix that both completions share has one row of the table: that of the chosen one.
    z = table.clone()
    for at in range(tokens.shape[2]):
        same = (tokens[:, 0, :at] == tokens[:, 1, :at]).all(-1)
        z[:, 1, at] = torch.where(same[:, None], table[:, 0, at], table[:, 1, at])
    log_probs = z - z.logsumexp(-1, keepdim=True)
    return log_probs.gather(-1, tokens[..., None])[..., 0]


def preference_step(tokens, logits, ref_logits, eos, mini_batches):
    ended = (tokens == eos).int()
    mask = ended.cumsum(-1) - ended == 0
    reference = (log_probs_of(ref_logits, tokens) * mask).sum(-1)
    size = len(tokens) // mini_batches
    gradients, batches = [], []
    for update, values in enumerate(logits):
        table = values.clone().requires_grad_()
        pairs = torch.arange(size) + update % mini_batches * size
        ratios = ((log_probs_of(table, tokens) * mask).sum(-1) - reference)[pairs]
        losses = -torch.nn.functional.logsigmoid(0.1 * (ratios[:, 0] - ratios[:, 1]))
        gradients.append(torch.autograd.grad(losses.mean(), table)[0])
        batches.append(torch.stack([2 * pairs, 2 * pairs + 1], 1).flatten()[None])
    outputs = {"gradient": torch.stack(gradients), "micro_batches": torch.stack(batches)}
    outputs["unknown"] = torch.zeros(len(logits))
    outputs["ref_training"] = torch.tensor(False)
    return outputs
