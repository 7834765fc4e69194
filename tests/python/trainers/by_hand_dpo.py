"""DPO as people write it. Tests replace one of its lines by a wrong one."""

import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, puppet, beta=0.1):
        self.model, self.reference = puppet.model, puppet.reference
        self.tokenizer, self.optimizer = puppet.tokenizer, puppet.optimizer
        self.examples, self.epochs, self.beta = puppet.examples, puppet.epochs, beta
        self.mini_batches, self.accumulation = puppet.mini_batches, puppet.accumulation

    def log_probs(self, model, pairs, side):
        prompts = [self.tokenizer(pair["prompt"])["input_ids"] for pair in pairs]
        texts = [pair["prompt"] + pair[side] + self.tokenizer.eos_token for pair in pairs]
        rows = [self.tokenizer(text)["input_ids"] for text in texts]
        width, pad = max(len(row) for row in rows), self.tokenizer.pad_token_id
        ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        trained = mask.bool() & (torch.arange(width) >= torch.tensor([[len(it)] for it in prompts]))
        logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        log_probs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
        return (log_probs * trained[:, 1:]).sum(1)

    def loss(self, pairs):
        chosen = self.log_probs(self.model, pairs, "chosen")
        rejected = self.log_probs(self.model, pairs, "rejected")
        with torch.no_grad():
            ref_chosen = self.log_probs(self.reference, pairs, "chosen")
            ref_rejected = self.log_probs(self.reference, pairs, "rejected")
        margins = (chosen - ref_chosen) - (rejected - ref_rejected)
        return -F.logsigmoid(self.beta * margins).mean()

    def train(self):
        for _ in range(self.epochs):
            for rows in torch.randperm(len(self.examples)).chunk(self.mini_batches):
                for part in rows.chunk(self.accumulation):
                    loss = self.loss([self.examples[row] for row in part])
                    (loss / self.accumulation).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
