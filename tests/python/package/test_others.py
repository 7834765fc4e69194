"""Tests of others in a session with the plugin: they are what they are without it."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

STRANGERS = """
    import importlib.util
    import sys
    import types
    import unittest
    from unittest.mock import MagicMock, Mock, NonCallableMock, call, create_autospec, sentinel

    import shakedown

    SEEN = []  # what anybody asked of the objects below


    @shakedown.contract("group-advantage")
    def test_contract(rewards, groups):  # with it the plugin has something to look for
        raise AssertionError


    class Raises:
        def __getattr__(self, name):
            SEEN.append(f"raises {name}")
            raise RuntimeError(name)


    class Itself:
        def __getattr__(self, name):
            SEEN.append(f"itself {name}")
            return self

        def __call__(self, *args, **kwargs):
            SEEN.append("itself()")
            return self


    class Everything:
        def __getattribute__(self, name):
            SEEN.append(f"everything {name}")
            return object.__getattribute__(self, name)


    class OfAnotherClass:
        @property
        def __class__(self):
            SEEN.append("another class")
            return types.FunctionType


    class Descriptor:
        def __get__(self, instance, owner):
            SEEN.append("descriptor")
            return MagicMock()


    class Meta(type):
        def __getattr__(cls, name):
            SEEN.append(f"class {name}")
            raise AttributeError(name)


    class OfMeta(metaclass=Meta):
        pass


    class Function:
        "Imitates a function: has its attributes, and answers to all others."

        def __init__(self, function):
            self.__wrapped__ = function
            self.__dict__.update(vars(function))

        def __call__(self):
            pass

        def __getattr__(self, name):
            SEEN.append(f"function {name}")
            raise AttributeError(name)


    class Failure(Exception):
        @property
        def __class__(self):
            SEEN.append("class of the failure")
            return Exception


    def plain():
        pass


    plain.shakedown = MagicMock()
    module = types.ModuleType("module")
    module.__getattr__ = lambda name: SEEN.append(f"module {name}") or MagicMock()
    spec = importlib.util.find_spec("heavy")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lazy)

    mock, magic, still = Mock(), MagicMock(), NonCallableMock()
    like_a_function, named = create_autospec(plain), sentinel.shakedown
    raises, itself, everything, other = Raises(), Itself(), Everything(), OfAnotherClass()
    test_plain = plain
    test_stands_for = Function(plain)
    test_stands_for_ours = Function(test_contract)
    Tests = MagicMock()


    class TestClass:
        call, mock, magic, itself, raises = call, Mock(), MagicMock(), itself, raises
        descriptor, everything, OfMeta, lazy = Descriptor(), everything, OfMeta, lazy
        unbound = staticmethod(itself)
        of_class = classmethod(itself)
        bound = types.MethodType(itself, 1)

        def test_method(self):
            raise Failure


    class Old(unittest.TestCase):
        def __init__(self, name="runTest"):
            SEEN.append("Old()")
            super().__init__(name)

        def tearDown(self):
            raise Failure

        def test_method(self):
            pass
"""
CONFTEST = """
    import sys

    import pytest


    class File(pytest.File):
        def collect(self):
            yield Item.from_parent(self, name="item")


    class Item(pytest.Item):
        def __getattr__(self, name):
            sys.modules["test_strangers"].SEEN.append(f"item {name}")
            raise AttributeError(name)

        def runtest(self):
            raise RuntimeError

        def repr_failure(self, excinfo):
            return "the item fails"


    def pytest_collect_file(file_path, parent):
        return File.from_parent(parent, path=file_path) if file_path.suffix == ".txt" else None


    def pytest_terminal_summary(terminalreporter):
        for line in sys.modules["test_strangers"].SEEN:
            terminalreporter.write_line(f"seen: {line}")
"""


def session(folder, *arguments, plugin):
    """What a session in a folder says, and its exit code."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    command += ["-p", "shakedown.pytest_plugin"] if plugin else []
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    said = re.sub(r" in [\d.]+s( \([\d:]+\))?", "", ran.stdout + ran.stderr)
    said = re.sub(r"^plugins: .*\n", "", said, flags=re.MULTILINE)
    return re.sub(r"0x[0-9a-f]+|id='\d+'", "…", said), ran.returncode


@pytest.mark.parametrize("how", [["--tb=line", "-k", "not contract"], ["--collect-only", "-q"]])
def test_objects_that_answer_to_any_name_are_not_asked(tmp_path, how):
    files = {"test_strangers.py": STRANGERS, "conftest.py": CONFTEST, "item.txt": ""}
    files["heavy.py"] = "import sys; sys.modules['test_strangers'].SEEN.append('heavy is imported')"
    for name, text in {**files, "pytest.ini": "[pytest]\n"}.items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    without, code = session(tmp_path, *how, plugin=False)
    assert "test_method" in without and "seen: itself" in without, without
    assert session(tmp_path, *how, plugin=True) == (without, code)


def test_a_session_without_a_contract_imports_next_to_nothing(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_plain.py").write_text("def test_it():\n    assert 1 + 1 == 2\n")
    hook = "def pytest_unconfigure():\n    import json, sys\n"
    hook += "    json.dump(sorted(sys.modules), open('modules.json', 'w'))\n"
    (tmp_path / "conftest.py").write_text(hook)
    modules = {}
    for plugin in (False, True):
        said, code = session(tmp_path, plugin=plugin)
        assert code == 0, said
        modules[plugin] = set(json.loads((tmp_path / "modules.json").read_text()))
    ours = {"shakedown", "shakedown._context", "shakedown.pytest_plugin"}
    theirs = {"contextvars", "_contextvars"}
    assert modules[True] - modules[False] - theirs == ours
    assert not modules[True] & {"numpy", "torch"}


def test_a_test_that_is_the_first_to_meet_a_contract_has_its_name_in_the_report(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    test = """
        def test_by_hand():
            import shakedown

            shakedown.contract("group-advantage").check(lambda rewards, groups: rewards)
    """
    (tmp_path / "test_it.py").write_text(textwrap.dedent(test))
    said, code = session(tmp_path, plugin=True)
    assert code == 1 and "advantage · test_it.py::test_by_hand · " in said, said
    assert "pytest test_it.py::test_by_hand --shakedown-case " in said, said


# Tests that come with packages, with whatever those keep in modules and classes.
SHIPPED = ["numpy/tests", "pandas/tests/libs", "sympy/unify", "regex/tests"]


@pytest.mark.parametrize("shipped", SHIPPED)
def test_the_tests_of_a_package_are_collected_alike(shipped):
    package, _, inside = shipped.partition("/")
    found = importlib.util.find_spec(package)
    folder = found and pathlib.Path(found.submodule_search_locations[0], inside)
    if not folder or not folder.exists():
        pytest.skip(f"left out: {shipped} is not installed")
    how = ["--collect-only", "-q", "-c", os.devnull, "--rootdir", str(folder), str(folder)]
    without, code = session(folder, *how, plugin=False)
    assert code == 0 and len(without.splitlines()) > 20, without
    # Where no contract is imported, the plugin looks at nothing.
    assert session(folder, *how, "-p", "shakedown._contract", plugin=True) == (without, code)
