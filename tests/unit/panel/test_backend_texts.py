"""Every text that the backend words for users has its Chinese, with the same places for arguments."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from pai_backend.model import errors
from tests.support.templates import BACKEND, PLACE, templates, texts_made

ROOT = Path(__file__).resolve().parents[3]
CHINESE = ROOT / "jupyter_pai" / "locale" / "zh_CN" / "LC_MESSAGES" / "jupyter_pai.json"
ERRORS = {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.PaiError)
} | {"Fault", "DocumentWarning"}
SENTENCES = {
    "JobExit",
    "MovedJobs",
    "NoPort",
    "Released",
    "Said",
    "TaskDelayed",
    "TaskExit",
    "Unread",
    "Waiting",
    "Waits",
}
"""What holds a sentence that is kept with a job, or that answers a change of one."""
NAMED = ("message", "hint", "why", "text", "reason", "remedy")
PAYLOADS = frozenset({"text", "why"})
"""Fields of events that users read."""
IN_ENGLISH = (
    "simulation",
    "commands",
    "testing",
    *(f"store/{name}.py" for name in ("faults", "migrate", "postgres", "sql", "sqlite")),
)
"""What an administrator reads at the backend's own machine or in a configuration."""


def catalogue() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(CHINESE.read_text(encoding="utf-8"))
    return found


def where(path: Path, call: ast.Call) -> str:
    return f"{path.relative_to(BACKEND)}:{call.lineno}"


def test_templates_are_literals_whose_places_are_their_arguments() -> None:
    wrong = []
    for path, call in texts_made():
        template = call.args[0]
        if not isinstance(template, ast.Constant) or not isinstance(template.value, str):
            wrong.append(where(path, call))
            continue
        given = {f"{{{keyword.arg}}}" for keyword in call.keywords if keyword.arg is not None}
        if not given <= set(PLACE.findall(template.value)):
            wrong.append(where(path, call))
    assert not wrong


def test_every_template_has_its_chinese_with_the_same_places() -> None:
    chinese = catalogue()
    every = templates()
    assert len(every) > 900
    assert sorted(every - chinese.keys()) == []
    assert [text for text in every if set(PLACE.findall(text)) != set(PLACE.findall(chinese[text][0]))] == []


def _bare(node: ast.expr | None) -> bool:
    """Whether this is English that has no template."""
    match node:
        case ast.Constant(value=str(text)):
            return text != ""
        case ast.JoinedStr():
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return _bare(body) or _bare(orelse)
        case _:
            return False


def _said(call: ast.Call) -> list[ast.expr]:
    """The parts of a call that users may read; what has no space in it is a word for programs."""
    if isinstance(call.func, ast.Name) and call.func.id in SENTENCES:
        return call.args + [each.value for each in call.keywords if each.arg in NAMED]
    return call.args[:1] + [each.value for each in call.keywords if each.arg in ("message", "hint")]


@pytest.mark.parametrize("room", ["access", "api", "auth", "launch", "model", "protocol", "scheduling", "store"])
def test_errors_faults_and_warnings_are_made_of_templates(room: str) -> None:
    bare = [
        where(path, call)
        for path in sorted((BACKEND / room).rglob("*.py"))
        if not str(path.relative_to(BACKEND)).startswith(IN_ENGLISH)
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ERRORS
        if any(_bare(each) for each in _said(call))
    ]
    assert not bare


def _sentence(node: ast.expr) -> bool:
    """As :func:`_bare`, of what may be a word for programs: that has no space in it."""
    return _bare(node) and (not isinstance(node, ast.Constant) or " " in str(node.value))


@pytest.mark.parametrize("room", ["access", "api", "controller", "lifecycle", "scheduling", "store"])
def test_sentences_that_are_kept_with_a_job_are_made_of_templates(room: str) -> None:
    bare = []
    for path in sorted((BACKEND / room).rglob("*.py")):
        if path.parent.name == "openpai":  # for OpenPAI's own clients
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in SENTENCES:
                    found = [each for each in _said(node) if _sentence(each)]
                case ast.Dict(keys=keys, values=values):
                    found = [
                        value
                        for key, value in zip(keys, values, strict=True)
                        if isinstance(key, ast.Constant) and key.value in PAYLOADS and _sentence(value)
                    ]
                case _:
                    continue
            bare += [f"{path.relative_to(BACKEND)}:{each.lineno}" for each in found]
    assert not bare
