"""The package from the checkout, and folders of tests that use it."""

import os
import textwrap

import pytest

import shakedown._contracts  # noqa: F401
import shakedown._drive  # noqa: F401

# `pytester` takes away what its sessions import, and torch cannot be imported twice.
try:
    import torch  # noqa: F401
except ImportError:
    pass

pytest_plugins = ["shakedown.pytest_plugin", "pytester"]


def pytest_collection_modifyitems(items):
    """What takes long and need not run on every change is left to the nights, and says so."""
    if os.environ.get("SHAKEDOWN_NIGHT") != "1":
        by_night = pytest.mark.skip(reason="by night: SHAKEDOWN_NIGHT=1")
        for item in items:
            if item.get_closest_marker("night"):
                item.add_marker(by_night)


def pytest_configure(config):
    config.addinivalue_line("markers", "night: run where SHAKEDOWN_NIGHT is 1")


TRAINER = """
    import torch

    EPSILON = {epsilon}

    def advantages(rewards, groups):
        out = torch.zeros_like(rewards)
        for group in groups.unique():
            rows = groups == group
            some = rewards[rows]
            deviation = some.std() if len(some) > 1 else torch.zeros(())
            out[rows] = (some - some.mean()) / (deviation + EPSILON)
        return out
"""


@pytest.fixture
def repository(pytester):
    """A training repository, to which tests are added: `repository(TEST, epsilon=1.0)`."""

    def make(tests, epsilon=1e-4, **files):
        pytester.makeconftest('pytest_plugins = ["shakedown.pytest_plugin"]')
        pytester.makepyfile(
            test_trainer="import pytest, shakedown, trainer\n" + textwrap.dedent(tests),
            trainer=textwrap.dedent(TRAINER.format(epsilon=epsilon)),
            **files,
        )
        return pytester

    return make
