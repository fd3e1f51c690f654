"""``pip install jupyter-pai`` alone: a client of a backend elsewhere, without the packages that serve."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from tests.support.distributions import ROOT
from tests.support.jupyter import TOKEN, JupyterServer
from tests.support.private_backend import private_backend
from tests.support.thin_client import closure, make_client, requirements

RUN_TIMEOUT_S = 120
REMEDY = "pip install 'jupyter-pai[backend]'"
SERVING = ["alembic", "asyncssh", "httptools", "kubernetes_asyncio", "pydantic_settings", "pynvml", "sqlalchemy"]
"""Modules that a notebook's image need not carry. argon2 and prometheus_client come with Jupyter's own server."""

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600), pytest.mark.xdist_group("ui")]


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment where the wheel was installed without extras."""
    return make_client(wheel, tmp_path_factory.mktemp("client") / "venv")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables that lead to a backend which another environment serves."""
    with private_backend(tmp_path / "backend", ROOT / "examples" / "backend.yaml") as client:
        endpoint = client.api.endpoint
        yield {"PAI_URL": endpoint.url, "PAI_TOKEN": endpoint.token}


def ran(command: list[str], home: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PAI_", "JUPYTER", "PYTHON"))}
    environment = {**kept, "HOME": str(home), "PAI_DATA_DIR": str(home / "data"), **environ}
    return subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
    )


def pai(python: Path, home: Path, environ: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return ran([str(python.parent / "pai"), *words], home, environ)


def magic(python: Path, home: Path, environ: Mapping[str, str], line: str) -> subprocess.CompletedProcess[str]:
    program = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "jupyter_pai")
shell.run_cell({line!r})
"""
    return ran([str(python), "-c", program], home, {**environ, "IPYTHONDIR": str(home / "ipython")})


def test_packages_that_serve_are_not_installed(python: Path, home: Path) -> None:
    find = f"import importlib.util as u; print([m for m in {SERVING} if u.find_spec(m)])"
    assert ran([str(python), "-c", find], home, {}).stdout.strip() == "[]"


def test_extras_that_need_a_backend_bring_it(wheel: Path) -> None:
    texts = requirements(wheel)
    for extra in ("backend", "postgres", "kubernetes", "demo"):
        needed = {each.name.lower() for each in closure([f"jupyter-pai[{extra}]", *texts])}
        assert {"alembic", "asyncssh", "sqlalchemy"} <= needed, extra


def test_it_is_a_client_of_a_backend_elsewhere(python: Path, home: Path, remote: Mapping[str, str]) -> None:
    document = str(ROOT / "examples" / "scm-helloworld.json")
    done = pai(python, home, remote, "submit", document, "--wait")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "TITANX (SIMULATED)" in done.stdout
    checked = pai(python, home, remote, "validate", document)
    assert checked.returncode == 0, checked.stderr
    shown = magic(python, home, remote, "%pai list")
    assert "SUCCEEDED" in shown.stdout, shown.stdout + shown.stderr
    with JupyterServer(home, {}, dict(remote), str(python)) as server:
        answer = httpx.get(f"{server.url}pai/api/v2/jobs", params={"token": TOKEN}, timeout=RUN_TIMEOUT_S)
    assert [job["state"] for job in answer.json()] == ["SUCCEEDED"]


def test_where_it_would_start_a_backend_it_names_the_remedy(python: Path, home: Path) -> None:
    done = pai(python, home, {}, "list")
    assert done.returncode == 3, done.stdout
    assert "The packages of a private backend are not installed: " in done.stderr
    assert "alembic" in done.stderr
    assert REMEDY in done.stderr
    cell = magic(python, home, {}, "%pai list")
    assert "Traceback" not in cell.stdout
    assert REMEDY in cell.stdout + cell.stderr
    environ = {"PAI_DATA_DIR": str(home / "data")}
    with JupyterServer(home, {}, environ, str(python)) as server:
        answer = httpx.get(f"{server.url}pai/api/v2/jobs", params={"token": TOKEN}, timeout=RUN_TIMEOUT_S)
    assert answer.status_code == 503
    assert REMEDY in json.loads(answer.content)["hint"]


@pytest.mark.parametrize(("words", "missing"), [("serve", "alembic"), ("rotate-key", "sqlalchemy")])
def test_what_serves_names_the_remedy_in_one_line(python: Path, home: Path, words: str, missing: str) -> None:
    done = ran([str(python), "-m", "pai_backend", words, "--data-dir", str(home)], home, {})
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert missing in line
    assert line.startswith("pai_backend: ")
    assert line.endswith(f" not installed; run {REMEDY}")
