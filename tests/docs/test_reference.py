"""Everything that has a name users meet has a row or heading in the documentation, and no page is stale."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from jupyter_pai.commands import VERBS
from pai_backend.api.openapi import describe
from pai_backend.api.routes import ROUTES
from pai_backend.config.keys import keys
from pai_backend.model.errors import PaiError
from tests.docs.pages import ROOT, anchor, headings, links, pages, read

BACKEND = ROOT / "backend" / "pai_backend"


def calls(folder: Path) -> Iterator[tuple[str, ast.Call]]:
    """Calls in a folder's modules, with the name that is called."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                yield name, node


def texts(node: ast.Call) -> Iterator[str]:
    """First argument or ``code=`` of a call, where it is a literal text."""
    candidates = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "code")]
    for candidate in candidates:
        if isinstance(candidate, ast.Constant) and isinstance(candidate.value, str):
            yield candidate.value


@pytest.mark.parametrize("tool", ["diagrams.py", "reference.py", "walk.py"])
def test_made_pages_are_current(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / tool), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT / 'backend'}:{ROOT}", "HOME": "/nonexistent"},
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_configuration_key_has_a_heading() -> None:
    titles = {text.strip("`") for level, text in headings("docs/configuration.md") if level == 3}
    assert titles == {key.name for key in keys()}


def test_every_route_and_verb_has_a_row() -> None:
    rows: dict[str, set[str]] = {}
    for first in re.findall(r"^\| (`.*?) \|", read("docs/rest.md"), re.MULTILINE):
        verbs: set[str] = set()
        for cell in re.findall(r"`([^`]+)`", first):
            *words, path = cell.split()
            verbs = set(words[0].split("/")) if words else verbs
            rows.setdefault(re.sub(r"\?.*", "", path), set()).update(verbs)
    described = describe(ROUTES, "0")["paths"]
    names = {"attempt": "n", "index": "i", "run": "k"}
    for path, operations in described.items():
        shown = re.sub(r"\{(\w+)\}", lambda part: "{" + names.get(part[1], part[1]) + "}", path)
        stream = shown.endswith("/stream")
        wanted = {"WS"} if stream else {verb.upper() for verb in operations}
        assert rows.get(shown) == wanted, f"docs/rest.md has no row for {wanted} {shown}"
    assert len(rows) == len(described)


def subclasses(kind: type[PaiError]) -> Iterator[type[PaiError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__.startswith("pai_backend."):
            yield from subclasses(below)


def test_every_error_code_has_a_row() -> None:
    rows = set(re.findall(r"^\| `(\w+Error)` \|", read("docs/errors.md"), re.MULTILINE))
    assert rows == {kind.code for kind in subclasses(PaiError)}


def test_every_warning_code_has_a_row() -> None:
    rows = set(re.findall(r"^\| `([a-z0-9-]+)` \|", read("docs/errors.md"), re.MULTILINE))
    made = {code for name, call in calls(BACKEND) if name in ("warn", "DocumentWarning") for code in texts(call)}
    assert rows == made


def test_every_event_type_has_a_heading() -> None:
    titles = {text.strip("`") for level, text in headings("docs/events.md") if level == 3}
    made = {kind for name, call in calls(BACKEND) if name == "NewEvent" for kind in texts(call)}
    assert made >= {"job.submitted", "job.state", "task.state"}
    assert titles == made


def test_every_verb_has_a_heading() -> None:
    titles = [text.strip("`") for level, text in headings("docs/cli.md") if level == 3]
    assert all(any(f"{title} ".startswith(f"pai {name} ") for title in titles) for name in VERBS)
    assert len(titles) == len(VERBS)


@pytest.mark.parametrize("page", pages())
def test_local_links_lead_somewhere(page: str) -> None:
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = unquote(link).partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{page}: {link}"
        if fragment:
            there = str(target.resolve().relative_to(ROOT))
            assert fragment in {anchor(text) for _, text in headings(there)}, f"{page}: {link}"
