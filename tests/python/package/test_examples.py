"""The examples of invariants: the wrong lines break the invariant, the right ones keep it.

An example is a diff in the head of an invariant's file, under `### Example`: from a wrong version
of the contract's `example.py` to that file. It may say under which options, and a law's in which
contract.
"""

import itertools
import pathlib
import re

import pytest

import shakedown

HARNESS = pathlib.Path(__file__).parents[3] / "harness"
INTRODUCTION = re.compile(r"(?:In `([\w-]+)`)?(?:, )?(?:[uU]nder `(.+)`)?:")
QUICKLY = {"cases": 64, "time": 30, "timeout": 1, "places": ["cpu/f32"]}


class Example:
    """The example in the head of an invariant's file."""

    def __init__(self, path):
        self.invariant = path.stem.replace("_", "-")
        lines = path.read_text("utf-8").splitlines()
        head = [line[4:] for line in itertools.takewhile(lambda line: line[:3] == "//!", lines)]
        section = head[head.index("### Example") + 1 :]
        introduction = "" if section[0] == "```diff" else section.pop(0)
        assert section[0] == "```diff" and section[-1] == "```", "a diff, and nothing after it"
        contract, options = INTRODUCTION.fullmatch(introduction or ":").groups()
        self.contract = contract or path.parents[1].name.replace("_", "-")
        self.options = eval(f"dict({options or ''})")
        diff = section[1:-1]
        self.right = "\n".join(line[1:] for line in diff if line[0] in " +")
        self.wrong = "\n".join(line[1:] for line in diff if line[0] in " -")
        self.source = source(self.contract)

    def function(self, lines):
        """The function with these lines for the right ones."""
        text = f"\n{self.source}"
        assert text.count(f"\n{self.right}\n") == 1, "the right lines are in example.py, once"
        return function_in(text.replace(f"\n{self.right}\n", f"\n{lines}\n"))

    def report(self, lines):
        """What a check of this invariant alone says of the function with these lines."""
        contract = shakedown.contract(self.contract, **self.options)
        return contract.settings(only=[self.invariant], **QUICKLY).report(self.function(lines))


def source(contract):
    """The right function of a contract."""
    folder = HARNESS / "contracts" / contract.replace("-", "_")
    return (folder / "example.py").read_text("utf-8")


def function_in(text):
    """The function that a text defines last."""
    names = {"__name__": "example"}
    exec(compile(text, "example.py", "exec"), names)
    return names[re.findall(r"^def (\w+)", text, re.M)[-1]]


def files():
    own = HARNESS.glob("contracts/*/invariants/*.rs")
    laws = HARNESS.glob("core/laws/*.rs")
    texts = ((path, path.read_text("utf-8")) for path in sorted([*own, *laws]))
    return [path for path, text in texts if "//! ### Example" in text]


def named(path):
    return f"{path.parents[1].name}-{path.stem}"


# By day one contract and the laws; all take some minutes.
BY_DAY = ["core", "group_advantage"]


@pytest.mark.parametrize("path", [p for p in files() if p.parents[1].name in BY_DAY], ids=named)
def test_wrong_lines_break_the_invariant(path):
    example = Example(path)
    right, wrong = map(example.report, [example.right, example.wrong])
    assert right and not right.json["components"][0]["unanswered"], f"the right lines:\n{right}"
    assert wrong.status == "fail", f"the wrong lines:\n{wrong}"


@pytest.mark.night
@pytest.mark.parametrize("path", [p for p in files() if p.parents[1].name not in BY_DAY], ids=named)
def test_wrong_lines_break_the_other_invariants(path):
    test_wrong_lines_break_the_invariant(path)


def test_every_example_is_of_lines_of_a_function():
    for path in files():
        example = Example(path)
        assert example.wrong != example.right, path
        example.function(example.wrong)


@pytest.mark.parametrize(
    "contract", sorted(path.parent.name for path in HARNESS.glob("contracts/*/example.py"))
)
def test_the_example_of_a_contract_is_right(contract):
    contract = contract.replace("_", "-")
    shakedown.contract(contract).settings(**QUICKLY).check(function_in(source(contract)))
