"""KTO as people write it. Tests replace one of its lines by a wrong one."""

import torch


class Trainer:
    def __init__(self, puppet, beta=0.1, weights=(1.0, 1.0)):
        self.model, self.reference = puppet.model, puppet.reference
        self.tokenizer, self.optimizer = puppet.tokenizer, puppet.optimizer
        self.examples, self.epochs = puppet.examples, puppet.epochs
        self.mini_batches, self.accumulation = puppet.mini_batches, puppet.accumulation
        self.beta, self.weights = beta, weights

    def log_probs(self, model, prompts, completions):
        texts = [it + text + self.tokenizer.eos_token for it, text in zip(prompts, completions)]
        rows = [self.tokenizer(text)["input_ids"] for text in texts]
        starts = torch.tensor([[len(self.tokenizer(it)["input_ids"])] for it in prompts])
        width, pad = max(len(row) for row in rows), self.tokenizer.pad_token_id
        ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        trained = mask.bool() & (torch.arange(width) >= starts)
        logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        log_probs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
        return (log_probs * trained[:, 1:]).sum(1)

    def log_ratios(self, prompts, completions):
        with torch.no_grad():
            reference = self.log_probs(self.reference, prompts, completions)
        return self.log_probs(self.model, prompts, completions) - reference

    def loss(self, rows):
        prompts = [row["prompt"] for row in rows]
        completions = [row["completion"] for row in rows]
        labels = torch.tensor([row["label"] for row in rows])
        others = completions[-1:] + completions[:-1]
        ratios = self.log_ratios(prompts, completions)
        with torch.no_grad():
            kl = self.log_ratios(prompts, others).mean().clamp(min=0)
        desirable, undesirable = self.weights
        gains = 1 - (self.beta * (ratios - kl)).sigmoid()
        pains = 1 - (self.beta * (kl - ratios)).sigmoid()
        return torch.where(labels, desirable * gains, undesirable * pains).mean()

    def train(self):
        for _ in range(self.epochs):
            for rows in torch.randperm(len(self.examples)).chunk(self.mini_batches):
                for part in rows.chunk(self.accumulation):
                    loss = self.loss([self.examples[row] for row in part])
                    (loss / self.accumulation).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
