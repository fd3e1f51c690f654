"""The English texts of the command line, magics and notebook views, read from the sources and the table of verbs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from jupyter_pai import help_text
from jupyter_pai.commands import simulated, usage
from jupyter_pai.commands.cells import CELL
from jupyter_pai.magics import HELP, IN_NOTEBOOKS
from jupyter_pai.verbs import GROUPS, VERBS
from jupyter_pai.wire_types import Phase, State

ROOT = Path(__file__).parents[2] / "jupyter_pai"
MARKS = ("tr", "Text")
ERRORS = (
    "ClientError",
    "InvalidDocument",
    "NotFound",
    "NameTaken",
    "Denied",
    "BackendAway",
    "BackendStartFailed",
)
SAID = ("print", "progress", "say", "agreed", "getpass", "ArgumentTypeError", "UsageError", "CellFailure", "JobFailed")
"""Calls whose first arguments a user reads at once."""
OTHERS = ("assistants", "kernels")
"""Packages that speak to programs: assistants of language models, and the logs of Jupyter."""
OWN_WORDS: tuple[str, ...] = ()
"""Modules whose texts the tests of errors hold complete."""


def sources() -> list[Path]:
    """The modules whose texts a user of a shell or a notebook reads."""
    return [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] not in OTHERS and path.name not in OWN_WORDS
    ]


def called(node: ast.AST) -> str:
    """The last word of what a call calls; empty for another node."""
    if not isinstance(node, ast.Call):
        return ""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def literals(node: ast.AST) -> Iterator[str]:
    """The strings that an expression may be, as far as they stand in it."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from literals(body)
            yield from literals(orelse)
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from literals(part)
        case ast.Starred(value=value):
            yield from literals(value)


def shown(call: ast.Call) -> Iterator[ast.AST]:
    """The arguments of a call that a user reads."""
    name = called(call)
    if name in ERRORS:
        yield from call.args[:1]
        yield from (each.value for each in call.keywords if each.arg == "hint")
    elif name == "result" and len(call.args) == 2:
        yield call.args[1]
    elif name in SAID:
        yield from call.args[:2]


def texts_of(source: str) -> Iterator[str]:
    """The texts that a source has translated, now or where they are shown."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = called(node)
        if name in (*MARKS, "table"):
            yield from literals(node.args[0])
        elif name in ERRORS:
            for part in shown(node):
                yield from literals(part)


def words() -> Iterator[str]:
    """Texts that are translated by a variable: of the verbs, of argparse, states, and heads of tables."""
    for verb in [*VERBS.values(), *IN_NOTEBOOKS.values(), CELL]:
        yield from (verb.summary, verb.details, *(argument.help for argument in verb.arguments))
    yield from (*GROUPS.values(), HELP)
    yield from (*help_text.COMPLAINTS, "positional arguments", "options", "show this help message and exit")
    states = get_args(State)
    yield from (*states, *(state.lower() for state in states if state in ("SUCCEEDED", "FAILED", "STOPPED")))
    yield from (*get_args(Phase), "recorded", "in force", "past", "skipped")
    yield from (*simulated.HEAD, *simulated.LOSSES, *(name for name, _ in simulated._WHOLE))
    yield from (head for head, _ in usage.COLUMNS.values())
    yield from ("CONTEXT", "SHARED WITH", "GPU HOURS", "CPU HOURS", "RUNS", "COST")
    yield from ("task", "state", "node", "ports", "exit")


def texts() -> set[str]:
    """All of them."""
    found = {text for path in sources() for text in texts_of(path.read_text(encoding="utf-8"))}
    return {text for text in found | set(words()) if any(char.isalpha() for char in text)}


def of_backend() -> set[str]:
    """The texts that a backend sends with their templates, as ``pai_backend.model.wording`` has them."""
    backend = ROOT.parent / "backend" / "pai_backend"
    found: set[str] = set()
    for path in backend.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "Text(" in source:
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Call) and node.args and called(node) == "Text":
                    found.update(literals(node.args[0]))
    return found
