"""Workflows, forms, hooks and the dev container are well-formed, and call what is in this repository."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PINNED = re.compile(r"[\w-]+/[\w./-]+@(v\d+(\.\d+)*|[0-9a-f]{40})")
PATHS = re.compile(
    r"(?<![\w/.$-])(?:\.ci|backend|bench|binder|deploy|docs|examples|jupyter_pai|labextension|tests|tools)/[\w./-]*\w"
)
FIELDS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
FOR_ALL_SUPPORTED = {"test.yml": "python", "newest.yml": "newest"}
"""Workflow -> its job that runs on every Python that pyproject.toml names."""


def load(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def steps(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in load(path)["jobs"].items():
        yield from ((name, step) for step in job["steps"])


def commands() -> Iterator[tuple[str, str]]:
    """All shell commands in workflows, and of the dev container, by file."""
    for path in WORKFLOWS:
        yield from ((path.name, step["run"]) for _, step in steps(path) if "run" in step)
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    yield "devcontainer.json", container["onCreateCommand"]


def targets(command: str) -> list[str]:
    """The targets that a command makes."""
    return re.findall(r"(?:^|[\s;&])make ([a-z][a-z-]*)", command)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_limits_and_the_rights_that_it_needs(path: Path) -> None:
    workflow = load(path)
    assert workflow["name"] == path.stem
    assert True in workflow, "YAML 1.1 reads `on` so"
    assert workflow["permissions"].get("contents") == "read"
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 120, name
        assert all(("uses" in step) != ("run" in step) for step in job["steps"]), name
        needs = job.get("needs", [])
        assert {needs} if isinstance(needs, str) else set(needs) <= set(workflow["jobs"]), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path: Path) -> None:
    used = [step["uses"] for _, step in steps(path) if "uses" in step]
    assert used
    assert [each for each in used if not PINNED.fullmatch(each)] == []


def test_what_is_no_pin_is_told_apart() -> None:
    assert PINNED.fullmatch("actions/checkout@v4")
    assert not PINNED.fullmatch("actions/checkout@main")
    assert not PINNED.fullmatch("actions/checkout")


def test_every_target_that_they_make_exists() -> None:
    made = [(name, target) for name, command in commands() for target in targets(command)]
    assert {"install", "unit", "image", "release", "fuzz", "versions"} <= {target for _, target in made}
    assert [(name, target) for name, target in made if target not in TARGETS] == []


def test_every_program_of_the_repository_that_they_run_exists() -> None:
    run = {found for _, command in commands() for found in re.findall(r"(?<![\w/])(?:tools|\.ci)/[\w.-]*\w", command)}
    assert ".ci/run" in run
    assert [each for each in run if not (ROOT / each).is_file()] == []


def test_every_path_of_the_repository_that_they_name_exists() -> None:
    texts = [path.read_text() for path in (*WORKFLOWS, ROOT / ".devcontainer/devcontainer.json")]
    named = {found for text in texts for found in PATHS.findall(text)}
    assert {"deploy/helm/jupyter-pai", "tests/fuzz/corpus", "tests/unit"} <= named
    assert [each for each in named if not (ROOT / each).exists()] == []


@pytest.mark.parametrize(("name", "job"), FOR_ALL_SUPPORTED.items())
def test_tests_run_on_every_python_that_is_promised(name: str, job: str) -> None:
    stated = (ROOT / "pyproject.toml").read_text()
    promised = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', stated)
    matrix = load(ROOT / ".github/workflows" / name)["jobs"][job]["strategy"]["matrix"]
    assert matrix["python"] == promised


def test_a_tag_publishes_without_a_kept_token() -> None:
    workflow = load(ROOT / ".github/workflows/release.yml")
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    publishing = workflow["jobs"]["pypi"]
    assert publishing["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()
    last = publishing["steps"][-1]
    assert last["with"]["attestations"] is True
    assert "password" not in last["with"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_has_fields_that_github_knows(path: Path) -> None:
    form = load(path)
    assert {"name", "description", "body"} <= set(form)
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in form["body"]} <= FIELDS
    ids = [field["id"] for field in asked]
    assert len(ids) == len(set(ids))
    assert all(field["attributes"]["label"] for field in asked)
    assert any(field.get("validations", {}).get("required") for field in asked)
    assert all(field["attributes"]["options"] for field in asked if field["type"] == "dropdown")


def test_pages_that_forms_name_exist() -> None:
    texts = [path.read_text() for path in (ROOT / ".github").rglob("*.yml")]
    pages = {page for text in texts for page in re.findall(r"/blob/main/([\w./-]+)", text)}
    assert pages
    assert [page for page in pages if not (ROOT / page).is_file()] == []


def test_hooks_run_the_programs_of_make_check() -> None:
    hooks = load(ROOT / ".pre-commit-config.yaml")["repos"]
    [local] = [repo["hooks"] for repo in hooks if repo["repo"] == "local"]
    entries = " ".join(hook["entry"] for hook in local)
    checks = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]
    for program in ("ruff format", "ruff check", "mypy", "lint-imports --config .importlinter", "jlpm lint:check"):
        assert program in entries
        assert program in checks
    assert all(hook["language"] == "system" for hook in local)
    remote = [repo for repo in hooks if repo["repo"] != "local"]
    assert all(re.fullmatch(r"v\d+\.\d+\.\d+", repo["rev"]) for repo in remote)
