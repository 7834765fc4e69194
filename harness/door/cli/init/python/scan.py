"""Lists the functions of a Python repository as JSON, without importing any of it."""

import ast
import json
import os
import sys

SKIPPED_FOLDERS = {"build", "dist", "node_modules", "site-packages", "test", "tests"}
SKIPPED_FILES = {"conftest.py", "setup.py", "shakedown_adapters.py"}
LARGEST = 1_000_000  # bytes; what is larger was written by a program


def main():
    found, unread = [], []
    for path in sources("."):
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            unread.append(f"{path}: {error}")
            continue
        arrays = array_library(tree)
        where = located(path)
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.append({**where, **function(node), "arrays": arrays})
    json.dump({"functions": found, "unread": unread}, sys.stdout)


def sources(root):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not skipped(folder, name))
        for name in sorted(files):
            path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
            test = name.startswith("test_") or name.endswith("_test.py")
            if name.endswith(".py") and not test and name not in SKIPPED_FILES:
                if os.path.getsize(path) <= LARGEST:
                    yield path


def skipped(folder, name):
    virtual = os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
    return virtual or name.startswith((".", "__")) or name in SKIPPED_FOLDERS


def located(path):
    """How the file is imported: by module from `root`, where its name allows that."""
    folder, file = os.path.split(path)
    parts = [file[: -len(".py")]]
    package = False
    while os.path.exists(os.path.join(folder, "__init__.py")) and folder:
        package = True
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    if package and parts[-1] == "__init__":
        parts.pop()
    importable = all(part.isidentifier() for part in parts)
    if parts[0] in getattr(sys, "stdlib_module_names", ()):
        importable = False  # Python's own module would be found first
    module = ".".join(parts) if importable else None
    return {"file": path, "module": module, "root": folder or ".", "package": package}


def array_library(tree):
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.add(node.module.split(".")[0])
    return next((name for name in ("torch", "numpy") if name in imported), "list")


def function(node):
    arguments = node.args
    named = arguments.posonlyargs + arguments.args
    without = len(named) - len(arguments.defaults)
    defaults = [None] * without + arguments.defaults + arguments.kw_defaults
    parameters = []
    for argument, default in zip(named + arguments.kwonlyargs, defaults):
        parameters.append(
            {"name": argument.arg, "required": default is None, "default": number(default)}
        )
    constants = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return {
        "name": node.name,
        "line": node.lineno,
        "parameters": parameters,
        "others": arguments.kwarg is not None,
        "by_keyword": not arguments.posonlyargs,
        "waits": isinstance(node, ast.AsyncFunctionDef),
        "chat": "content" in constants,
    }


def number(node):
    """The number that a default is, where it is one."""
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if type(value) in (int, float) and abs(value) < 1e300 else None


main()
