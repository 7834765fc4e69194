"""Supervised fine-tuning as people write it. Tests replace one of its lines by a wrong one."""

import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, puppet):
        self.model, self.optimizer = puppet.model, puppet.optimizer
        self.tokenizer, self.examples = puppet.tokenizer, puppet.examples
        self.epochs = puppet.epochs
        self.mini_batches, self.accumulation = puppet.mini_batches, puppet.accumulation

    def encode(self, example):
        prompt = self.tokenizer(example["prompt"])["input_ids"]
        text = example["prompt"] + example["completion"] + self.tokenizer.eos_token
        ids = self.tokenizer(text)["input_ids"]
        return ids, [-100] * len(prompt) + ids[len(prompt) :]

    def collate(self, examples):
        rows = [self.encode(example) for example in examples]
        width = max(len(ids) for ids, _ in rows)
        pad = self.tokenizer.pad_token_id
        ids = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in rows])
        mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows])
        labels = torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in rows])
        return {"ids": ids, "mask": mask, "labels": labels}

    def losses(self, ids, mask, labels):
        logits = self.model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        targets = labels[:, 1:]
        losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        return losses.sum()

    def step(self, examples):
        batch = self.collate(examples)
        count = (batch["labels"][:, 1:] != -100).sum()
        for part in torch.arange(len(examples)).chunk(self.accumulation):
            loss = self.losses(**{name: values[part] for name, values in batch.items()})
            (loss / count).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def train(self):
        for _ in range(self.epochs):
            order = torch.randperm(len(self.examples))
            for rows in order.chunk(self.mini_batches):
                self.step([self.examples[row] for row in rows])
