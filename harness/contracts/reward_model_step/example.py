import torch


def scores_of(table, tokens):
    # Where both completions begin alike, the scores of the chosen one hold.
    same = (tokens[:, 0] == tokens[:, 1]).int().cumprod(-1).bool()
    return torch.stack([table[:, 0], torch.where(same, table[:, 0], table[:, 1])], dim=1)


def reward_model_step(tokens, scores, margins, center, eos, mini_batches):
    end = (tokens == eos).int().argmax(-1, keepdim=True)
    size = len(tokens) // mini_batches
    gradients, batches = [], []
    for update, values in enumerate(scores):
        table = values.clone().requires_grad_()
        pairs = torch.arange(size) + update % mini_batches * size
        rewards = scores_of(table, tokens).gather(-1, end)[..., 0]
        chosen, rejected = rewards[pairs].unbind(-1)
        difference = chosen - rejected
        if margins is not None:
            difference = difference - margins[pairs]
        loss = -torch.nn.functional.logsigmoid(difference).mean()
        loss = loss + center * ((chosen + rejected) ** 2).mean()
        gradients.append(torch.autograd.grad(loss, table)[0])
        batches.append(torch.stack([2 * pairs, 2 * pairs + 1], 1).flatten()[None])
    outputs = {"gradient": torch.stack(gradients), "micro_batches": torch.stack(batches)}
    outputs["unknown"] = torch.zeros(len(scores))
    return outputs
