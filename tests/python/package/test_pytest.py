"""Decorated tests in a repository of their own, by the plugin."""

import json
import subprocess
import sys
import textwrap

import pytest

PLAIN = """
    @shakedown.contract("group-advantage", scale="std", epsilon=1e-4)
    def test_advantages(rewards, groups):
        return trainer.advantages(rewards, groups)
"""


def test_a_right_function_is_a_test_that_passes(repository):
    result = repository(PLAIN).runpytest("-W", "error", "--strict-markers")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 check, * cases, 0 bugs"])


def test_a_finding_is_a_failure_whose_text_is_the_report(repository):
    result = repository(PLAIN, epsilon=1.0).runpytest()
    result.assert_outcomes(failed=1)
    lines = ["✗ advantage · *test_advantages · cpu/f32", "*as if `epsilon` were 1.0*"]
    replay = "*replay     pytest test_trainer.py::test_advantages --shakedown-case .shakedown/*"
    result.stdout.fnmatch_lines([*lines, replay])
    result.stdout.no_fnmatch_line("*_drive.py*")


def test_fixtures_are_set_up_once(repository):
    tests = """
        COUNT = []

        @pytest.fixture(autouse=True)
        def everywhere(monkeypatch):
            monkeypatch.setattr(trainer, "EPSILON", 1e-4)

        @pytest.fixture
        def model():
            COUNT.append(1)
            return trainer

        @shakedown.contract("group-advantage", scale="std", epsilon=1e-4)
        def test_advantages(model, rewards, groups):
            assert len(COUNT) == 1
            return model.advantages(rewards, groups)
    """
    repository(tests, epsilon=1.0).runpytest().assert_outcomes(passed=1)


def test_methods_and_test_cases_are_tests(repository):
    tests = """
        import unittest

        contract = shakedown.contract("group-advantage", scale="std", epsilon=1e-4)

        class TestTrainer:
            @contract
            def test_advantages(self, tmp_path, rewards, groups):
                assert tmp_path.is_dir()
                return trainer.advantages(rewards, groups)

        class Old(unittest.TestCase):
            @contract
            def test_advantages(self, rewards, groups):
                self.assertTrue(len(rewards) > 0)
                return trainer.advantages(rewards, groups)
    """
    repository(tests).runpytest().assert_outcomes(passed=2)


def test_an_option_can_be_parametrised(repository):
    tests = """
        @pytest.mark.parametrize("epsilon", [1e-4, 1e-2])
        @shakedown.contract("group-advantage", scale="std")
        def test_advantages(monkeypatch, rewards, groups, epsilon):
            monkeypatch.setattr(trainer, "EPSILON", epsilon)
            return trainer.advantages(rewards, groups)
    """
    result = repository(tests).runpytest("-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_advantages[[]0.01[]] PASSED*"])


def test_functions_around_a_decorated_test_are_tests_of_its_contract(repository):
    tests = """
        import functools
        from unittest import mock

        contract = shakedown.contract("group-advantage", scale="std")
        epsilons = pytest.mark.parametrize("epsilon", [1e-4, 1e-2])

        def with_epsilon(rewards, groups, epsilon):
            with mock.patch("trainer.EPSILON", epsilon):
                return trainer.advantages(rewards, groups)

        def logged(test):
            @functools.wraps(test)
            def around(*args, **kwargs):
                return test(*args, **kwargs)

            return around

        @epsilons
        @logged
        @contract.settings(places=["cpu/f32", "cpu/f64"])
        def test_wrapped(rewards, groups, epsilon):
            return with_epsilon(rewards, groups, epsilon)

        @mock.patch("trainer.EPSILON", 1e-4)
        @mock.patch("trainer.print", create=True)
        @shakedown.contract("group-advantage", scale="std", epsilon=1e-4)
        def test_patched(print, rewards, groups):
            trainer.print()
            assert print.called
            return trainer.advantages(rewards, groups)

        class TestTrainer:
            @staticmethod
            @epsilons
            @contract
            def test_static(rewards, groups, epsilon):
                return with_epsilon(rewards, groups, epsilon)

            @logged
            @epsilons
            @contract
            def test_method(self, rewards, groups, epsilon):
                return with_epsilon(rewards, groups, epsilon)
    """
    result = repository(tests, epsilon=1.0).runpytest("--shakedown-cases", "16")
    result.assert_outcomes(passed=9)
    result.stdout.fnmatch_lines(["9 checks, * 0 bugs"])


