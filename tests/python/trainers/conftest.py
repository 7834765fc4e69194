"""No test of a trainer reaches for the network; two cores are shared by all."""

import os

import pytest

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", OMP_NUM_THREADS="1")


def pytest_collection_modifyitems(items):
    """What takes long and need not run on every change is left to the nights, and says so."""
    if os.environ.get("SHAKEDOWN_NIGHT") != "1":
        by_night = pytest.mark.skip(reason="by night: SHAKEDOWN_NIGHT=1")
        for item in items:
            if item.get_closest_marker("night"):
                item.add_marker(by_night)


def pytest_configure(config):
    config.addinivalue_line("markers", "night: run where SHAKEDOWN_NIGHT is 1")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(monkeypatch, tmp_path):
    """Findings are written where a check runs."""
    monkeypatch.chdir(tmp_path)
