import torch


def deal(lengths, parts):
    bins = [[] for _ in range(parts)]
    for row in range(len(lengths)):
        min(bins, key=lambda rows: (len(rows), lengths[rows].sum())).append(row)
    return bins


def pack(lengths, capacity, min_parts, multiple_of):
    bins, room = [], 0
    for row, length in enumerate(lengths):
        if length > room:
            bins.append([])
            room = capacity
        bins[-1].append(row)
        room -= length
    wanted = max(len(bins), min_parts)
    wanted += -wanted % multiple_of
    while len(bins) < wanted:
        largest = max(range(len(bins)), key=lambda part: len(bins[part]))
        bins.insert(largest + 1, [bins[largest].pop()])
    return bins


def batch_partition(
    lengths, values, mode, parts, equal_size, capacity, min_parts, multiple_of, contiguous
):
    order = torch.arange(len(lengths))
    if not contiguous:
        order = lengths.argsort(descending=True)
    if mode == "count":
        if len(order) < parts or (equal_size and len(order) % parts):
            raise ValueError(f"{len(order)} rows for {parts} parts")
        bins = deal(lengths[order], parts)
    else:
        bins = pack(lengths[order], capacity, min_parts, multiple_of)
    part_of = torch.full_like(lengths, -1)
    for part, rows in enumerate(bins):
        part_of[order[rows]] = part
    moved = torch.cat([order[rows] for rows in bins])
    restored = torch.empty_like(values)
    restored[moved] = values[moved]
    return {"parts": part_of, "restored": restored}
