"""Math-Verify as a reward: what its README shows, 1 where the two expressions are equal.

Nothing is copied from the library. A gold answer that does not parse is not scorable.
"""

from math_verify import parse, verify


def rewards(completions, answers):
    """Ours: the gold answer between dollars, as the library wants LaTeX to be marked."""
    return [score(completion, answer) for completion, answer in zip(completions, answers)]


def score(completion, answer):
    gold = parse(f"${answer}$")
    return float(verify(gold, parse(completion))) if gold else None
