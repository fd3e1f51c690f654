"""What differs between Python 3.11.2 and later versions is not relied on: see docs/platforms.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for part in ("backend", "jupyter_pai") for path in (ROOT / part).rglob("*.py"))
UNPACKING = {"extract", "extractall", "unpack_archive"}


def faults(text: str) -> list[str]:
    """What a module does that not all versions do alike, with its line."""
    return [f"line {node.lineno}: {words}" for node, words in _faults(ast.parse(text))]


def _faults(module: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in UNPACKING:
                yield node, f"{name}() has a filter only since 3.11.4 and uses one only since 3.14"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="wait_for")):
                yield node, "wait_for() may lose a cancellation before 3.12 (gh-86296): use asyncio.timeout()"
            case ast.Try():
                for call in _timeouts(_cleanup(node)):
                    yield (
                        call,
                        "of a cancelled task, asyncio.timeout() raises no TimeoutError before 3.11.3 (gh-102780)",
                    )
            case ast.FunctionDef(name="connection_made"):
                for call in _calls(node.body, "pause_reading"):
                    yield call, "asyncio ignores pause_reading() within connection_made() before 3.11.4 (gh-103607)"


def _cleanup(node: ast.Try) -> list[ast.stmt]:
    """What runs when the task has been cancelled: ``finally``, and handlers of CancelledError."""
    caught = [(ast.unparse(each.type) if each.type else "BaseException", each.body) for each in node.handlers]
    handlers = [body for names, body in caught if "CancelledError" in names or "BaseException" in names]
    return [statement for body in (node.finalbody, *handlers) for statement in body]


def _timeouts(body: list[ast.stmt]) -> Iterator[ast.Call]:
    for name in ("timeout", "timeout_at"):
        yield from (call for call in _calls(body, name) if ast.unparse(call.func) == f"asyncio.{name}")


def _calls(body: list[ast.stmt], name: str) -> Iterator[ast.Call]:
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Call(func=ast.Attribute(attr=found)) if found == name:
                    yield node


def test_no_module_relies_on_what_differs() -> None:
    found = {str(path.relative_to(ROOT)): faults(path.read_text("utf-8")) for path in SOURCES}
    assert len(found) > 300
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text",
    [
        "archive.extractall(out, filter='data')",
        "shutil.unpack_archive(file, out)",
        "async def f():\n    await asyncio.wait_for(x, 1)",
        "async def f():\n    try:\n        pass\n    finally:\n"
        "        async with asyncio.timeout(1):\n            pass",
        "async def f():\n    try:\n        pass\n    except asyncio.CancelledError:\n"
        "        async with asyncio.timeout_at(1):\n            pass",
        "class A:\n    def connection_made(self, transport):\n        transport.pause_reading()",
    ],
)
def test_each_of_them_is_found(text: str) -> None:
    assert len(faults(text)) == 1


def test_what_is_alike_everywhere_is_no_fault() -> None:
    assert not faults(
        "async def f():\n    try:\n        async with asyncio.timeout(1):\n            pass\n    finally:\n        g()"
    )
    assert not faults("class A:\n    def connection_made(self, t):\n        loop.call_soon(t.pause_reading)")
