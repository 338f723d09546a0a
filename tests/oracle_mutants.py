"""The mutants of the oracle, spec/l3_decode.py: its text with one small change each. For oracle_mutation.py.

Changed are comparisons, operators, numbers, conditions, `min` and `max`, and statements are left out. Not changed are
messages and the offsets in them, the command line, reading files and writing images: they do not decide about bytes.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")), ast.LtE: ("<=", ("<", ">")), ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")), ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)), ast.IsNot: ("is not", ("is",)), ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "|"), ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"), ast.Pow: ("**", "*"),
}
CALLS = {"min": "max", "max": "min", "abs": "int"}

# Messages, the command line, files and images.
NOT_CHANGED = {
    "Refusal", "Violation", "MissingModel", "OverLimit", "Image.values", "pam", "read_file", "write_to", "write_file",
    "convert", "batch", "main",
}
MESSAGES = {"Violation", "MissingModel", "OverLimit"}
OFFSETS = {"AT_DIGEST", "at_size", "at_name", "reason"}  # what only messages say
# Of calls: the argument that is the offset of a message.
OFFSET_ARGUMENTS = {"require": 1, "require_zero": 1, "Section": 2, "Tile": 4, "Part": 1, "ListPart": 1,
                    "read_model": 3, "require_class_tables": 2}
TYPES = {"AnyModel", "Models", "Place", "Seen", "TUPLE_TYPES"}


@dataclass(frozen=True)
class Mutant:
    function: str  # or class, or what a constant is called
    before: str  # the lines that change, on one line
    after: str
    line: int  # of the statement that changes
    reached: bool  # whether that statement has a probe, so that one knows which vectors reach it
    block: int  # the statement of the module in which it is
    start: int  # of the text that is replaced
    end: int
    text: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Without the numbers of violations, which change more often than what decides."""
        before, after = (re.sub(r'(?<=")[VF]\d+: ', "", text) for text in (self.before, self.after))
        return self.function, before, after


