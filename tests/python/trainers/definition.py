"""What training on rows, pairs and labels is, in plain torch and f64; and cases."""

import torch
import torch.nn.functional as F

EOS, PAD = 1, 0


def ended(*shape, size):
    """Rows of other lengths that end with `EOS`; some are equal, or begin alike."""
    tokens = torch.randint(2, size, shape)
    lengths = torch.randint(1, shape[-1] + 1, shape[:-1])
    lengths.flatten()[-1] = shape[-1]
    at = torch.arange(shape[-1])
    tokens[..., 0] = 2
    tokens[at == lengths[..., None] - 1] = EOS
    tokens[at >= lengths[..., None]] = PAD
    flat = tokens.flatten(0, -2)
    flat[len(flat) // 2] = flat[0]
    return tokens


def sft_case(seed, number=8, width=5, size=7, updates=4, trained="completion"):
    """tokens, mask, logits"""
    torch.manual_seed(seed)
    tokens = ended(number, width, size=size)
    at, lengths = torch.arange(width), 1 + (tokens == EOS).long().argmax(-1, keepdim=True)
    first = torch.randint(1000, (number, 1)) % lengths
    alike = (tokens[:, None] == tokens).all(-1).long().argmax(-1)
    first = first[alike]  # equal rows have equal masks
    mask = {
        "completion": at >= first,
        "text": torch.ones(number, width, dtype=torch.bool),
        "turns": (at - first) % 2 == 0,
    }[trained] & (at < lengths)
    return tokens, mask, 2 * torch.randn(updates, number, width, size)


def pairs_case(seed, number=8, width=5, size=7, updates=4):
    """tokens, logits, ref_logits"""
    torch.manual_seed(seed)
    tokens = ended(number, 2, width, size=size)
    shape = number, 2, width, size
    return tokens, 2 * torch.randn(updates, *shape), 2 * torch.randn(shape)


def scores_case(seed, number=8, width=5, size=7, updates=4, margins=False):
    """tokens, scores, margins"""
    torch.manual_seed(seed)
    tokens = ended(number, 2, width, size=size)
    scores = 2 * torch.randn(updates, number, 2, width)
    return tokens, scores, torch.rand(number) if margins else None


def completions_case(seed, number=8, width=5, size=7, updates=4, with_kl=True):
    """tokens, labels, logits, ref_logits, kl_logits, ref_kl_logits"""
    torch.manual_seed(seed)
    tokens = ended(number, width, size=size)
    labels = torch.rand(number) < 0.5
    shape = number, width, size
    tables = [2 * torch.randn(updates, *shape), 2 * torch.randn(shape)]
    others = [2 * torch.randn(updates, *shape), 2 * torch.randn(shape)]
    return tokens, labels, *tables, *(others if with_kl else [None, None])


def critic_case(seed, number=8, width=5, size=7, updates=4, given=False):
    """tokens, mask, values, scores, kls, returns"""
    torch.manual_seed(seed)
    tokens = ended(number, width, size=size)
    tokens[0] = 2  # one that does not come to its end
    mask = torch.arange(width) <= last_of(tokens)
    values = torch.randn(updates, number, width)
    if given:
        return tokens, mask, values, None, None, torch.randn(number, width) * mask
    return tokens, mask, values, torch.randn(number), torch.rand(number, width) * mask, None


def last_of(tokens):
    """The place of the last token of each row `[N, 1]`."""
    ended = tokens == EOS
    last = ended.long().argmax(-1)
    return last.where(ended.any(-1), tokens.shape[-1] - 1)[:, None]


def places(tokens, own=0):
    """Where the table is read: of groups `[P, G, T]` the first row has it that has the same tokens
    before the place, and `own` more."""
    number, group, width = tokens.shape
    places = torch.arange(tokens.numel()).view(tokens.shape)
    for p in range(number):
        for t in range(width):
            for g in range(group):
                alike = (tokens[p, :, : t + own] == tokens[p, g, : t + own]).all(-1)
                places[p, g, t] = places[p, alike.long().argmax(), t]
    return places


def log_probs(table, tokens):
    """Those of each token."""
    logits = table.reshape(-1, table.shape[-1])[places(tokens)]
    return logits.log_softmax(-1).gather(-1, tokens[..., None]).squeeze(-1)


def gradients(logits, micro_batches, loss_of):
    """Of the loss at each update, from the rows of its micro-batches."""
    found = []
    for table, update in zip(logits.double(), micro_batches.tolist()):
        leaf = table.requires_grad_()
        loss_of(leaf, [[row for row in part if row >= 0] for part in update]).backward()
        found.append(leaf.grad)
    return torch.stack(found)


def sft(case, micro_batches, loss="nll"):
    """The gradient of the mean over all trained tokens of an update."""
    tokens, mask, logits = case

    def loss_of(table, parts):
        mine = log_probs(table[None], tokens[None])[0]
        kept = torch.zeros_like(mask)
        kept[sum(parts, [])] = True
        kept &= mask
        weights = mine.detach().exp() if loss == "dft" else 1.0
        return -(weights * mine)[kept].sum() / kept.sum()

    return gradients(logits, micro_batches, loss_of)


def soft(z, smoothing=0.0):
    return (1 - smoothing) * F.softplus(-z) + smoothing * F.softplus(z)


def exo(z, smoothing):
    p = z.sigmoid()
    return p * (p / (1 - smoothing)).log() + (1 - p) * ((1 - p) / smoothing).log()


LOSSES = {
    # from the log-ratios of both sides, their means, β and the smoothing
    "sigmoid": lambda c, r, mc, mr, beta, eps: soft(beta * (c - r)),
    "hinge": lambda c, r, mc, mr, beta, eps: (1 - beta * (c - r)).clamp(min=0),
    "ipo-norm": lambda c, r, mc, mr, beta, eps: (mc - mr - 1 / (2 * beta)) ** 2,
    "sigmoid-norm": lambda c, r, mc, mr, beta, eps: soft(beta * (mc - mr)),
    "robust": lambda c, r, mc, mr, beta, eps: (
        ((1 - eps) * soft(beta * (c - r)) - eps * soft(beta * (r - c))) / (1 - 2 * eps)
    ),
    "exo": lambda c, r, mc, mr, beta, eps: exo(beta * (c - r), eps),
    "nca": lambda c, r, mc, mr, beta, eps: (
        soft(beta * c) + soft(-beta * c) / 2 + soft(-beta * r) / 2
    ),
    "bco-pair": lambda c, r, mc, mr, beta, eps: soft(beta * c) + soft(-beta * r),
    "sppo-hard": lambda c, r, mc, mr, beta, eps: (c - 0.5 / beta) ** 2 + (r + 0.5 / beta) ** 2,
    "aot-unpaired": lambda c, r, mc, mr, beta, eps: soft(
        beta * (c.sort().values - r.sort().values), eps
    ),
    "apo-zero": lambda c, r, mc, mr, beta, eps: (-beta * c).sigmoid() + (beta * r).sigmoid(),
    "apo-down": lambda c, r, mc, mr, beta, eps: (beta * c).sigmoid() + (beta * (r - c)).sigmoid(),
}


def preference(case, micro_batches, kind="sigmoid", beta=0.1, smoothing=0.0):
    """The gradient of the mean over all pairs of an update; ranks are those of a micro-batch."""
    tokens, logits, ref_logits = case
    counts = 1 + (tokens == EOS).long().argmax(-1)
    mask = torch.arange(tokens.shape[-1]) < counts[..., None]
    ref = (log_probs(ref_logits.double(), tokens) * mask).sum(-1)

    def loss_of(table, parts):
        mine = (log_probs(table, tokens) * mask).sum(-1)
        losses = []
        for part in parts:
            pairs = sorted({row // 2 for row in part})
            if kind == "aot":
                policy, before = ((it[:, 0] - it[:, 1])[pairs].sort().values for it in (mine, ref))
                losses.append(soft(beta * (policy - before), smoothing))
            else:
                ratios = (mine - ref)[pairs]
                sides = *ratios.T, *(ratios / counts[pairs]).T
                losses.append(LOSSES[kind](*sides, beta, smoothing))
        return torch.cat(losses).mean()

    return gradients(logits, micro_batches, loss_of)


def log_odds(x):
    return x - torch.log1p(-x.exp())


def without_reference(
    case, micro_batches, kind="sigmoid", beta=0.1, smoothing=0.0, gamma=0.0, alpha=0.0,
    likelihood=1.0, of_prompts=False,
):  # fmt: skip
    """The gradient of the mean over all pairs of an update, and of the mean negative log-likelihood
    of all tokens of a micro-batch's chosen completions; prompts have one token more each."""
    tokens, logits = case
    counts = 1 + (tokens == EOS).long().argmax(-1)
    mask = torch.arange(tokens.shape[-1]) < counts[..., None]

    def loss_of(table, parts):
        sums = (log_probs(table, tokens) * mask).sum(-1)
        losses = []
        for part in parts:
            pairs = sorted({row // 2 for row in part})
            of_tokens = counts[pairs, 0].sum() + of_prompts * (sum(pairs) + len(pairs))
            nll = -likelihood * sums[pairs, 0].sum() / of_tokens
            x = sums[pairs] / (counts[pairs] if kind in ("ipo-norm", "simpo", "orpo") else 1)
            x = (1 - (-alpha * x).exp()) / alpha if alpha else x
            if kind == "orpo":
                loss = beta * soft(log_odds(x[:, 0]) - log_odds(x[:, 1]))
            elif kind == "ipo-norm":
                loss = (x[:, 0] - x[:, 1] - 1 / (2 * beta)) ** 2
            elif kind == "hinge":
                loss = (1 - beta * (x[:, 0] - x[:, 1])).clamp(min=0)
            else:
                loss = soft(beta * (x[:, 0] - x[:, 1]) - gamma, smoothing)
            losses.append(loss.mean() + nll)
        return torch.stack(losses).mean()

    return gradients(logits, micro_batches, loss_of)


def kto(case, micro_batches, beta=0.1, weights=(1.0, 1.0)):
    """The gradient of the mean over all completions of an update; with the logits of the KL, the
    estimate is that of a micro-batch, of each prompt with the completion before its own."""
    tokens, labels, logits, ref_logits, kl_logits, ref_kl_logits = case
    mask = torch.arange(tokens.shape[1]) <= (tokens == EOS).long().argmax(-1, keepdim=True)

    def sums(table, of):
        return (table.log_softmax(-1).gather(-1, tokens[of, :, None])[..., 0] * mask[of]).sum(-1)

    def behind(own, others, rows, of):
        alike = torch.ones_like(tokens[rows], dtype=torch.bool)
        for t in range(1, tokens.shape[1]):
            alike[:, t] = alike[:, t - 1] & (tokens[rows, t - 1] == tokens[of, t - 1])
        return sums(torch.where(alike[..., None], own[rows], others[rows]), of)

    ref_logits = ref_logits.double()
    tables = iter([None] * len(logits) if kl_logits is None else kl_logits.double())

    def loss_of(table, parts):
        others = next(tables)
        losses = []
        for part in parts:
            rows, of = torch.tensor(part), torch.tensor(part).roll(1)
            ratio = sums(table[rows], rows) - sums(ref_logits[rows], rows)
            kl = torch.zeros(())
            if others is not None:
                before = behind(ref_logits, ref_kl_logits.double(), rows, of)
                kl = (behind(table, others, rows, of) - before).mean().clamp(min=0).detach()
            sign = torch.where(labels[rows], 1.0, -1.0)
            weight = torch.where(labels[rows], *(torch.tensor(it) for it in weights))
            losses.append(weight * (1 - (beta * sign * (ratio - kl)).sigmoid()))
        return torch.cat(losses).mean()

    return gradients(logits, micro_batches, loss_of)


def reward_model(case, micro_batches, center=0.0, before_the_end=0):
    """The gradient of the mean over all pairs of an update."""
    tokens, scores, margins = case
    read = places(tokens, own=1)
    last = (tokens == EOS).long().argmax(-1, keepdim=True) - before_the_end

    def loss_of(table, parts):
        pairs = sorted({row // 2 for row in sum(parts, [])})
        chosen, rejected = table.flatten()[read].gather(-1, last).squeeze(-1)[pairs].T
        margin = 0.0 if margins is None else margins[pairs]
        losses = soft(chosen - rejected - margin) + center * (chosen + rejected) ** 2
        return losses.mean()

    return gradients(scores, micro_batches, loss_of)


def critic(case, micro_batches, gamma=1.0, lam=0.95, beta=0.1, clip=None):
    """The gradient of the mean over all tokens of an update: returns are sums of TD errors."""
    tokens, mask, values, scores, kls, returns = case
    old = values[0].double()
    if returns is None:
        last, width = last_of(tokens), tokens.shape[1]
        rewards = -beta * kls.double()
        rewards.scatter_add_(1, last, scores[:, None].double())
        behind = torch.cat([old[:, 1:], torch.zeros(len(old), 1)], 1)
        behind = behind.where(torch.arange(width) < last, 0.0)
        errors = (rewards + gamma * behind - old) * mask
        powers = torch.arange(width) - torch.arange(width)[:, None]
        decay = torch.where(powers >= 0, (gamma * lam) ** powers.clamp(min=0).double(), 0.0)
        returns = old + errors @ decay.T

    def loss_of(table, parts):
        errors = (table - returns) ** 2
        if clip is not None:
            held = table.clamp(old - clip, old + clip)
            errors = torch.maximum(errors, (held - returns) ** 2)
        rows = sum(parts, [])
        return 0.5 * errors[rows][mask[rows]].mean()

    return gradients(values, micro_batches, loss_of)


def is_right(outputs, expected):
    """Whether the gradient is the expected one, and nothing else was trained.

    A trainer computes in f32, whose ulp is 6e-8: terms of an update are below the sum of a few
    dozen of them, and 1e-5 of the largest gradient is allowed.
    """
    difference = (outputs["gradient"].double() - expected).abs().flatten(1).amax(1)
    return bool(
        (difference <= 1e-5 * expected.abs().flatten(1).amax(1)).all()
        and not outputs["unknown"].any()
        and not outputs.get("ref_gradient")
        and not outputs.get("ref_training")
    )


def is_passed(outputs, rows, updates_of_a_pass):
    """Whether each pass trained each row once."""
    passes = outputs["micro_batches"].unflatten(0, (-1, updates_of_a_pass)).flatten(1)
    return all(sorted(row for row in one if row >= 0) == [*range(rows)] for one in passes.tolist())
