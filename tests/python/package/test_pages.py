"""The pages of the package: what they show runs, and what they list is all there is."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = ROOT / "harness" / "python" / "shakedown" / "pages"
LIBRARIES = ["torch", "trl", "verl", "openrlhf"]

# The test environment has these libraries without what they need to train, so their packages are
# imported as `targets/python` does it. Where they are whole, this changes nothing for a test.
CONFTESTS = {
    "verl": """
        from library import stand_in, without_init
        stand_in("ray")
        without_init("verl")
        import verl
        from verl.protocol import DataProto
        verl.DataProto = DataProto
    """,
    "openrlhf": """
        import torch
        from library import stand_in, without_init
        stand_in("deepspeed", "ray")
        without_init("openrlhf", "openrlhf.models", "openrlhf.utils")
    """,
}


def blocks(page):
    """The blocks of Python of a page, each with its first line."""
    text = (PAGES / page).read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(block.partition("\n")[0], block) for block in found]


def test_every_block_of_the_cookbook_says_whether_it_is_run():
    known = [f"# runs with {name}" for name in LIBRARIES]
    known += ["# breaks with torch: gradient", "# not run: from the source"]
    assert [first for first, _ in blocks("cookbook.md") if first not in known] == []


def run(folder, chosen, library):
    """The outcome of pytest on some blocks, each a file."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    (folder / "pytest.ini").write_text("[pytest]\n")
    lines = [line.strip() for line in CONFTESTS.get(library, "").strip().splitlines()]
    (folder / "conftest.py").write_text("\n".join(lines) + "\n")
    for number, block in enumerate(chosen):
        (folder / f"test_block_{number}.py").write_text(block, encoding="utf-8")
    paths = [os.environ.get("PYTHONPATH", ""), str(ROOT / "targets" / "python")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TORCHDYNAMO_DISABLE": "1"}
    environment.pop("SHAKEDOWN_PLACES", None)
    command = [sys.executable, "-m", "pytest", "-p", "shakedown.pytest_plugin", "-rA"]
    command += ["--shakedown-cases", "64"]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    output = ran.stdout + ran.stderr
    for number in range(len(chosen)):
        assert re.search(rf"^(PASSED|FAILED) test_block_{number}\.py", output, re.M), output
    return ran.returncode, output


NIGHTS = ("openrlhf", "verl")  # their imports are most of the time


@pytest.mark.parametrize(
    "library",
    [pytest.param(name, marks=[pytest.mark.night] * (name in NIGHTS)) for name in LIBRARIES],
)
def test_the_blocks_of_the_cookbook_hold(library, tmp_path):
    first = f"# runs with {library}"
    code, output = run(tmp_path, [b for f, b in blocks("cookbook.md") if f == first], library)
    assert code == 0, output


def test_the_block_that_breaks_has_the_finding_that_the_cookbook_says(tmp_path):
    first = "# breaks with torch: gradient"
    code, output = run(tmp_path, [b for f, b in blocks("cookbook.md") if f == first], "torch")
    assert code == 1 and "✗ gradient" in output, output
    assert "`empty-mask-returns-a-constant`" in output, output


def keys(page):
    """What stands in code in the first column of the tables of a page."""
    lines = (PAGES / page).read_text(encoding="utf-8").splitlines()
    cells = [line.split("|")[1] for line in lines if line.startswith("|")]
    return {key for cell in cells for key in re.findall(r"`([^`]+)`", cell)}


def test_the_page_of_settings_has_all_of_them():
    from shakedown._settings import SETTINGS
    from shakedown.pytest_plugin import pytest_addoption

    class Parser:
        """Notes what is added."""

        def __init__(self):
            self.options, self.inis = set(), set()

        def getgroup(self, *_):
            return self

        def addoption(self, name, **_):
            self.options.add(name)

        def addini(self, name, **_):
            self.inis.add(name)

    pytest_addoption(parser := Parser())
    text = (PAGES / "settings.md").read_text(encoding="utf-8")
    listed = {key.partition(" ")[0] for key in keys("settings.md")}
    assert set(SETTINGS) | parser.options <= listed
    assert [name for name in parser.inis if f"`{name}`" not in text] == []
    assert {key for key in listed if key.startswith("--shakedown")} == parser.options


def test_the_page_of_manifests_has_all_keys():
    command = [os.environ["SHAKEDOWN_BIN"], "schema"]
    schema = json.loads(subprocess.check_output(command, text=True))
    parts = schema, schema["definitions"]["python"], schema["definitions"]["component"]
    known = {key for part in parts for key in part["properties"]}
    assert known - keys("manifest.md") == set()


ADVANTAGES = """
    import torch

    def advantages(rewards, groups, epsilon):
        out = torch.zeros_like(rewards)
        for group in groups.unique():
            own = rewards[groups == group]
            if len(own) > 1:
                out[groups == group] = (own - own.mean()) / (own.std() + epsilon)
        return out
"""


def test_the_manifest_of_its_page_holds(tmp_path):
    pytest.importorskip("torch")
    text = (PAGES / "manifest.md").read_text(encoding="utf-8")
    (tmp_path / "shakedown.yaml").write_text(text.split("```yaml\n")[1].split("```")[0])
    (tmp_path / "adv.py").write_text(textwrap.dedent(ADVANTAGES))
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "shakedown.pytest_plugin", "shakedown.yaml"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "2 passed" in ran.stdout, ran.stdout


def test_the_manifest_with_classes_and_objects_holds(tmp_path):
    pytest.importorskip("torch")
    text = (PAGES / "manifest.md").read_text(encoding="utf-8")
    (tmp_path / "shakedown.yaml").write_text(text.split("```yaml\n")[2].split("```")[0])
    [(_, block)] = blocks("manifest.md")
    (tmp_path / "trainer.py").write_text(block)
    command = [os.environ["SHAKEDOWN_BIN"], "check"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout, ran.stdout


def test_the_batch_of_its_page_is_found_wrong_as_it_shows(tmp_path):
    pytest.importorskip("safetensors")
    torch = pytest.importorskip("torch")
    [(_, block)] = blocks("batches.md")
    given = {
        "rewards": torch.tensor([0.0, 1.0, 1.0, 0.0]),
        "groups": torch.tensor([0, 0, 1, 1]),
        "advantages": torch.tensor([-0.29, 0.29, 0.29, -0.29]),
    }
    exec(block.replace('"step-', f'"{tmp_path}/step-'), given)
    command = [os.environ["SHAKEDOWN_BIN"], "check-batch", "step-1200.safetensors"]
    command += ["--contract", "group-advantage"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    text = (PAGES / "batches.md").read_text(encoding="utf-8")
    assert text.split("```text\n")[1].split("```")[0] in ran.stdout, ran.stdout
    assert ran.returncode == 1
