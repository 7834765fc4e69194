import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence


def batch_collation(
    prompts,
    prompt_lengths,
    completions,
    completion_lengths,
    layout,
    pad,
    ignore,
    max_length,
    truncate,
    multiple_of,
):
    kept = slice(-max_length, None) if truncate == "keep-end" else slice(max_length)

    def padded(rows, value):
        rows = [row[kept] for row in rows]
        batch = pad_sequence(rows, batch_first=True, padding_value=value, padding_side=layout)
        more = -batch.shape[1] % (multiple_of or 1)
        return F.pad(batch, (more, 0) if layout == "left" else (0, more), value=value)

    ids, masks = [], []
    for row, (begin, length) in enumerate(zip(prompt_lengths, completion_lengths)):
        tokens = torch.cat([prompts[row, :begin], completions[row, :length]])
        mask = torch.zeros_like(tokens)
        mask[begin:] = 1
        ids.append(tokens)
        masks.append(mask)
    input_ids = padded(ids, pad)
    attention_mask = padded([torch.ones_like(tokens) for tokens in ids], 0)
    completion_mask = padded(masks, 0)
    return {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "completion_mask": completion_mask,
        "labels": input_ids.where(completion_mask == 1, ignore),
        "position_ids": attention_mask.cumsum(1) - 1,
    }
