"""What goes wrong on a GPU, as far as it can be seen without one."""

import pytest

import shakedown

torch = pytest.importorskip("torch")

CONTRACT = shakedown.KlEstimate(estimator="k2", gradient="none").settings(cases=8)


def right(log_probs, ref_log_probs):
    return (log_probs - ref_log_probs).square() / 2


def only_finding(function):
    (finding,) = CONTRACT.report(function).findings
    return finding.invariant, finding.found


def test_an_output_is_where_the_inputs_are():
    invariant, found = only_finding(lambda log_probs, ref_log_probs: log_probs.to("meta"))
    assert invariant == "well-formed"
    assert found == "`kl` is on meta, expected cpu, where the inputs are"


def test_a_kernel_that_fails_later_costs_the_process_its_gpu(monkeypatch):
    def synchronize():
        raise RuntimeError("CUDA error: device-side assert triggered\nCompile with …")

    # Once CUDA is used, all that was launched is waited for after each call.
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    assert CONTRACT.report(right).status == "pass"
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    invariant, found = only_finding(right)
    assert invariant == "does-not-crash"
    lost = "its GPU is lost to it: RuntimeError: CUDA error: device-side assert triggered"
    assert found == f"its process ended: {lost}"
