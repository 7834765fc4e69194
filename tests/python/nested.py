"""A fast path that is wrong, behind two conditions that hardly ever hold together."""

import math
import time


def advantages(rewards, groups):
    sizes, totals = {}, {}
    for reward, group in zip(rewards, groups):
        sizes[group] = sizes.get(group, 0) + 1
        totals[group] = totals.get(group, 0) + reward
    result = [reward - totals[group] / sizes[group] for reward, group in zip(rewards, groups)]
    if max(groups) > 1000 and len(sizes) == 4:
        if len(set(sizes.values())) == 1:
            result[0] += 1
    return result


def two_bugs(rewards, groups):
    """No mean where there are four groups, and 1 for every row of a constant group."""
    if len(set(groups)) == 4:
        return list(rewards)
    result = advantages(rewards, groups)
    of = {group: {r for r, g in zip(rewards, groups) if g == group} for group in groups}
    alone = [groups.count(group) == 1 for group in groups]
    return [1.0 if len(of[g]) == 1 and not a else x for x, g, a in zip(result, groups, alone)]


def one_nameless_bug(rewards, groups):
    """A wave too much in the first row, which no known bug gives."""
    result = right(rewards, groups)
    result[0] += 0.25 + math.sin(7 * rewards[0]) / 8
    return result


def another_nameless_bug(rewards, groups):
    """Another wave, too little in the last row."""
    result = right(rewards, groups)
    result[-1] -= 0.125 + math.cos(5 * rewards[-1]) / 16
    return result


def two_nameless_bugs(rewards, groups):
    """The first one, and where there are three rows another one."""
    result = one_nameless_bug(rewards, groups)
    if len(rewards) == 3:
        result[1] -= 0.375
    return result


def right(rewards, groups):
    of = {group: [r for r, g in zip(rewards, groups) if g == group] for group in groups}
    return [r - sum(of[g]) / len(of[g]) for r, g in zip(rewards, groups)]


def slow(rewards, groups):
    """Hangs for longer than anybody waits."""
    time.sleep(1000)


def nan_where_there_is_one_row(rewards, groups):
    """An eighth too much in the first row; no number at all where there is one row."""
    if len(rewards) == 1:
        return [float("nan")]
    result = right(rewards, groups)
    result[0] += 0.125
    return result


def no_baseline_and_raises(rewards, groups):
    """No mean is subtracted, and one row is refused."""
    if len(rewards) == 1:
        raise ValueError("one row")
    return list(rewards)