def test_a_test_that_two_classes_inherit_has_the_parameters_of_each(repository):
    tests = """
        class Base:
            @shakedown.contract("group-advantage", scale="std")
            def test_advantages(self, monkeypatch, rewards, groups, epsilon):
                monkeypatch.setattr(trainer, "EPSILON", epsilon)
                return trainer.advantages(rewards, groups)

        @pytest.mark.parametrize("epsilon", [1e-4, 1e-2])
        class TestEach(Base):
            pass

        class TestOne(Base):
            pass
    """
    result = repository(tests, epsilon=1.0).runpytest("--shakedown-cases", "16")
    result.assert_outcomes(passed=3)


def test_an_option_that_is_given_twice_is_an_error_at_collection(repository):
    tests = """
        @pytest.mark.parametrize("epsilon", [1e-4, 1e-2])
        @shakedown.contract("group-advantage", epsilon=1e-4)
        def test_advantages(rewards, groups, epsilon):
            return trainer.advantages(rewards, groups)
    """
    result = repository(tests).runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*`epsilon` is parametrised, and given to the contract too*"])


def test_each_place_is_a_test(repository, monkeypatch):
    tests = """
        @shakedown.contract("group-advantage").settings(places=["cpu/f32", "cpu/f64"])
        def test_advantages(rewards, groups):
            return trainer.advantages(rewards, groups)
    """
    folder = repository(tests)
    result = folder.runpytest("-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*[[]cpu/f32[]] PASSED*", "*[[]cpu/f64[]] PASSED*"])
    result = folder.runpytest("-v", "--shakedown-places", "cpu/f64")
    result.assert_outcomes(passed=1)
    monkeypatch.setenv("SHAKEDOWN_PLACES", "cuda:7/f32")
    result = folder.runpytest("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*cannot use the device `cuda:7`*"])


def test_a_misspelt_input_is_named(repository):
    tests = """
        @shakedown.contract("group-advantage")
        def test_advantages(reward, groups):
            return trainer.advantages(reward, groups)
    """
    result = repository(tests).runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*fixture 'reward' not found*", "*inputs of group-advantage*did you mean `rewards`?"]
    )


RAISES = """
    @shakedown.contract("group-advantage")
    def test_advantages(rewards, groups):
        if len(rewards) > 2:
            raise KeyError("too many")
        return trainer.advantages(rewards, groups)
"""


def test_what_a_component_raises_is_shown_at_its_own_line(repository):
    result = repository(RAISES).runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "rewards = tensor([[]0., 0., 0.[]]), *",
            '>*raise KeyError("too many")',
            "*does-not-raise*",
        ]
    )


def test_the_debugger_stands_in_the_component(repository):
    folder = repository(RAISES)
    child = folder.spawn_pytest("--pdb") if has_pexpect() else pytest.skip("pexpect is missing")
    child.expect("Pdb")
    child.sendline("p len(rewards)")
    child.expect("3")
    child.sendline("q")
    child.expect("failed")


def has_pexpect():
    try:
        import pexpect  # noqa: F401
    except ImportError:
        return False
    return True


def test_a_skip_inside_skips_and_a_failure_is_a_finding(repository):
    tests = """
        @shakedown.contract("group-advantage")
        def test_skips(rewards, groups):
            pytest.skip("not today")

        @shakedown.contract("group-advantage")
        def test_fails(rewards, groups):
            pytest.fail("never")
    """
    result = repository(tests).runpytest("-rs")
    result.assert_outcomes(skipped=1, failed=1)
    result.stdout.fnmatch_lines(["*raised Failed: never*", "SKIPPED*not today"])


