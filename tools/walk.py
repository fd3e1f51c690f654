"""Follow one job from ``pai submit`` to its process, and print what its document passes: modules, and shapes.

A small job is submitted to an API, a controller and a local engine in this process, and its command holds a word that
is found nowhere else. A call of our code counts when the value of a parameter holds that word. The types of these
values are the shapes that the document is given. What the task's own process does (the shim, up to ``execve``) is read
from its imports. Files and lines of the rooms that decide are printed as well. ``--write`` writes docs/walk.md;
``--check`` fails when a module of that page is gone.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import dataclasses
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "walk.md"
WORD = "word-of-this-walk"
DOCUMENT = f"""\
protocolVersion: 2
name: walk
type: job
prerequisites:
  - {{type: dockerimage, name: image, uri: "ubuntu:22.04"}}
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 1}}
    commands: ["echo {WORD}"]
"""
SHIM = "pai_backend.engine.local.shim"
ROOMS = {"scheduling + controller": ("scheduling", "controller"), "simulation": ("simulation",)}
DEPTH = 6
"""How deep a value is searched for the word."""


class Walk:
    """What was seen so far, in the order in which it was seen first."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}
        self.shapes: dict[str, None] = {}

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        """Called by the interpreter for each call."""
        if event != "call":
            return
        module = frame.f_globals.get("__name__", "")
        if not isinstance(module, str) or not module.startswith(("pai_backend.", "jupyter_pai.")):
            return
        code = frame.f_code
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            value = frame.f_locals.get(name)
            if name not in ("self", "cls") and _holds(value, DEPTH):
                self.modules[module] = None
                shape = _shape(value)
                if shape:
                    self.shapes[shape] = None


def _holds(value: object, depth: int) -> bool:
    """Whether the word is in a value: text, or what collections and records are made of."""
    if isinstance(value, str):
        return WORD in value
    if isinstance(value, (bytes, bytearray)):
        return WORD.encode() in value
    if depth == 0 or value is None:
        return False
    if isinstance(value, dict):
        return any(_holds(each, depth - 1) for each in [*value.values()][:50])
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(_holds(each, depth - 1) for each in [*value][:50])
    return any(_holds(each, depth - 1) for each in _fields(value))


def _fields(value: object) -> Iterator[object]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield getattr(value, field.name, None)
    elif hasattr(type(value), "model_fields"):
        yield from getattr(value, "__dict__", {}).values()


def _shape(value: object) -> str:
    """The name of a type of ours; empty for text, collections, and types of libraries."""
    if isinstance(value, (list, tuple)) and value:
        return _shape(value[0])
    kind = type(value)
    return kind.__name__ if kind.__module__.startswith(("pai_backend", "jupyter_pai")) else ""


async def walked() -> Walk:
    """Submit the job and follow it until its process has run."""
    sys.path[:0] = [str(ROOT), str(ROOT / "backend")]
    from jupyter_pai.client import AsyncClient
    from jupyter_pai.endpoint import Endpoint
    from pai_backend.model.ids import JobUid
    from pai_backend.model.job import State
    from tests.support.api_site import ALICE, running_api
    from tests.support.real_cluster import at_work, until

    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        async with running_api(Path(folder)) as site, at_work(site.store, Path(folder) / "engine"):
            client = AsyncClient(Endpoint(site.url, ALICE))
            threading.setprofile(walk.profile)
            sys.setprofile(walk.profile)
            try:
                job = await client.submit(DOCUMENT.encode(), filename="walk.yaml")
                uid = JobUid(job["uid"])
                await until(site.store, uid, lambda now: any(task.started_at for task in now.tasks))
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
            done = await until(site.store, uid, lambda now: now.state.final)
            assert done.state is State.SUCCEEDED, done.state
            client.close()
    return walk


def shim_modules() -> list[str]:
    """What the task's own process is made of: the shim's modules, and those of ours that they import."""
    found: dict[str, None] = {}
    todo = [f"{SHIM}.boot", f"{SHIM}.begin"]
    while todo:
        module = todo.pop(0)
        path = ROOT / "backend" / Path(*module.split(".")).with_suffix(".py")
        if module in found or not path.is_file():
            continue
        found[module] = None
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pai_backend"):
                todo += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return list(found)


def sizes() -> Iterator[tuple[str, int, int]]:
    """Files and lines of the rooms that decide."""
    for title, rooms in ROOMS.items():
        files = [path for room in rooms for path in (ROOT / "backend/pai_backend" / room).rglob("*.py")]
        yield title, len(files), sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def page(walk: Walk) -> str:
    """The page as Markdown."""
    shim = shim_modules()
    every = list(dict.fromkeys([*walk.modules, *shim]))
    lines = [
        "# The walk of a job",
        "",
        "Written by `python tools/walk.py --write`, which submits one job and follows its document. A module is on the",
        "walk when a value that holds the job's command is given to one of its functions; a shape is the type of that",
        "value.",
        "",
        "| what | count |",
        "|---|---|",
        f"| modules from submit to execve | {len(every)} |",
        f"| of these in the task's own process | {len(shim)} |",
        f"| shapes | {len(walk.shapes)} |",
    ]
    rooms: dict[str, list[str]] = {}
    for module in every:
        parts = module.split(".")
        room = (
            "task's own process" if module in shim else ".".join(parts[:2]) if parts[0] == "pai_backend" else parts[0]
        )
        rooms.setdefault(room, []).append(module)
    lines += ["", "## Modules, by room", ""]
    for room, modules in rooms.items():
        names = ", ".join(f"`{module}`" for module in sorted(modules))
        lines += [f"- {room} ({len(modules)}): {names}"]
    lines += ["", "## Shapes", "", ", ".join(f"`{shape}`" for shape in sorted(walk.shapes)) + ".", ""]
    return "\n".join(lines)


def missing(text: str) -> list[str]:
    """Modules that the page names and that are gone."""
    named = re.findall(r"`((?:pai_backend|jupyter_pai)[\w.]*)`", text)
    return [name for name in named if not any(path.exists() for path in _paths(name))]


def _paths(module: str) -> list[Path]:
    base = ROOT / ("backend" if module.startswith("pai_backend") else "") / Path(*module.split("."))
    return [base.with_suffix(".py"), base / "__init__.py"]


def main(arguments: list[str] | None = None) -> int:
    """Print the page, write it, or check the one that is written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/walk.md")
    parser.add_argument("--check", action="store_true", help="fail when docs/walk.md names a module that is gone")
    options: Any = parser.parse_args(arguments)
    if options.check:
        gone = missing(PAGE.read_text(encoding="utf-8"))
        print("\n".join(f"{PAGE.relative_to(ROOT)} names {name}, which is gone: write it anew" for name in gone))
        return bool(gone)
    text = page(asyncio.run(walked()))
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)
    for title, files, count in sizes():
        print(f"{title}: {files} files, {count} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
