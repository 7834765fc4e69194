"""Components of `completion-mask` that answer in every type that flags may have."""


def flags(tokens, eos, pad):
    """The mask under the default options, as nested lists of bools."""
    rows = tokens.tolist() if hasattr(tokens, "tolist") else tokens
    return [mask_of(row, eos, pad) for row in rows]


def mask_of(row, eos, pad):
    length = len(row)
    for place, token in enumerate(row):
        if token in eos:
            return [at <= place for at in range(length)]
    sampled = length
    while sampled > 0 and row[sampled - 1] == pad:
        sampled -= 1
    return [at < sampled for at in range(length)]


def like(tokens, rows, dtype):
    """The rows as an array of the library of `tokens`, of a dtype that both libraries have."""
    if isinstance(tokens, list):
        convert = {"bool": bool, "int64": int, "uint8": int, "float32": float}[dtype]
        return [[convert(flag) for flag in row] for row in rows]
    if hasattr(tokens, "new_tensor"):
        import torch

        return torch.tensor(rows, dtype=getattr(torch, dtype)).reshape(tokens.shape)
    import numpy

    return numpy.asarray(rows, dtype=dtype)


def booleans(tokens, eos, pad):
    return like(tokens, flags(tokens, eos, pad), "bool")


def integers(tokens, eos, pad):
    return like(tokens, flags(tokens, eos, pad), "int64")


def bytes_(tokens, eos, pad):
    return like(tokens, flags(tokens, eos, pad), "uint8")


def floats(tokens, eos, pad):
    return like(tokens, flags(tokens, eos, pad), "float32")


def counts(tokens, eos, pad):
    """Wrong: 2 for 1 in rows of more than two tokens."""
    rows = [[2 * flag if len(row) > 2 else flag for flag in row] for row in flags(tokens, eos, pad)]
    return like(tokens, rows, "int64")