def test_a_case_is_checked_alone(repository):
    folder = repository(PLAIN, epsilon=1.0)
    folder.runpytest()
    [case] = (folder.path / ".shakedown" / "group-advantage" / "found").glob("*.yaml")
    result = folder.runpytest("--shakedown-case", str(case))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["1 check, 1 case, 1 bug"])
    folder.makepyfile(trainer=(folder.path / "trainer.py").read_text().replace("1.0", "1e-4"))
    folder.runpytest("--shakedown-case", str(case)).assert_outcomes(passed=1)
    result = folder.runpytest("-k", "nothing", "--shakedown-case", str(case))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no selected test has the contract group-advantage*"])


def test_a_case_can_be_kept_and_is_then_checked(repository, monkeypatch):
    folder = repository(PLAIN, epsilon=1.0)
    folder.runpytest()
    [case] = (folder.path / ".shakedown" / "group-advantage" / "found").glob("*.yaml")
    import os

    command = [os.environ["SHAKEDOWN_BIN"], "adopt", str(case), "--why", "epsilon was 1"]
    assert subprocess.run(command, cwd=folder.path).returncode == 0
    assert list((folder.path / "corpora" / "group-advantage" / "regressions").glob("*.yaml"))
    result = folder.runpytest("--shakedown-cases", "0")
    result.assert_outcomes(failed=1)


def test_workers_of_xdist_make_one_report(repository):
    pytest.importorskip("xdist")
    folder = repository(PLAIN + PLAIN.replace("test_advantages", "test_again"))
    result = folder.runpytest("-n", "2", "--shakedown-report", "out/report.json")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["2 checks, *"])
    report = json.loads((folder.path / "out" / "report.json").read_text())
    names = sorted(one["name"] for one in report["components"])
    assert names == ["test_trainer.py::test_advantages", "test_trainer.py::test_again"]


def test_junit_says_what_came_of_every_invariant(repository):
    folder = repository(PLAIN, epsilon=1.0)
    folder.runpytest("--junitxml", "junit.xml")
    text = (folder.path / "junit.xml").read_text()
    assert '<property name="shakedown zero-sum" value="pass"' in text
    assert '<property name="shakedown oracle" value="fail"' in text


MANIFEST = """
    version: 1
    components:
      - name: grpo
        contract: group-advantage
        target: python:trainer.py:advantages
        options: {scale: std, epsilon: 1.0e-4}
        places: [cpu/f32, cpu/f64]
"""


def test_components_of_a_manifest_are_items(repository):
    folder = repository("", epsilon=1.0)
    folder.path.joinpath("shakedown.yaml").write_text(textwrap.dedent(MANIFEST))
    folder.runpytest().assert_outcomes()
    result = folder.runpytest("-v", "shakedown.yaml")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["shakedown.yaml::grpo[[]cpu/f32[]] FAILED*"])
    result.stdout.fnmatch_lines(["*as if `epsilon` were 1.0*", "2 checks, *"])
    folder.makeini("[pytest]\nshakedown_manifest = true\nshakedown_places = cpu/f32\n")
    folder.runpytest("--shakedown-places", "cpu/f64").assert_outcomes(failed=1)
    folder.path.joinpath("shakedown.yaml").write_text("version: 1\ncomponent: []\n")
    result = folder.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*shakedown.yaml:2:1: *`component`*"])


def test_coverage_sees_the_component(repository):
    pytest.importorskip("pytest_cov")
    result = repository(PLAIN).runpytest("--cov=trainer", "--cov-report=term")
    result.stdout.fnmatch_lines(["trainer.py * 100%"])


def test_only_the_state_folder_is_written_and_git_does_not_see_it(repository):
    folder = repository(PLAIN, epsilon=1.0)
    before = {path.name for path in folder.path.iterdir()}
    folder.runpytest_subprocess("-p", "no:cacheprovider")
    of_pytester = {"stdout", "stderr", "runpytest-current", "__pycache__"}
    after = {path.name for path in folder.path.iterdir()}
    assert after - before - of_pytester - {"runpytest-0"} == {".shakedown"}
    git = ["git", "-C", str(folder.path)]
    subprocess.run([*git, "init", "-q"], check=True)
    status = subprocess.run([*git, "status", "--porcelain", "-uall"], capture_output=True)
    assert status.returncode == 0 and b".shakedown" not in status.stdout


