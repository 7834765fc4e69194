import torch


def sums(table, tokens, mask):
    log_probs = table.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
    return (log_probs * mask).sum(-1)


def kto_step(tokens, labels, logits, ref_logits, kl_logits, ref_kl_logits, eos, mini_batches):
    ended = (tokens == eos).int()
    mask = ended.cumsum(-1) - ended == 0
    size = len(tokens) // mini_batches
    gradients, batches, kl_gradients = [], [], []
    for update, (values, kl_values) in enumerate(zip(logits, kl_logits)):
        table, kl_table = values.clone().requires_grad_(), kl_values.clone().requires_grad_()
        rows = torch.arange(size) + update % mini_batches * size
        others = rows.roll(1)
        # Where the prompt's own completion begins alike, its logits hold.
        ours, theirs = tokens[rows], tokens[others]
        is_own = [(ours[:, :at] == theirs[:, :at]).all(-1) for at in range(tokens.shape[1])]
        is_own = torch.stack(is_own, 1)[..., None]
        policy = sums(torch.where(is_own, table[rows], kl_table[rows]), theirs, mask[others])
        held = torch.where(is_own, ref_logits[rows], ref_kl_logits[rows])
        reference = sums(held, theirs, mask[others])
        kl = (policy - reference).mean().clamp(min=0).detach()
        ratios = (sums(table, tokens, mask) - sums(ref_logits, tokens, mask))[rows]
        sign = torch.where(labels[rows], 1.0, -1.0)
        losses = 1 - torch.sigmoid(0.1 * sign * (ratios - kl))
        losses.mean().backward()
        gradients.append(table.grad)
        kl_gradients.append(0.0 if kl_table.grad is None else kl_table.grad.abs().max())
        batches.append(rows[None])
    outputs = {"gradient": torch.stack(gradients), "micro_batches": torch.stack(batches)}
    outputs["kl_gradient"] = torch.tensor(kl_gradients)
    outputs["unknown"] = torch.zeros(len(logits))
    outputs["ref_training"] = torch.tensor(False)
    return outputs
