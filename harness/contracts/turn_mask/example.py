import torch

SYSTEM, USER, ASSISTANT, TOOL = range(4)


def turn_mask(turns, bos, start, end, role_ids, train_end, max_length, ignore):
    tokens, mask = list(bos), [False] * len(bos)
    for turn in turns:
        role, content = int(turn["role"]), turn["tokens"].tolist()
        header = [*start, role_ids[role]]
        tokens += header + content + end
        trained = role == ASSISTANT
        mask += [False] * len(header) + [trained] * len(content)
        mask += [trained and train_end] * len(end)
    tokens = torch.tensor(tokens)[:max_length]
    mask = torch.tensor(mask)[:max_length]
    labels = tokens.where(mask, ignore)
    return {"tokens": tokens, "mask": mask, "labels": labels}