def test_the_plugin_alone_loads_neither_torch_nor_json():
    code = "import shakedown.pytest_plugin, sys; print([m for m in ('torch', 'shakedown._drive') "
    code += "if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


def test_a_search_is_guided_by_what_the_component_does(repository):
    tests = """
        def hidden(rewards, groups):
            members = {}
            for reward, group in zip(rewards, groups):
                members.setdefault(group, []).append(reward)
            means = {group: sum(some) / len(some) for group, some in members.items()}
            out = [reward - means[group] for reward, group in zip(rewards, groups)]
            if len(rewards) == 5:
                if groups[0] == groups[4] != groups[2]:
                    out[0] += 1
            return out

        @shakedown.contract("group-advantage", scale="none").settings(arrays="list")
        def test_hidden(rewards, groups):
            return hidden(rewards, groups)
    """
    folder = repository(tests)
    result = folder.runpytest("--shakedown-fuzz", "10s", "--shakedown-report", "report.json")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*broken by case*"])
    [report] = json.loads((folder.path / "report.json").read_text())["components"]
    assert report["cases"] > 100  # in ten seconds of a machine that does other things too
    # libFuzzer keeps the inputs that made something run which had not.
    [corpus] = (folder.path / ".shakedown" / "group-advantage" / "fuzz").iterdir()
    assert len(list(corpus.iterdir())) > 10
    for time in ("soon", "0s"):
        result = folder.runpytest("--shakedown-fuzz", time)
        said = f"*--shakedown-fuzz: expected a time such as 30s*found `{time}`"
        result.stderr.fnmatch_lines([said])


def test_a_signature_gives_its_own_names(repository):
    tests = """
        CHAT = shakedown.RewardFunction(judges="correctness").settings(signature="trl-chat")

        @CHAT.settings(columns={"difficulty": 3})
        def test_reward(completions, answer, difficulty):
            assert difficulty == [3] * len(completions)
            texts = [completion[0]["content"] for completion in completions]
            said = [text.rpartition("<answer>")[2].partition("</answer>")[0] for text in texts]
            return [float(one.strip() == gold.strip() != "") for one, gold in zip(said, answer)]

        @CHAT
        def test_misspelt(completions, answr):
            return [0.0 for _ in completions]
    """
    result = repository(tests).runpytest("--shakedown-cases", "32")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*did you mean `answer`?"])


def test_a_known_bug_that_is_mended_is_told(repository):
    tests = """
        KNOWN = {"zero-sum": "to be mended"}

        @shakedown.contract("group-advantage", scale="std", epsilon=1e-4).settings(known=KNOWN)
        def test_advantages(rewards, groups):
            return trainer.advantages(rewards, groups)
    """
    result = repository(tests).runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*zero-sum holds, but is declared to fail*"])
    result.stdout.no_fnmatch_line("*traceback entries are hidden*")


def test_the_command_to_replay_holds_in_the_folder_that_pytest_was_called_in(repository):
    folder = repository(PLAIN, epsilon=1.0)
    inside = folder.mkdir("inside")
    for name in ["test_trainer.py", "trainer.py", "conftest.py"]:
        (folder.path / name).rename(inside / name)
    (inside / "pytest.ini").write_text("[pytest]\n")
    result = folder.runpytest("inside")
    said = "*replay     pytest inside/test_trainer.py::test_advantages --shakedown-case inside/*"
    result.stdout.fnmatch_lines([said])


USAGE = """
    @shakedown.contract("group-advantage", scale="sd")
    def test_decorated(rewards, groups):
        return rewards

    def test_by_hand():
        shakedown.contract("group-advantage", scale="sd").check(trainer.advantages)

    def test_by_name():
        shakedown.check(trainer.advantages, "group-advantages")

    def test_an_option():
        shakedown.GroupAdvantage(epsilom=1.0)

    def test_a_setting():
        shakedown.check(trainer.advantages, "group-advantage", cases="many")

    def test_cases():
        shakedown.contract("group-advantage", scale="sd").cases()

    def test_a_run():
        shakedown.check_run("nowhere.json")

    def test_no_command(monkeypatch):
        monkeypatch.setenv("SHAKEDOWN_BIN", "nowhere")
        shakedown.check(trainer.advantages, "group-advantage")
"""


