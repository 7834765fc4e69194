"""The switch for planted bugs: `PLANTED_BUG=epsilon-of-one pytest targets/training`."""

import os

BUGS = {
    "epsilon-of-one": "the advantages divide by std + 1, not by std + 0.0001",
    "biased-deviation": "the deviation of a group divides by G where G - 1 is meant",
    "eos-left-out": "the mask ends one token early: the model is never told to stop",
    "mean-of-row-means": "the loss is the mean of the rows' means, not of all tokens",
    "ratio-upside-down": "the ratio is old / new, as the log-ratio has the wrong sign",
    "substring-is-right": "an answer that contains the gold answer is right: 12 for 1",
    "temperature-forgotten": "log-probabilities are of the logits, not of logits / temperature",
}

PLANTED = os.environ.get("PLANTED_BUG")
if PLANTED and PLANTED not in BUGS:
    raise SystemExit(f"PLANTED_BUG is {PLANTED}, expected one of {', '.join(BUGS)}")


def planted(bug):
    """Whether this bug is on."""
    assert bug in BUGS
    return bug == PLANTED
