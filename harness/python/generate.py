"""Writes the classes of the contracts, `shakedown/_contracts.py`, from `shakedown list --json`.

The command is that of $SHAKEDOWN_BIN, else the one on PATH; it prints what the macros of the
contracts declare. `--check` writes nothing, and fails with the difference if there is one.
"""

from __future__ import annotations

import argparse
import difflib
import json
import keyword
import os
import subprocess
import sys
import textwrap
from pathlib import Path

FILE = Path(__file__).parent / "shakedown" / "_contracts.py"
WIDTH = 100

HEAD = '''"""The contracts, each a class that takes its options. Written by `generate.py`."""

from __future__ import annotations

from typing import Literal, Mapping, Sequence, overload

from ._contract import Contract
from ._errors import UsageError, brief
from ._settings import unknown

'''

TAIL = '''

@overload
def contract(name: str) -> Contract: ...


@brief
def contract(name: str, **options: object) -> Contract:
    """The contract of a name, with options: `contract("policy-loss", clip_low=0.2)`."""
    return named(name)(**options)


def named(name: str) -> type[Contract]:
    """The class of a contract."""
    if name not in BY_ID:
        raise UsageError(unknown("contract", name, list(BY_ID)))
    return BY_ID[name]
'''


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="say what is different, and fail")
    parser.add_argument("--output", type=Path, default=FILE, help="another file to write")
    arguments = parser.parse_args()
    text = module(catalogue())
    if not arguments.check:
        arguments.output.write_text(text, encoding="utf-8")
        return 0
    kept = arguments.output.read_text(encoding="utf-8") if arguments.output.exists() else ""
    names = [str(arguments.output), "what the command gives"]
    lines = difflib.unified_diff(kept.splitlines(), text.splitlines(), *names, lineterm="")
    difference = "\n".join(lines)
    if difference:
        print(difference)
    return 1 if difference else 0


def catalogue() -> list[dict]:
    """The contracts, as the command knows them."""
    command = os.environ.get("SHAKEDOWN_BIN") or "shakedown"
    try:
        ran = subprocess.run([command, "list", "--json"], stdout=subprocess.PIPE, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"error: {error}; set SHAKEDOWN_BIN to the command") from None
    found = json.loads(ran.stdout)
    if found["schema"] != "shakedown/catalogue/1":
        raise SystemExit(f"error: expected a shakedown/catalogue/1, found {found['schema']}")
    return found["contracts"]


def module(contracts: list[dict]) -> str:
    """The text of the module."""
    names = [class_name(contract["id"]) for contract in contracts]
    listed = "".join(f'    "{name}",\n' for name in [*names, "BY_ID", "contract"])
    by_id = "".join(f'    "{one["id"]}": {name},\n' for one, name in zip(contracts, names))
    classes = "".join("\n\n" + contract_class(contract) for contract in contracts)
    overloads = "".join("\n\n" + overload(contract) for contract in contracts)
    return (
        f"{HEAD}__all__ = [\n{listed}]\n{classes}\n\n"
        f"BY_ID: dict[str, type[Contract]] = {{\n{by_id}}}\n{overloads}{TAIL}"
    )


def class_name(id: str) -> str:
    """`PolicyLoss` for `policy-loss`: the name of the contract in Rust."""
    return "".join(part.capitalize() for part in id.split("-"))


def contract_class(contract: dict) -> str:
    """The class of a contract."""
    parameters = "".join(map(parameter, contract["options"]))
    inputs = literal({"items": {}}, [field["name"] for field in contract["inputs"]])
    return (
        f"class {class_name(contract['id'])}(Contract):\n"
        f'    """{docstring(contract)}    """\n\n'
        f'    id = "{contract["id"]}"\n    inputs = {inputs}\n\n'
        f"    def __init__(\n        self,\n        *,\n{parameters}    ) -> None: ...\n"
    )


def overload(contract: dict) -> str:
    """What type checkers know of `contract` with the id of a contract."""
    parameters = "".join(parameter(option, is_of_overload=True) for option in contract["options"])
    return (
        f'@overload\ndef contract(\n    name: Literal["{contract["id"]}"],\n    *,\n'
        f"{textwrap.indent(textwrap.dedent(parameters), '    ')}"
        f") -> {class_name(contract['id'])}: ...\n"
    )


