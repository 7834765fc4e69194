"""Trains a tiny policy to add: `python train.py` prints the mean reward as it rises, and
`python train.py run.jsonl` also writes what each step logs.

The policy has learned the form of an answer before, as after supervised fine-tuning. GRPO teaches
it which answer is right.
"""

import json
import sys
from dataclasses import dataclass

import torch

import grpo
import rewards

TOKENS = ["<pad>", "<eos>", "<answer>", "</answer>", *"0123456789"]
PAD, EOS, OPEN, CLOSE, ZERO = range(5)
LENGTH = 5  # tokens of a completion
PROMPTS = [f"{a}+{b}=" for a in range(4) for b in range(4)]
ANSWERS = [str(a + b) for a in range(4) for b in range(4)]


@dataclass
class Settings:
    """How to train."""

    group_size: int = 8
    steps: int = 20
    updates: int = 2  # with each batch
    temperature: float = 0.9
    epsilon: float = 1e-4
    clip_low: float = 0.2
    clip_high: float = 0.28
    beta: float = 0.01
    learning_rate: float = 0.1
    max_grad_norm: float = 10.0


class Policy(torch.nn.Module):
    """Logits of the next token: a table for each prompt, added to one for the token before."""

    def __init__(self):
        super().__init__()
        self.of_prompt = torch.nn.Parameter(torch.zeros(len(PROMPTS), len(TOKENS), len(TOKENS)))
        self.of_last = torch.nn.Parameter(torch.zeros(len(TOKENS), len(TOKENS)))

    def next(self, prompts, last):
        return self.of_last[last] + self.of_prompt[prompts, last]

    def forward(self, prompts, tokens):
        """The logits of all tokens of completions, `[N, T, V]`."""
        start = torch.full_like(tokens[:, :1], PAD)
        last = torch.cat([start, tokens[:, :-1]], dim=1)
        return self.next(prompts.unsqueeze(1), last)


def with_the_form():
    """A policy that answers every prompt in the right form, with any digit."""
    policy = Policy()
    with torch.no_grad():
        policy.of_last[PAD, OPEN] = 5.0
        policy.of_last[OPEN, ZERO:] = 5.0
        policy.of_last[ZERO:, CLOSE] = 5.0
        policy.of_last[CLOSE, EOS] = 5.0
    return policy


@torch.no_grad()
def sample(policy, prompts, temperature):
    """Completions, `[N, T]`: pads behind the end."""
    last = torch.full_like(prompts, PAD)
    done = torch.zeros_like(prompts, dtype=torch.bool)
    columns = []
    for _ in range(LENGTH):
        logits = policy.next(prompts, last) / temperature
        last = torch.multinomial(logits.softmax(dim=-1), 1).squeeze(1)
        last = last.masked_fill(done, PAD)
        done = done | (last == EOS)
        columns.append(last)
    return torch.stack(columns, dim=1)


def texts_of(tokens):
    """What a reward function sees of completions: no pads, no end."""
    return ["".join(TOKENS[i] for i in row if i not in (PAD, EOS)) for row in tokens.tolist()]


def train(settings, seed=0):
    """What each step logs, under TRL's names."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # the tensors are small
    policy, reference = with_the_form(), with_the_form()
    optimizer = torch.optim.Adam(policy.parameters(), lr=settings.learning_rate)
    prompts = torch.arange(len(PROMPTS)).repeat_interleave(settings.group_size)
    history = []
    groups = len(PROMPTS), settings.group_size
    for step in range(1, settings.steps + 1):
        tokens = sample(policy, prompts, settings.temperature)
        asked = [PROMPTS[i] for i in prompts]
        gold = [ANSWERS[i] for i in prompts]
        scores = torch.tensor(rewards.correctness(asked, texts_of(tokens), gold))
        advantages = grpo.group_advantages(scores, prompts, settings.epsilon)
        mask = grpo.completion_mask(tokens, [EOS])

        def log_probs(model):
            return grpo.token_log_probs(model(prompts, tokens), tokens, settings.temperature)

        with torch.no_grad():
            old, ref = log_probs(policy), log_probs(reference)
            spread = scores.view(groups).std(dim=1)
            kl = (grpo.kl_estimate(old, ref) * mask).sum() / mask.sum()
        for _ in range(settings.updates):
            clips = settings.clip_low, settings.clip_high
            loss = grpo.policy_loss(
                log_probs(policy), old, advantages, mask, ref, *clips, settings.beta
            )
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(policy.parameters(), settings.max_grad_norm)
            optimizer.step()
        history.append(
            {
                "step": step,
                "loss": loss.item(),
                "grad_norm": norm.item(),
                "learning_rate": settings.learning_rate,
                "reward": scores.mean().item(),
                "frac_reward_zero_std": (spread == 0).float().mean().item(),
                "kl": kl.item(),
                "completions/mean_length": mask.sum(dim=1).float().mean().item(),
                "completions/clipped_ratio": (~(tokens == EOS).any(dim=1)).float().mean().item(),
            }
        )
    return history


if __name__ == "__main__":
    history = train(Settings())
    for row in history:
        print(f"step {row['step']:3}  mean reward {row['reward']:.3f}")
    for path in sys.argv[1:]:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in history)
