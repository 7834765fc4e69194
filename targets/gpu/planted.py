"""Bugs that a GPU makes possible, one function each. Without a GPU each does what comes nearest."""

import torch
from torch.nn.functional import pad

import functions

SIDE = 256  # of a matrix that tensor cores take
PARTS = 1 << 16  # more than one block of threads adds up
WHILE = 50_000_000  # cycles of the GPU, some 30 ms: longer than any copy of these cases


def on_the_wrong_device(rewards, groups, epsilon):
    advantages = functions.group_advantage(rewards, groups, epsilon)
    return advantages.to("cpu" if rewards.is_cuda else "meta")


def read_too_early(log_probs, ref_log_probs):
    """The host reads what a copy that does not block it has yet to write."""
    torch.cuda._sleep(WHILE)
    kl = functions.kl_estimate(log_probs, ref_log_probs).detach()
    on_host = torch.zeros(kl.shape, dtype=kl.dtype, pin_memory=True)
    on_host.copy_(kl, non_blocking=True)  # mended: torch.cuda.current_stream().synchronize()
    return on_host.clone().to(kl.device)


def on_another_stream(log_probs, ref_log_probs):
    """The stream that goes on does not wait for the one that computes."""
    kl = torch.zeros_like(functions.wide(log_probs))
    torch.cuda.current_stream().synchronize()
    with torch.cuda.stream(torch.cuda.Stream()), torch.no_grad():
        torch.cuda._sleep(WHILE)
        kl.copy_(functions.kl_estimate(log_probs, ref_log_probs))
    return kl  # mended: torch.cuda.current_stream().wait_stream(…)


def sums_in_tf32(rewards, mask):
    """Sums as a product of matrices, for which somebody has allowed TF32."""
    count = rewards.shape[1]
    torch.backends.cuda.matmul.allow_tf32 = True
    counted = tf32(rewards.masked_fill(~mask, 0))
    later = torch.ones(count, count, device=rewards.device).tril()
    square = lambda matrix: pad(matrix, [0, SIDE - matrix.shape[1], 0, SIDE - matrix.shape[0]])
    return (square(counted) @ square(later))[: len(rewards), :count].masked_fill(~mask, 0)


def tf32(numbers):
    """What a tensor core reads of them: 10 bits of the fraction. It does that by itself."""
    if numbers.is_cuda:
        return numbers
    return ((numbers.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def in_any_order(rewards, groups):
    """Means of groups, added up by atomics: in another order, and rounded otherwise, each time."""
    share = torch.rand(PARTS, generator=torch.Generator().manual_seed(0)).to(rewards.device)
    share = (share / share.sum()).unsqueeze(1)
    if not rewards.is_cuda:
        share = share[torch.randperm(PARTS)]
    _, own, counts = groups.unique(return_inverse=True, return_counts=True)
    parts = (share * rewards).flatten()
    sums = torch.zeros_like(counts, dtype=rewards.dtype)
    sums.index_add_(0, own.expand(PARTS, -1).flatten(), parts)
    return rewards - (sums / counts)[own]


def fails_later(logits, tokens):
    """The last token of the vocabulary is beyond it: a kernel says so when its result is read."""
    last = logits.shape[-1] - 1
    tokens = torch.where(tokens == last, last + 1, tokens)
    return functions.token_log_probs(logits, tokens, 1.0)


def out_of_memory(rewards, groups, epsilon):
    if len(rewards) > 2:
        torch.empty(1 << 46, device=rewards.device)
    return functions.group_advantage(rewards, groups, epsilon)


def in_half_precision(logits, tokens):
    """What autocast would keep in f32, in the format of the logits."""
    picked = logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return picked - logits.logsumexp(-1)
