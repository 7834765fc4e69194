"""A GRPO trainer as people write it. Tests replace one of its lines by a wrong one."""

import torch


class Trainer:
    def __init__(self, puppet, temperature=1.0, beta=0.0, low=0.2, high=0.2):
        self.model, self.reference, self.optimizer = (
            puppet.model,
            puppet.reference,
            puppet.optimizer,
        )
        self.tokenizer, self.rewards = puppet.tokenizer, puppet.rewards
        self.eos, self.group = torch.tensor(puppet.eos), puppet.group
        self.iterations, self.mini_batches = puppet.iterations, puppet.mini_batches
        self.accumulation = puppet.accumulation
        self.temperature, self.beta, self.low, self.high = temperature, beta, low, high

    def log_probs(self, model, ids, mask, length):
        logits = model(input_ids=ids, attention_mask=mask).logits[:, -length - 1 : -1]
        logits = logits / self.temperature
        return logits.log_softmax(-1).gather(-1, ids[:, -length:, None]).squeeze(-1)

    def advantages(self, prompts, completions):
        rewards = [it(prompts, completions) for it in self.rewards]
        rewards = torch.tensor(rewards, dtype=self.model.dtype).sum(0).view(-1, self.group)
        centred = rewards - rewards.mean(1, keepdim=True)
        return (centred / (rewards.std(1, keepdim=True) + 1e-4)).view(-1)

    def generate(self, prompts):
        prompts = [prompt for prompt in prompts for _ in range(self.group)]
        inputs = self.tokenizer.pad({"input_ids": prompts}, return_tensors="pt")
        ids = self.model.generate(**inputs)
        completions = ids[:, inputs["input_ids"].shape[1] :]
        is_end = torch.isin(completions, self.eos)
        trained = is_end.cumsum(1) - is_end.long() == 0
        mask = torch.cat([inputs["attention_mask"], trained.long()], dim=1)
        batch = {"ids": ids, "mask": mask, "trained": trained}
        batch["advantages"] = self.advantages(prompts, completions)
        length = completions.shape[1]
        with torch.no_grad():
            batch["old"] = self.log_probs(self.model, ids, mask, length)
            if self.beta:
                batch["ref"] = self.log_probs(self.reference, ids, mask, length)
        order = torch.randperm(len(ids))
        return {name: values[order] for name, values in batch.items()}

    def losses(self, ids, mask, trained, advantages, old, ref=None):
        new = self.log_probs(self.model, ids, mask, trained.shape[1])
        ratio, advantages = (new - old).exp(), advantages[:, None]
        clipped = ratio.clamp(1 - self.low, 1 + self.high)
        losses = -torch.minimum(ratio * advantages, clipped * advantages)
        if self.beta:
            losses = losses + self.beta * ((ref - new).exp() - (ref - new) - 1)
        return (losses * trained).sum()

    def step(self, prompts):
        batch = self.generate(prompts)
        size = len(batch["ids"]) // self.mini_batches
        for update in range(self.iterations * self.mini_batches):
            first = update % self.mini_batches * size
            rows = torch.arange(first, first + size)
            count = batch["trained"][rows].sum()
            for part in rows.chunk(self.accumulation):
                loss = self.losses(**{name: values[part] for name, values in batch.items()})
                (loss / count).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
