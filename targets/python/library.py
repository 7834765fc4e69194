"""How an adapter reaches a function of an installed library that cannot simply be called.

Some arithmetic stands in the middle of a long method, and some packages import a GPU or a cluster
before anything else. Nothing is copied: what runs are the library's own files.
"""

import ast
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import textwrap
import types
from unittest.mock import MagicMock


def statements(method, after, before, gives):
    """The statements of `method` after its first assignment to `after`, up to one to `before`.

    Both stand in one block, which may be the body of a loop; without `before`, up to its end. They
    are compiled from the installed file, so a traceback shows its lines. The result is a function
    of the names that they read, and gives the values of `gives` (one name, or a tuple of names).
    """
    method = inspect.unwrap(method)
    lines, start = inspect.getsourcelines(method)
    tree = ast.increment_lineno(ast.parse(textwrap.dedent("".join(lines))), start - 1)
    chosen = next(filter(None, (between(block, after, before) for block in blocks(tree))), None)
    if chosen is None:
        what = f"{method.__module__}.{method.__qualname__}"
        raise ImportError(f"{what} no longer assigns `{after}`, and `{before}` after it")
    code = compile(ast.Module(chosen, type_ignores=[]), inspect.getsourcefile(method), "exec")

    def run(**values):
        # One dict for both scopes: a comprehension in these lines must see their variables.
        scope = {**method.__globals__, **values}
        exec(code, scope)
        return scope[gives] if isinstance(gives, str) else tuple(scope[name] for name in gives)

    return run


def lone(module, name, **names):
    """The function `name` of a module (`Class.method` too) without running what the module imports.

    It finds nothing but the builtins and `names`, and is compiled from the installed file.
    """
    package, _, file = module.partition(".")
    [folder] = importlib.machinery.PathFinder.find_spec(package).submodule_search_locations
    path = os.path.join(folder, *file.split(".")) + ".py"
    with open(path, encoding="utf-8") as file:
        nodes = ast.parse(file.read()).body
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.ClassDef)
        found = [node for node in nodes if isinstance(node, kinds) and node.name == part]
        if not found:
            raise ImportError(f"{module} no longer has `{name}`")
        [node] = found
        nodes = node.body
    node.decorator_list = []
    node.returns = None  # the names of types are not there
    for argument in [*node.args.args, *node.args.kwonlyargs]:
        argument.annotation = None
    scope = dict(names)
    exec(compile(ast.Module([node], type_ignores=[]), path, "exec"), scope)
    return scope[node.name]


def blocks(tree):
    """Every list of statements of a syntax tree, the outer ones first."""
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            if isinstance(block := getattr(node, field, None), list):
                yield block


def between(block, after, before):
    """The statements of a block between two assignments; empty where it has not both."""
    names = [assigned(statement) for statement in block]
    start = next((i + 1 for i, n in enumerate(names) if after in n), len(names))
    end = len(names) if before is None else start
    while end < len(names) and before not in names[end]:
        end += 1
    return block[start:end] if before is None or end < len(names) else []


def assigned(statement):
    """The names that a statement assigns, also as parts of a tuple."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {
        node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
    }


def using(function, **names):
    """`function` with other values for some of the names that it looks up in its module."""
    function = inspect.unwrap(function)
    scope = {**function.__globals__, **names}
    new = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__)
    new.__kwdefaults__ = function.__kwdefaults__
    return new


def without_init(*packages):
    """Makes packages importable without running their `__init__`, the outer ones first.

    An `__init__` imports the whole of a package, GPU kernels and all; one of its modules may need
    nothing of that.
    """
    for name in packages:
        parent, _, child = name.rpartition(".")
        if parent:
            folders = [os.path.join(folder, child) for folder in sys.modules[parent].__path__]
        else:
            spec = importlib.util.find_spec(name)
            if spec is None:
                raise ModuleNotFoundError(f"No module named '{name}'", name=name)
            folders = list(spec.submodule_search_locations)
        module = types.ModuleType(name)
        module.__path__ = folders
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module
        if parent:
            setattr(sys.modules[parent], child, module)


def stand_in(*modules):
    """Puts empty stand-ins for modules that an import names and the functions called never use."""
    for name in modules:
        module = MagicMock(name=name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules[name] = module
