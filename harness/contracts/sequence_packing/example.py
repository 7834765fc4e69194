import torch
import torch.nn.functional as F


def pack(lengths, capacity):
    rows, room = [], 0
    for document, length in enumerate(lengths):
        for begin in range(0, length, capacity):
            end = min(begin + capacity, length)
            if end - begin > room:
                rows.append([])
                room = capacity
            rows[-1].append((document, begin, end))
            room -= end - begin
    return rows


def sequence_packing(tokens, lengths, mask, capacity, pad, ignore, shift):
    rows = pack(lengths.tolist(), capacity)
    shape = len(rows), capacity
    packed = tokens.new_full(shape, pad)
    labels = tokens.new_full(shape, ignore)
    segments, positions = tokens.new_zeros(shape), tokens.new_zeros(shape)
    for row, pieces in enumerate(rows):
        stop = 0
        for number, (document, begin, end) in enumerate(pieces, 1):
            start, stop = stop, stop + end - begin
            here = row, slice(start, stop)
            ids, trained = tokens[document, begin:end], mask[document, begin:end]
            packed[here] = ids
            labels[here] = ids.where(trained, ignore)
            positions[here] = torch.arange(end - begin)
            segments[here] = number
    if shift == "next":
        last = segments != F.pad(segments[:, 1:], (0, 1))
        labels = F.pad(labels[:, 1:], (0, 1), value=ignore).masked_fill(last, ignore)
    return {"packed": packed, "segments": segments, "positions": positions, "labels": labels}
