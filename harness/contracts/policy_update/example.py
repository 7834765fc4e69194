import torch


def policy_update(logits, rewards, steps, learning_rate, seed, beta):
    generator = torch.Generator(logits.device).manual_seed(seed)
    policy = logits.clone().requires_grad_()
    reference = logits.clone()
    for _ in range(steps):
        log_probs = policy.log_softmax(-1)
        probs = log_probs.exp()
        arms = torch.multinomial(probs, 16, replacement=True, generator=generator)
        advantages = rewards[arms] - rewards[arms].mean()
        loss = -(advantages * log_probs[arms]).mean()
        if beta > 0:
            kl = (probs * (log_probs - reference.log_softmax(-1))).sum()
            loss = loss + beta * kl
        (gradient,) = torch.autograd.grad(loss, policy)
        with torch.no_grad():
            policy -= learning_rate * gradient
    return policy.detach(), reference.detach()
