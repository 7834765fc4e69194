"""The three reward functions of the usual GRPO tutorial, as they are passed on from hand to hand.

Written anew from what they do, in the signature of TRL, with the bugs that they are known for.
"""

import re

STRICT = r"^<reasoning>\n.*?\n</reasoning>\n<answer>\n.*?\n</answer>\n$"


def said(completions):
    return [messages[0]["content"] for messages in completions]


def correctness(prompts, completions, answer, **kwargs):
    """2 where what stands after the last opening tag is the gold answer."""
    answers = [
        text.split("<answer>")[-1].split("</answer>")[0].strip() for text in said(completions)
    ]
    return [2.0 if found == gold else 0.0 for found, gold in zip(answers, answer)]


def strict_format(completions, **kwargs):
    """0.5 for the form; the pattern's dot stops at line ends, its dollar before the last one."""
    return [0.5 if re.match(STRICT, text) else 0.0 for text in said(completions)]


def incremental_format(completions, **kwargs):
    """An eighth for each tag in its place, a thousandth off for each character after the last."""

    def score(text):
        tags = ["<reasoning>\n", "\n</reasoning>\n", "\n<answer>\n", "\n</answer>"]
        total = sum(0.125 for tag in tags if text.count(tag) == 1)
        if text.count("\n<answer>\n") == 1:
            total -= 0.001 * len(text.split("\n</answer>\n")[-1])
        if text.count("\n</answer>") == 1:
            total -= 0.001 * (len(text.split("\n</answer>")[-1]) - 1)
        return total

    return [score(text) for text in said(completions)]
