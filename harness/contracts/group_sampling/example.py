import torch


def group_sampling(prompts, seed, group_size, prompts_per_batch, repeats, shuffle, drop_last):
    size = prompts_per_batch or len(prompts)
    order = torch.arange(len(prompts))
    if shuffle:
        generator = torch.Generator().manual_seed(int(seed))
        order = torch.randperm(len(prompts), generator=generator)
    if drop_last:
        order = order[: len(order) // size * size]
    rows = []
    for batch in order.split(size):
        copies = batch.repeat_interleave(group_size)
        rows.append(copies.repeat(repeats))
    return prompts[torch.cat(rows)]
