"""Prints what a training script gives to TRL, as JSON. The script comes from the standard input; it
is parsed, and nothing of it is run."""

import ast
import json
import math
import sys

CONFIGS = ["GRPOConfig", "RLOOConfig", "PPOConfig", "DPOConfig", "KTOConfig"]
SUPERVISED = ["SFTConfig", "GKDConfig", "RewardConfig", "PRMConfig"]
OF_TRAINER = ["reward_funcs", "peft_config", "train_dataset", "eval_dataset", "model", "ref_model"]
LONGEST = 10_000  # characters of a text that is put together
LARGEST = 2**63


class Unread(Exception):
    """What something comes to cannot be told without running it."""


def main():
    try:
        tree = ast.parse(sys.stdin.buffer.read())
        json.dump(Script(tree).found(), sys.stdout)
    except SyntaxError as error:
        fail(error.msg or "no Python", error.lineno, error.offset)
    except (ValueError, RecursionError, MemoryError) as error:
        fail(str(error) or type(error).__name__, None, None)


def fail(message, line, column):
    json.dump({"error": message, "line": line or 1, "column": max(column or 1, 1)}, sys.stdout)


class Script:
    def __init__(self, tree):
        self.tree = tree
        self.nodes = list(ast.walk(tree))
        self.aliases = self.imported_names()
        self.modules = self.imported_modules()
        self.bound = self.bindings()
        self.depth = 0

    def imported_names(self):
        """What names stand for others: `from trl import GRPOConfig as Config`."""
        imports = [node for node in self.nodes if isinstance(node, ast.ImportFrom)]
        return {one.asname: one.name for node in imports for one in node.names if one.asname}

    def imported_modules(self):
        """Which module each imported name comes from, by its first name; a relative one is "."."""
        modules = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for one in node.names:
                    first = one.name.split(".")[0]
                    modules[one.asname or first] = first
            elif isinstance(node, ast.ImportFrom):
                first = "." if node.level else node.module.split(".")[0]
                modules.update((one.asname or one.name, first) for one in node.names)
        return modules

    def module(self, call):
        """What a call's function comes from: a module, "" for the script itself; None where the
        script does not say."""
        node = call.func
        while isinstance(node, ast.Attribute):
            node = node.value
        name = node.id if isinstance(node, ast.Name) else None
        if name in self.modules:
            return self.modules[name]
        if isinstance(node, ast.Name) and any(
            isinstance(one, ast.ClassDef) and one.name == name for one in self.nodes
        ):
            return ""
        return self.modules.get("*")

    def bindings(self):
        """How often each name is bound, anywhere; and the value where that is an assignment."""
        bound = {}

        def bind(name, value=None):
            count, _ = bound.get(name, (0, None))
            bound[name] = (count + 1, value)

        plain = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                plain[id(node.targets[0])] = node.value
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                plain[id(node.target)] = node.value
        for node in self.nodes:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                bind(node.id, plain.get(id(node)))
            elif isinstance(node, ast.arg):
                bind(node.arg)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                bind(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for one in node.names:
                    bind((one.asname or one.name).split(".")[0])
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                for name in node.names:
                    bind(name)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                bind(node.name)
        return bound

    def found(self):
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        calls.sort(key=lambda node: (node.lineno, node.col_offset))
        config = self.first(calls, CONFIGS) or self.first(calls, SUPERVISED)
        fields, whole = [], True
        if config is not None:
            fields, whole = self.arguments(config)
            later, untouched = self.set_later(config)
            fields, whole = fields + later, whole and untouched
        trainer = next((one for one in calls if self.name(one).endswith("Trainer")), None)
        made = config or trainer
        return {
            "call": config and self.name(config),
            "trainer": trainer and self.name(trainer),
            "module": made and self.module(made),
            "uses_unsloth": "unsloth" in self.modules.values(),
            "fields": fields + self.of_trainer(trainer, calls),
            "is_whole": whole,
        }

    def first(self, calls, names):
        return next((call for call in calls if self.name(call) in names), None)

    def name(self, call):
        """The last name of what is called."""
        function = call.func
        if isinstance(function, ast.Attribute):
            return function.attr
        name = function.id if isinstance(function, ast.Name) else ""
        return self.aliases.get(name, name)

    def field(self, name, node, read=None):
        try:
            value = (read or self.value)(node)
            return {"name": name, "line": node.lineno, "is_read": True, "value": plain(value)}
        except (Unread, ArithmeticError, TypeError, ValueError):
            return {"name": name, "line": node.lineno, "is_read": False, "value": None}

    def arguments(self, call):
        """The keywords of a call, and whether these are all."""
        fields, whole = [], len(call.args) <= 1
        if call.args and not isinstance(call.args[0], ast.Starred):
            fields.append(self.field("output_dir", call.args[0]))
        elif call.args:
            whole = False
        for keyword in call.keywords:
            if keyword.arg is not None:
                fields.append(self.field(keyword.arg, keyword.value))
                continue
            mapping = self.resolved(keyword.value)
            if not isinstance(mapping, ast.Dict):
                whole = False
                continue
            for key, value in zip(mapping.keys, mapping.values):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    fields.append(self.field(key.value, value))
                else:
                    whole = False
        return fields, whole

    def set_later(self, config):
        """What is assigned to attributes of the configuration, and whether nothing else is."""
        makes = [node for node in self.nodes if getattr(node, "value", None) is config]
        names = {one.id for node in makes for one in targets(node) if isinstance(one, ast.Name)}
        beside = set()
        for node in self.nodes:
            body = getattr(node, "body", None)
            if isinstance(body, list) and any(one in makes for one in body):
                beside |= {id(one) for one in body}
        fields, untouched = [], True
        for node in self.nodes:
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                for target in targets(node):
                    if not isinstance(target, ast.Attribute):
                        continue
                    if isinstance(target.value, ast.Name) and target.value.id in names:
                        certain = isinstance(node, ast.Assign) and id(node) in beside
                        read = None if certain else self.refuse
                        fields.append(self.field(target.attr, node.value, read))
            elif isinstance(node, ast.Call) and self.name(node) == "setattr" and node.args:
                one = node.args[0]
                untouched = untouched and not (isinstance(one, ast.Name) and one.id in names)
        fields.sort(key=lambda field: field["line"])
        return fields, untouched

    def refuse(self, node):
        raise Unread

    def of_trainer(self, call, calls):
        """The arguments of the trainer that tell something of the run."""
        fields = []
        readers = {"reward_funcs": self.functions, "peft_config": self.adapters}
        for keyword in call.keywords if call else []:
            if keyword.arg in OF_TRAINER:
                read = readers.get(keyword.arg, self.words)
                fields.append(self.field(keyword.arg, keyword.value, read))
        wrapped = next((one for one in calls if self.name(one) == "get_peft_model"), None)
        if wrapped:
            fields.append(self.field("peft_config", wrapped, lambda node: True))
        return fields

    def resolved(self, node):
        """The expression that a name stands for, if it is bound only once."""
        for _ in range(8):
            if not isinstance(node, ast.Name):
                break
            count, value = self.bound.get(node.id, (0, None))
            if count != 1 or value is None:
                break
            node = value
        return node

    def functions(self, node):
        """The names of reward functions."""
        node = self.resolved(node)
        if isinstance(node, (ast.List, ast.Tuple)):
            if any(isinstance(one, ast.Starred) for one in node.elts):
                raise Unread
            return [self.words(one) for one in node.elts]
        if isinstance(node, ast.Name) and self.bound.get(node.id, (0, 0)) == (1, None):
            return [node.id]
        if isinstance(node, (ast.Constant, ast.Lambda)):
            return [self.words(node)]
        raise Unread

    def adapters(self, node):
        """Whether adapters are trained."""
        node = self.resolved(node)
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        if isinstance(node, ast.Call) and self.name(node).endswith("Config"):
            return True
        raise Unread

    def words(self, node):
        """An expression as text; a constant as such."""
        if isinstance(node, ast.Constant):
            return node.value
        return ast.unparse(node)[:80]

    def value(self, node):
        self.depth += 1
        try:
            if self.depth > 50:
                raise Unread
            return self.value_inside(node)
        finally:
            self.depth -= 1

    def value_inside(self, node):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.constant(node.id)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.BinOp):
            return self.binary(node)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return [self.value(one) for one in node.elts]
        if isinstance(node, ast.Dict):
            items = zip(node.keys, node.values)
            return {str(self.value(key)): self.value(one) for key, one in items}
        if isinstance(node, ast.JoinedStr):
            return text("".join(self.piece(one) for one in node.values))
        if isinstance(node, ast.Call):
            return self.called(node)
        raise Unread

    def constant(self, name):
        """A name that the module itself binds, once."""
        count, value = self.bound.get(name, (0, None))
        at_top = any(getattr(node, "value", None) is value for node in self.tree.body)
        if count != 1 or value is None or not at_top:
            raise Unread
        return self.value(value)

    def unary(self, node):
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        if not is_number(value):
            raise Unread
        if isinstance(node.op, ast.USub):
            return -value
        if isinstance(node.op, ast.UAdd):
            return +value
        raise Unread

    def binary(self, node):
        a, b, operator = self.value(node.left), self.value(node.right), node.op
        if isinstance(operator, ast.Add) and type(a) is type(b) and isinstance(a, (str, list)):
            return text(a + b)
        if not is_number(a) or not is_number(b):
            raise Unread
        if isinstance(operator, ast.Pow):
            if abs(b) > 64:
                raise Unread
            return number(a**b)
        if isinstance(operator, ast.Add):
            return number(a + b)
        if isinstance(operator, ast.Sub):
            return number(a - b)
        if isinstance(operator, ast.Mult):
            return number(a * b)
        if isinstance(operator, ast.Div):
            return number(a / b)
        if isinstance(operator, ast.FloorDiv):
            return number(a // b)
        if isinstance(operator, ast.Mod):
            return number(a % b)
        raise Unread

    def piece(self, node):
        if isinstance(node, ast.Constant):
            return str(node.value)
        if node.format_spec is not None or node.conversion != -1:
            raise Unread
        return str(self.value(node.value))

    def called(self, node):
        """Conversions, and variables of the environment that have a default."""
        name = ast.unparse(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else ""
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            raise Unread
        if name in ("os.environ.get", "os.getenv", "environ.get", "getenv") and len(node.args) == 2:
            return self.value(node.args[1])
        convert = {"int": int, "float": float, "str": str}.get(name)
        if convert is None or len(node.args) != 1 or name in self.bound:
            raise Unread
        value = self.value(node.args[0])
        if isinstance(value, (str, int, float)) and len(str(value)) < 100:
            return convert(value)
        raise Unread


def targets(node):
    """What an assignment assigns to."""
    return getattr(node, "targets", None) or [getattr(node, "target", None)]


def is_number(value):
    return isinstance(value, (int, float))


def number(value):
    """What is no number of 64 bits is none of a configuration."""
    if isinstance(value, complex) or abs(value) > LARGEST:
        raise Unread
    return value


def text(value):
    if len(value) > LONGEST:
        raise Unread
    return value


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):
        return number(value)
    raise Unread


main()
