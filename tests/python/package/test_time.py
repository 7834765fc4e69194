"""Time limits of calls, and those of others."""

import re
import signal
import time

import pytest

import shakedown


def hangs(body):
    def component(rewards, groups):
        if len(rewards) > 2:
            body()
        mean = {group: [r for r, g in zip(rewards, groups) if g == group] for group in groups}
        return [r - sum(mean[g]) / len(mean[g]) for r, g in zip(rewards, groups)]

    return component


def loop():
    while True:
        pass


def deaf():
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            pass


def runaway_expression():
    re.match(r"(a+)+$", "a" * 64 + "b")


@pytest.mark.parametrize("body", [loop, deaf, runaway_expression, lambda: time.sleep(60)])
@pytest.mark.parametrize("isolate", [False, True])
def test_a_call_that_hangs_is_a_finding(body, isolate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    contract = shakedown.GroupAdvantage(scale="none")
    settings = {"timeout": 0.3, "arrays": "list", "isolate": isolate}
    settings["only"] = ["within-time-limit"]
    report = contract.settings(**settings).report(hangs(body))
    [finding] = report.findings
    assert finding.found == "did not answer within 300 ms"
    assert len(finding.case["rewards"]) == 3


centred = hangs(lambda: None)


@pytest.mark.parametrize("isolate", [False, True])
def test_a_call_that_is_slow_once_is_no_finding(isolate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def component(rewards, groups):
        with open("calls", "a+", encoding="utf-8") as calls:
            calls.write("+")
            calls.seek(0)
            if calls.read().count("+") == 20:
                time.sleep(1)
        return centred(rewards, groups)

    contract = shakedown.GroupAdvantage(scale="none")
    report = contract.settings(timeout=0.3, isolate=isolate, cases=8, arrays="list").report(
        component
    )
    assert report.status == "pass", report
    slow = "a call took longer than 300 ms, and less when repeated"
    assert [text for text in report.warnings if "longer" in text] == [slow]


@pytest.mark.parametrize("isolate", [False, True])
def test_the_first_call_has_longer(isolate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def component(rewards, groups):
        if not compiled:
            time.sleep(0.8)
            compiled.append(True)
        return centred(rewards, groups)

    compiled = []
    contract = shakedown.GroupAdvantage(scale="none")
    report = contract.settings(timeout=0.3, isolate=isolate, cases=8, arrays="list").report(
        component
    )
    assert report.status == "pass" and not report.warnings, report


def test_an_import_is_not_interrupted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    sleeps = "import time\ntime.sleep(1)\n"
    (tmp_path / "imported_late.py").write_text(f"{sleeps}import imported_later\nWHOLE = True\n")
    (tmp_path / "imported_later.py").write_text(f"{sleeps}WHOLE = True\n")

    def component(rewards, groups):
        import imported_late

        assert imported_late.WHOLE and imported_late.imported_later.WHOLE
        return centred(rewards, groups)

    contract = shakedown.GroupAdvantage(scale="none")
    report = contract.settings(timeout=0.1, cases=8, arrays="list").report(component)
    assert report.status == "pass" and not report.warnings, report


def test_the_alarm_of_others_rings_at_its_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    class Theirs(BaseException):
        pass

    def rings(*_):
        raise Theirs

    before = signal.signal(signal.SIGALRM, rings)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(Theirs):
            shakedown.GroupAdvantage().settings(timeout=20.0, arrays="list").check(hangs(loop))
        assert signal.getsignal(signal.SIGALRM) is rings
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_pytest_timeout_fires_at_its_time(repository):
    pytest.importorskip("pytest_timeout")
    tests = """
        import time

        @pytest.mark.timeout(2, method="signal")
        @shakedown.contract("group-advantage").settings(timeout=30)
        def test_advantages(rewards, groups):
            time.sleep(60)
    """
    result = repository(tests).runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Timeout*2*"])


@pytest.mark.parametrize("given", [0, -1.0, "10s"])
@pytest.mark.parametrize("name", ["time", "timeout"])
def test_a_limit_that_is_none_is_refused(name, given):
    with pytest.raises(shakedown.UsageError, match=f"{name}: expected seconds above 0, or None"):
        shakedown.GroupAdvantage().settings(**{name: given})


def slow(rewards, groups):
    time.sleep(0.02)
    return centred(rewards, groups)


def test_a_slow_function_has_a_time_by_default_and_the_report_says_what_it_sufficed_for(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert shakedown._settings.SETTINGS["time"] == 30
    monkeypatch.setitem(shakedown._settings.SETTINGS, "time", 1.0)
    contract = shakedown.GroupAdvantage(scale="none").settings(arrays="list", cases=10_000)
    began = time.monotonic()
    report = contract.check(slow)
    assert time.monotonic() - began < 10
    [said] = [text for text in report.warnings if "the time was over" in text]
    assert re.fullmatch(rf"checked on {report.cases} of \d+ cases: the time was over", said)

    began = time.monotonic()
    report = contract.report(lambda rewards, groups: slow(rewards, groups)[:-1] + [1.0])
    assert time.monotonic() - began < 10 and report.status == "fail"
    assert any("time was over" in text and "case" in text for text in report.warnings)


def test_the_time_of_all_checks_is_an_option_of_pytest(repository):
    tests = """
        import time

        @shakedown.contract("group-advantage", scale="std").settings(cases=100_000)
        def test_advantages(rewards, groups):
            time.sleep(0.01)
            return trainer.advantages(rewards, groups)
    """
    result = repository(tests).runpytest("--shakedown-time=0.5", "-rA")
    result.assert_outcomes(passed=1)
    said = "test_trainer.py::test_advantages: its time was over after * of * cases"
    result.stdout.fnmatch_lines([said, "*: checked on * cases: the time was over"])
    made = repository(tests.replace("100_000", "1"))
    made.makeini("[pytest]\nshakedown_time = inf\n")
    result = made.runpytest("-rA")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*time was over*")