# ---- Documentation.


def docstring(contract: dict) -> str:
    """What the contract is, then its inputs, outputs and options, for `help()` and editors."""
    first, _, rest = contract["documentation"].partition("\n")
    parts = [first, *filter(None, [textwrap.indent(rest.strip(), "    ")])]
    for title, key in [("Inputs", "inputs"), ("Outputs", "outputs")]:
        fields = [entry(f"{field['name']}: {shape(field)}", field) for field in contract[key]]
        parts.append("\n".join([fill(f"{title}. {contract['shapes'][key]}", 4), *fields]))
    options = [entry(f"{option['name']}:", in_python(option)) for option in contract["options"]]
    parts.append("\n".join(["    Options.", *options]))
    return "\n\n".join(parts).replace("\\", "\\\\").replace('"""', '\\"""') + "\n"


def fill(text: str, indent: int) -> str:
    """The text in lines that are not too long."""
    by = " " * indent
    wrapper = textwrap.TextWrapper(WIDTH, initial_indent=by, subsequent_indent=by)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.fill(text)


def entry(head: str, described: dict) -> str:
    """One of a list, with its meaning below it."""
    return f"        {head}\n" + fill(described["meaning"], 12)


def shape(field: dict) -> str:
    """The kind of a field and its dimensions: `float [N, T]`."""
    dimensions = field["dimensions"]
    if field["kind"] == "list":
        items = "; ".join(f"{item['name']}: {shape(item)}" for item in field["items"])
        text = f"list of ({items})"
    elif dimensions is None and field["ndim"] is None:
        text = f"{field['kind']}, any number of dimensions"
    elif dimensions is None:
        text = f"{field['kind']}, {field['ndim']} dimensions"
    else:
        text = field["kind"] + (f" [{', '.join(dimensions)}]" if dimensions else "")
    return text + (", optional" if field["optional"] else "")


def in_python(option: dict) -> dict:
    """The option with the words that YAML has for constants as Python has them."""
    meaning = option["meaning"]
    for yaml, python in [("null", "None"), ("true", "True"), ("false", "False")]:
        meaning = meaning.replace(f"`{yaml}`", f"`{python}`")
    return {**option, "meaning": meaning}


# ---- Signatures.


def parameter(option: dict, is_of_overload: bool = False) -> str:
    """An option as a parameter that is given by its name."""
    name, schema = option["name"], option["schema"]
    assert name.isidentifier() and not keyword.iskeyword(name), name
    type, default = annotation(schema), literal(schema, option["default"])
    if is_of_overload:
        default = "..."
    line = f"        {name}: {type} = {default},\n"
    if len(line) <= WIDTH + 1:
        return line
    # What is too long is a list of names, or a table.
    if "oneOf" in schema:
        type = "Literal[\n" + inside(type[len("Literal[") : -1].split(", ")) + "]"
    else:
        default = "{\n" + inside(default[1:-1].split(", ")) + "}"
    return f"        {name}: {type} = {default},\n"


def inside(items: list[str]) -> str:
    return "".join(f"            {item},\n" for item in items) + "        "


def annotation(schema: dict) -> str:
    """The type that a schema says."""
    if "anyOf" in schema:
        return " | ".join(annotation(one) for one in schema["anyOf"])
    if "oneOf" in schema:
        return f"Literal[{', '.join(json.dumps(one['const']) for one in schema['oneOf'])}]"
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " | ".join(of_kind(kind, schema) for kind in kinds)


def of_kind(kind: str, schema: dict) -> str:
    if kind == "array":
        return f"Sequence[{annotation(schema['items'])}]"
    if kind == "object":
        return f"Mapping[int, {annotation(schema['additionalProperties'])}]"
    simple = {"number": "float", "integer": "int", "boolean": "bool", "string": "str"}
    return {**simple, "null": "None"}[kind]


def literal(schema: dict, value: object) -> str:
    """A default as Python writes it; lists as tuples, which nobody can change."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        items = [literal(schema["items"], item) for item in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(value, dict):
        of = schema["additionalProperties"]
        return "{" + ", ".join(f"{int(key)}: {literal(of, value[key])}" for key in value) + "}"
    return repr(value)


if __name__ == "__main__":
    sys.exit(main())
