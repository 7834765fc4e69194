"""What type checkers know of the package: types that they reveal, and mistakes that they see."""

import pathlib
import re

import pytest

import shakedown

api = pytest.importorskip("mypy.api")

# A line with `# reveals T` must be revealed as T, one with `# wrong` must be an error, and no other
# line may be one.
CODE = """
import shakedown

one = shakedown.GroupAdvantage(scale="std", ddof=1)
reveal_type(one)  # reveals shakedown._contracts.GroupAdvantage
reveal_type(one.settings(cases=8))  # reveals shakedown._contracts.GroupAdvantage
reveal_type(shakedown.contract("gae", gamma=0.9))  # reveals shakedown._contracts.Gae
reveal_type(one.report(print))  # reveals shakedown._report.Report
reveal_type(one.check(print))  # reveals shakedown._report.Report
reveal_type(shakedown.check(print, "gae", cases=8))  # reveals shakedown._report.Report
reveal_type(one.report(print).findings[0].found)  # reveals str
reveal_type(one.cases(8))  # reveals list[dict[str, object]]
reveal_type(shakedown.check_run("log.jsonl"))  # reveals shakedown._surroundings.Diagnosis
reveal_type(shakedown.check_run("log.jsonl").rules)  # reveals list[str]
reveal_type(shakedown.ranks(4))  # reveals shakedown._ranks.Ranks
reveal_type(shakedown.ranks(4).run(bin))  # reveals list[str]

@one
def test_advantages(rewards: object, groups: object) -> object: ...

reveal_type(test_advantages)  # reveals def (*Any, **Any)

shakedown.GroupAdvantage(scale="sdt")  # wrong
shakedown.GroupAdvantage(scael="std")  # wrong
shakedown.contract("group-advantage", scale="sdt")  # wrong
shakedown.contract("group-advantage", scael="std")  # wrong
one.settings(cases="many")  # wrong
one.settings(nosuch=3)  # wrong
one.settings(arrays="jax")  # wrong
shakedown.check(print, one, cases="many")  # wrong
shakedown.check_config("grpo.yaml", processes="two")  # wrong
shakedown.ranks("four")  # wrong
"""


def test_types_are_revealed_and_mistakes_are_errors(tmp_path, monkeypatch):
    monkeypatch.setenv("MYPYPATH", str(pathlib.Path(shakedown.__file__).parents[1]))
    file = tmp_path / "user.py"
    file.write_text(CODE)
    said, crashed, _ = api.run(["--strict", f"--cache-dir={tmp_path}", str(file)])
    assert not crashed and "user.py" in said, said + crashed
    found = re.findall(
        r'user\.py:(\d+): (note|error): (?:Revealed type is )?"?(.*?)"?$', said, re.M
    )
    revealed = {int(line): what for line, kind, what in found if kind == "note"}
    errors = {int(line) for line, kind, _ in found if kind == "error"}
    for number, line in enumerate(CODE.splitlines(), 1):
        _, _, expected = line.partition("# reveals ")
        if expected:
            what = revealed[number].replace("builtins.", "")
            assert what == expected, line
        assert (number in errors) == line.endswith("# wrong"), f"{line}\n{said}"
