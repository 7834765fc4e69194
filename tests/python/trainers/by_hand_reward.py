"""Training of a reward model as people write it. Tests replace one of its lines by a wrong one."""

import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, puppet, center=0.0):
        self.scores, self.optimizer = puppet.scores, puppet.optimizer
        self.tokenizer, self.examples = puppet.tokenizer, puppet.examples
        self.epochs, self.center = puppet.epochs, center
        self.mini_batches, self.accumulation = puppet.mini_batches, puppet.accumulation

    def rewards(self, pairs, side):
        texts = [pair["prompt"] + pair[side] + self.tokenizer.eos_token for pair in pairs]
        rows = [self.tokenizer(text)["input_ids"] for text in texts]
        width, pad = max(len(row) for row in rows), self.tokenizer.pad_token_id
        ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        last = mask.sum(1) - 1
        return self.scores(ids, mask).gather(1, last[:, None]).squeeze(1)

    def loss(self, pairs):
        chosen, rejected = self.rewards(pairs, "chosen"), self.rewards(pairs, "rejected")
        difference = chosen - rejected
        if "margin" in pairs[0]:
            difference = difference - torch.tensor([pair["margin"] for pair in pairs])
        loss = -F.logsigmoid(difference).mean()
        return loss + self.center * ((chosen + rejected) ** 2).mean()

    def train(self):
        for _ in range(self.epochs):
            for rows in torch.randperm(len(self.examples)).chunk(self.mini_batches):
                for part in rows.chunk(self.accumulation):
                    loss = self.loss([self.examples[row] for row in part])
                    (loss / self.accumulation).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
