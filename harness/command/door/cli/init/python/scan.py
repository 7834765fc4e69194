"""Lists the functions of a Python repository as JSON, without importing any of it."""

import ast
import json
import os
import re
import sys

SKIPPED_FOLDERS = {"build", "dist", "node_modules", "site-packages", "test", "tests"}
SKIPPED_FILES = {"conftest.py", "setup.py", "shakedown_adapters.py"}
TOOLS = ["pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"]
SETTINGS = ["pyproject.toml", "setup.cfg", "setup.py", "tox.ini"]
LARGEST = 1_000_000  # bytes; what is larger was written by a program


def main():
    found, lines, unread = [], [], []
    for path in sources("."):
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            unread.append(f"{path}: {error}")
            continue
        arrays = array_library(tree)
        where = located(path)
        lines.extend({"file": path, **one} for one in steps_of(tree))
        for node in tree.body:
            if is_component(node):
                found.append({**where, **function(node), "owner": None, "arrays": arrays})
            elif isinstance(node, ast.ClassDef):
                methods = [{**where, **one, "arrays": arrays} for one in methods_of(node)]
                found.extend(methods)
    scan = {"functions": found, "lines": lines, "unread": unread, "pytest": has_pytest()}
    json.dump(scan, sys.stdout)


def has_pytest():
    """Whether something in the folder speaks of pytest."""
    if any(os.path.isfile(name) for name in TOOLS):
        return True
    wanted = [name for name in sorted(os.listdir(".")) if name.startswith("requirements")]
    for name in [*SETTINGS, *wanted]:
        try:
            with open(name, encoding="utf-8") as file:
                if "pytest" in file.read():
                    return True
        except (OSError, ValueError):
            continue
    for folder in ("tests", "test"):
        for _, _, files in os.walk(folder):
            if any(one.startswith("test_") and one.endswith(".py") for one in files):
                return True
    return False


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


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Around a function they make something else of it.
OTHER = {"abstractmethod", "command", "fixture", "overload", "property", "setter", "task"}


def is_component(node):
    """Whether it is a function that gives something: no stub, no generator, no property."""
    if not isinstance(node, FUNCTIONS) or OTHER.intersection(decorators(node)):
        return False
    inside = list(own_nodes(node))
    gives = any(isinstance(one, ast.Return) and not is_none(one.value) for one in inside)
    return gives and not any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in inside)


def is_none(node):
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def own_nodes(node):
    """What is in a function, and in no function inside of it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            yield child
            yield from own_nodes(child)


def decorators(node):
    """The last words of its decorators."""
    for one in node.decorator_list:
        one = one.func if isinstance(one, ast.Call) else one
        yield one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")


def methods_of(node):
    """The methods of a class, with how an instance is made."""
    by_name = {one.name: one for one in node.body if isinstance(one, FUNCTIONS)}
    if "__init__" in by_name:
        made = function(by_name["__init__"])
        parameters = made["parameters"][1:]
    elif "dataclass" in decorators(node):
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
        parameters = [parameter(one.target.id, one.value) for one in fields]
    else:
        parameters = []
    for name, one in by_name.items():
        is_called = name in ("__call__", "forward")
        if not is_component(one) or (name.startswith("__") and not is_called):
            continue
        if name == "forward" and "__call__" in by_name:
            continue
        found = function(one)
        kinds = set(decorators(one))
        if "staticmethod" not in kinds:
            found["parameters"] = found["parameters"][1:]
        needs = not kinds.intersection(("staticmethod", "classmethod"))
        reads = reads_of(one) if needs else None
        owner = {"name": node.name, "parameters": parameters if needs else [], "reads": reads}
        yield {**found, "owner": {**owner, "is_made": needs, "is_called": is_called}}


def reads_of(method):
    """What a method reads of its instance; None where it does more with it than read."""
    own = method.args.args[0].arg if method.args.args else None
    reads, others = [], 0
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == own and isinstance(node.ctx, ast.Load):
                reads.append(node.attr)
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if called and isinstance(node.func.value, ast.Name) and node.func.value.id == own:
            return None
        if isinstance(node, ast.Name):
            others += (node.id == own) + (node.id == "super")
    return sorted(set(reads)) if others == len(reads) else None


def steps_of(tree):
    """The steps of a pipeline that functions take somewhere between their lines."""
    for node in tree.body:
        if isinstance(node, FUNCTIONS):
            yield from steps_in(node, node.name)
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, FUNCTIONS):
                    yield from steps_in(one, f"{node.name}.{one.name}")


# What an expression of each contract looks like, without spaces; and the rest of its function.
STEPS = {
    "group-advantage": (r"(reward|score|return|adv)\w*-.*/\(?.*std.*\+", ""),
    "token-log-probs": (
        r"(?<!selective_)log_softmax\(|-.*logsumexp\(",
        r"(?s)^(?!.*(student|teacher)).*gather\(",
    ),
    "policy-loss": (r"(clamp|clip)\(.*\b1(\.0)?-.*\b1(\.0)?\+", r"ratio|exp"),
    "kl-estimate": (r"exp\([^()]*\)-(1(\.0)?[+-]|\(?\w*(log|kl|diff)\w*\)?-1)", ""),
    "preference-loss": (r"-.*logsigmoid\(", "chosen"),
    "gae": (r"(delta|td_error)\w*\+.*(gamma|discount).*lam", ""),
    "token-entropy": (r"logsumexp\(.*-.*sum\(.*softmax|softmax.*-.*logsumexp", ""),
}
LONGEST = 1_000  # characters of an expression


def steps_in(function, path):
    seen, whole = set(), None
    for node in ast.walk(function):
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)):
            continue
        if node.value is None:
            continue
        text = ast.unparse(node.value).replace(" ", "")[:LONGEST]
        for contract, (pattern, beside) in STEPS.items():
            if contract in seen or not re.search(pattern, text):
                continue
            whole = whole or ast.unparse(function)
            if re.search(beside, whole):
                seen.add(contract)
                yield {"line": node.lineno, "path": path, "contract": contract}


def parameter(name, default):
    return {"name": name, "required": default is None, "default": number(default)}


def function(node):
    arguments = node.args
    named = arguments.posonlyargs + arguments.args
    without = len(named) - len(arguments.defaults)
    defaults = [None] * without + arguments.defaults + arguments.kw_defaults
    both = zip(named + arguments.kwonlyargs, defaults)
    constants = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return {
        "name": node.name,
        "line": node.lineno,
        "parameters": [parameter(argument.arg, default) for argument, default in both],
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