def test_an_error_of_usage_is_one_message_at_the_line_of_the_caller(repository):
    result = repository(USAGE).runpytest("-p", "no:randomly", "--tb=long")
    result.assert_outcomes(failed=8)
    sigma = "group-advantage: options.scale: unknown value `sd`, expected one of `std`, *"
    result.stdout.fnmatch_lines(
        [
            "*___ test_decorated ___*",
            f"UsageError: {sigma}",
            "*___ test_by_hand ___*",
            "",
            "*def test_by_hand():",
            ">*check(trainer.advantages)",
            f"E *UsageError: {sigma}",
            "",
            "test_trainer.py:*: UsageError",
            "*___ test_by_name ___*",
        ],
        consecutive=True,
    )
    assert sum(line.startswith(">") for line in result.outlines) == 7  # frames
    result.stdout.no_fnmatch_line("*harness/python*")


def test_an_error_of_usage_in_a_plain_program_shows_no_internals(repository):
    repository("")
    program = "import shakedown; shakedown.contract('group-advantage', scale='sd').check(print)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "unknown value `sd`" in ran.stderr.splitlines()[-1]
    assert ran.stderr.count("File ") == 2, ran.stderr


NEEDY = """
    import no_attention.kernels
    from no_attention import flash

    class Kernel(no_attention.kernels.Base):
        pass

    def advantages(rewards, groups, fast: flash.Config = None):
        import no_attention.late

        import trainer

        return flash(rewards) if fast else trainer.advantages(rewards, groups)
"""


def test_modules_that_are_missing_are_stood_in_for_in_a_test_and_its_fixtures(repository):
    tests = """
        import sys

        contract = shakedown.contract("group-advantage", scale="std", epsilon=1e-4)

        @pytest.fixture
        def late():
            import needy
            return needy

        @contract.settings(stub=["no_attention"], cases=8)
        def test_body(rewards, groups):
            import needy
            return needy.advantages(rewards, groups)

        @contract.settings(stub=["no_attention"], cases=8)
        def test_fixture(late, rewards, groups):
            return late.advantages(rewards, groups)

        @contract.settings(stub=["no_attention"], cases=8)
        def test_called(late, rewards, groups):
            return late.advantages(rewards, groups, fast=True)

        def test_others():
            assert not [name for name in sys.modules if name.startswith("no_attention")]
            with pytest.raises(ModuleNotFoundError):
                import no_attention

        @contract.settings(cases=8)
        def test_without(rewards, groups):
            import no_attention
    """
    made = repository(tests, needy=textwrap.dedent(NEEDY))
    result = made.runpytest("-p", "no:randomly", "-v")
    result.assert_outcomes(passed=3, failed=2)
    called = "*`no_attention.flash` was called, and `no_attention` is not there*"
    result.stdout.fnmatch_lines(["*test_body PASSED*", "*test_fixture PASSED*", called])
    result.stdout.fnmatch_lines(["*ModuleNotFoundError: No module named 'no_attention'*"])


def test_a_file_of_tests_may_import_what_needs_missing_modules(repository):
    tests = """
        import json.decoder
        import sys

        with shakedown.stub("no_attention", "json.fast", "json"):
            import json.fast
            import needy

        assert not hasattr(json, "fast") and json.loads("[1]") == [1]
        assert "no_attention" not in sys.modules

        @shakedown.contract("group-advantage", scale="std").settings(stub=["no_attention"], cases=8)
        def test_advantages(rewards, groups):
            return needy.advantages(rewards, groups)
    """
    made = repository(tests, needy=textwrap.dedent(NEEDY))
    made.runpytest("-W", "error").assert_outcomes(passed=1)
