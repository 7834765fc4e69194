"""An actor of PPO: completions, advantages and old log-probabilities are handed to it."""

import torch


class Actor:
    def __init__(self, puppet, clip=0.2):
        self.model, self.optimizer, self.clip = puppet.model, puppet.optimizer, clip
        self.pad, self.iterations = puppet.pad, puppet.iterations
        self.mini_batches, self.accumulation = puppet.mini_batches, puppet.accumulation

    def padded(self, rows, fill):
        width = max(map(len, rows))
        return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])

    def log_probs(self, ids, mask):
        logits = self.model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        return logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]

    def update(self, rollouts):
        both = [it["prompt_ids"] + it["completion_ids"] for it in rollouts]
        ids = self.padded(both, self.pad)
        mask = self.padded([[1] * len(row) for row in both], 0)
        trained = self.padded(
            [[0] * len(it["prompt_ids"]) + [1] * len(it["completion_ids"]) for it in rollouts], 0
        )[:, 1:].bool()
        advantages = torch.tensor([sum(it["rewards"]) for it in rollouts], dtype=self.model.dtype)
        with torch.no_grad():
            old = self.log_probs(ids, mask)
        for _ in range(self.iterations):
            for rows in torch.randperm(len(ids)).chunk(self.mini_batches):
                for part in rows.chunk(self.accumulation):
                    log_probs = self.log_probs(ids[part], mask[part])
                    ratio, signs = (log_probs - old[part]).exp(), advantages[part, None]
                    clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
                    gain = torch.minimum(ratio * signs, clipped * signs)
                    count = trained[rows].sum()
                    (-gain.where(trained[part], 0).sum() / count).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