class Finder:
    """Finds all mutants of a source."""

    def __init__(self, source: str) -> None:
        assert source.isascii()  # so columns of bytes are columns of characters
        self.source = source
        self.tree = ast.parse(source)
        self.lines = [0, *(match.end() for match in re.finditer("\n", source))]
        self.found: list[Mutant] = []
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.function = ""
        self.depth = 0  # of functions
        self.line = 0
        self.block = 0
        self.bound: Counter[str] = Counter()  # how often the function binds each name
        for block, statement in enumerate(self.tree.body):
            self.block = block
            target = getattr(statement, "target", None) or getattr(statement, "targets", [None])[0]
            self.function = self.text(target) if target is not None else ""
            self.statement(statement)
            self.function = ""

    def start(self, node: ast.AST) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.AST) -> int:
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def add(self, start: int, end: int, text: str) -> None:
        begin = self.source.rfind("\n", 0, start) + 1
        stop = self.source.find("\n", end)
        before = " ".join(self.source[begin:stop].split())
        after = " ".join((self.source[begin:start] + text + self.source[end:stop]).split())
        self.seen[self.function, before, after] += 1
        count = self.seen[self.function, before, after]
        if count > 1:
            after += f"  # {count}"
        self.found.append(Mutant(self.function, before, after, self.line, self.depth > 0, self.block, start, end, text))

    def replace(self, node: ast.AST, text: str) -> None:
        self.add(self.start(node), self.end(node), text)

    def between(self, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        at = self.source.index(old, self.end(left), self.start(right))
        self.add(at, at + len(old), new)

    def text(self, node: ast.AST) -> str:
        return self.source[self.start(node) : self.end(node)]

    # Statements

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.definition(node)
            return
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert) or self.is_text(node):
            return
        self.line = node.lineno
        if self.depth > 0 and self.can_be_left_out(node):
            self.replace(node, "pass")
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and child is not getattr(node, "annotation", None):
                is_test = isinstance(node, ast.If | ast.While) and child is node.test
                self.expression(child, is_test)
        for name in ("body", "handlers", "orelse", "finalbody"):
            for child in getattr(node, name, []):
                if isinstance(child, ast.ExceptHandler):
                    for inner in child.body:
                        self.statement(inner)
                else:
                    self.statement(child)

    def is_text(self, node: ast.stmt) -> bool:
        """A docstring, what only messages or types use, or the start of the program."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return True
        if isinstance(node, ast.If) and self.text(node.test).startswith("__name__"):
            return True
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        return bool(names & (TYPES | OFFSETS))

    def definition(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        outer, line, bound = self.function, self.line, self.bound
        self.function = f"{outer}.{node.name}".lstrip(".")
        if self.function not in NOT_CHANGED:
            if isinstance(node, ast.FunctionDef):
                self.line = node.lineno
                for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d)):
                    self.expression(default)
                stored = (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
                self.bound = Counter([*stored, *(a.arg for a in node.args.args)])
                self.depth += 1
            for child in node.body:
                self.statement(child)
            if isinstance(node, ast.FunctionDef):
                self.depth -= 1
        self.function, self.line, self.bound = outer, line, bound

    def can_be_left_out(self, node: ast.stmt) -> bool:
        """Whether the function without this statement runs: no name that it uses stays without a value."""
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Call)
        if isinstance(node, ast.AugAssign | ast.Raise | ast.Continue):
            return True
        if isinstance(node, ast.Assign):
            names = [n.id for t in node.targets for n in ast.walk(t)
                     if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
            return all(self.bound[name] > 1 for name in names)
        return False

    # Expressions

    def expression(self, node: ast.AST, is_test: bool = False) -> None:
        if isinstance(node, ast.JoinedStr):
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MESSAGES:
            return
        if is_test and not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
            self.replace(node, f"not ({self.text(node)})")
        if isinstance(node, ast.Compare):
            self.comparison(node)
        elif isinstance(node, ast.BoolOp):
            old, new, neutral = ("and", "or", "True") if isinstance(node.op, ast.And) else ("or", "and", "False")
            for left, right in zip(node.values, node.values[1:], strict=False):
                self.between(left, right, old, new)
            for value in node.values:
                self.replace(value, neutral)
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            if not isinstance(node.left, ast.List | ast.Tuple):
                self.between(node.left, node.right, *OPERATORS[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            self.replace(node, f"({self.text(node.operand)})")
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            self.number(node)
        elif isinstance(node, ast.Name) and node.id in CALLS:
            self.replace(node, CALLS[node.id])
        for child, tests in self.children(node):
            self.expression(child, tests)

    def comparison(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right, operator in zip(operands, operands[1:], node.ops, strict=False):
            old, new = COMPARISONS[type(operator)]
            for each in new:
                self.between(left, right, old, each)

    def number(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.replace(node, str(not node.value))
            return
        assert isinstance(node.value, int)
        show = hex if self.text(node).startswith("0x") else str
        for value in (node.value - 1, node.value + 1):
            self.replace(node, show(value))

    def children(self, node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
        """Those that decide about bytes, and whether each is a condition."""
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            yield node.func, False
            for i, argument in enumerate(node.args):
                if not (isinstance(node.func, ast.Name) and OFFSET_ARGUMENTS.get(name) == i):
                    yield argument, name == "require" and i == 0
            for keyword in node.keywords:
                if keyword.arg != "strict":  # of zip: the oracle checks itself
                    yield keyword.value, False
        elif isinstance(node, ast.comprehension):
            yield node.iter, False
            for test in node.ifs:
                yield test, True
        elif isinstance(node, ast.Lambda):
            yield node.body, False
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr | ast.comprehension | ast.keyword):
                    tests = isinstance(node, ast.BoolOp) or (isinstance(node, ast.IfExp) and child is node.test)
                    yield child, tests


class Probes(ast.NodeTransformer):
    """Puts `_REACHED[line] = 1` before each statement of functions."""

    def __init__(self) -> None:
        self.depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self.depth > 0:
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    probes = [ast.parse(f"_REACHED[{statement.lineno}] = 1").body[0] for statement in block]
                    setattr(node, name, [each for pair in zip(probes, block, strict=True) for each in pair])
        return node


def with_probes(source: str) -> ast.Module:
    tree: ast.Module = Probes().visit(ast.parse(source))
    return ast.fix_missing_locations(tree)


def used_at_start(tree: ast.Module) -> set[str]:
    """The names that the module uses when it begins: if what they mean changes, it must begin again."""
    return {node.id for statement in tree.body if not isinstance(statement, ast.FunctionDef | ast.ClassDef)
            for node in ast.walk(statement) if isinstance(node, ast.Name)}
