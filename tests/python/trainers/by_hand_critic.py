"""Training of PPO's critic as people write it. Tests replace one of its lines by a wrong one."""

import torch
from torch.nn.utils.rnn import pad_sequence


def padded(rows, dtype=torch.long, fill=0, side="right"):
    return pad_sequence([torch.tensor(row, dtype=dtype) for row in rows], True, fill, side)


class Trainer:
    def __init__(self, puppet, gamma=1.0, lam=0.95, beta=0.0, clip=None):
        self.puppet, self.model, self.optimizer = puppet, puppet.model, puppet.optimizer
        self.gamma, self.lam, self.beta, self.clip = gamma, lam, beta, clip

    def values(self, ids, seen, width):
        return self.model(input_ids=ids, attention_mask=seen).logits[:, -width - 1 : -1, 0]

    def returns(self, rows, values, mask):
        kls = padded([it.get("kls", [0.0]) for it in rows], values.dtype)
        rewards = -self.beta * kls.expand_as(values)
        last = mask.int().cumsum(1).argmax(1, keepdim=True)
        scores = values.new_tensor([[it["score"]] for it in rows])
        rewards = rewards.scatter_add(1, last, scores)
        advantages, ahead, following = [], 0.0, 0.0
        for t in reversed(range(mask.shape[1])):
            error = rewards[:, t] + self.gamma * following - values[:, t]
            ahead = torch.where(mask[:, t], error + self.gamma * self.lam * ahead, ahead)
            following = torch.where(mask[:, t], values[:, t], following)
            advantages.insert(0, ahead)
        return torch.stack(advantages, 1) + values

    def train(self, rows):
        parts = ("prompt_ids", "left"), ("completion_ids", "right")
        ids = torch.cat(
            [padded([it[k] for it in rows], fill=-1, side=side) for k, side in parts], 1
        )
        seen, ids = (ids >= 0).int(), ids.where(ids >= 0, self.puppet.pad)
        mask = padded([it["mask"] for it in rows]).bool()
        with torch.no_grad():
            old = self.values(ids, seen, mask.shape[1])
        given = [it["returns"] for it in rows if "returns" in it]
        returns = padded(given, old.dtype) if given else self.returns(rows, old, mask)
        for _ in range(self.puppet.epochs):
            for batch in torch.randperm(len(ids)).chunk(self.puppet.mini_batches):
                for part in batch.chunk(self.puppet.accumulation):
                    values = self.values(ids[part], seen[part], mask.shape[1])
                    losses = (values - returns[part]) ** 2
                    if self.clip is not None:
                        held = old[part] + (values - old[part]).clamp(-self.clip, self.clip)
                        losses = torch.maximum(losses, (held - returns[part]) ** 2)
                    (0.5 * losses[mask[part]].sum() / mask[batch].sum()).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
