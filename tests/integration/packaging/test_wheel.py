"""The distribution as users get it: built, unpacked, installed where there is no Node.

`PAI_TEST_INDEX=1` installs the dependencies from the package index into the bare environment too; otherwise
they are taken from the environment of the tests, so that nothing is downloaded.
"""

from __future__ import annotations

import email
import email.policy
import os
import re
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.distributions import BUILD_TIMEOUT_S, ROOT, no_node, run

PANEL = "share/jupyter/labextensions/jupyter-pai"

LIST_TIMEOUT_S = 60

# One worker with the browser tests: building may replace the panel that they load.
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600), pytest.mark.xdist_group("ui")]


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment in which the wheel was installed without Node."""
    root = tmp_path_factory.mktemp("bare")
    venv.create(root / "venv", with_pip=True)
    python = root / "venv" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if os.environ.get("PAI_TEST_INDEX"):
        environment = {**os.environ, **no_node(root, python)}
        run([*install, f"{wheel}[backend]", "jupyterlab"], root, environment, BUILD_TIMEOUT_S)
        return python
    run([*install, "--no-index", "--no-deps", str(wheel)], root, no_node(root, python), BUILD_TIMEOUT_S)
    # Behind its own packages; .pth files over there, such as an editable install's, are not read.
    own = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], root, {}, 30).strip())
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_sdist_brings_the_panel_built_and_no_node_modules(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert "jupyter_pai/labextension/package.json" in names
    assert "labextension/yarn.lock" in names
    assert not [name for name in names if "node_modules" in name or name.startswith((".venv", "labextension/lib"))]
    assert sdist.stat().st_size < 5 * 1024 * 1024


def test_wheel_holds_both_packages_and_the_panel_once(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "jupyter_pai/extension.py" in names
    assert "pai_backend/processes/app.py" in names
    assert "jupyter_pai/locale/zh_CN/LC_MESSAGES/jupyter_pai.json" in names
    assert "jupyter_pai/event_schemas/job/v1.yaml" in names
    entries = [name for name in names if "remoteEntry" in name]
    assert len(entries) == 1
    assert f".data/data/{PANEL}/static/" in entries[0]
    data = {name.split(".data/data/")[1] for name in names if ".data/data/" in name}
    assert {
        f"{PANEL}/install.json",
        "share/man/man1/pai.1",
        "etc/jupyter/jupyter_server_config.d/jupyter_pai.json",
    } <= data
    assert not [name for name in names if name.startswith(("tests/", "labextension/"))]


def test_the_description_for_pypi_has_no_relative_link_or_picture(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    shown = email.message_from_bytes(archive.read(name), policy=email.policy.default)
    description = shown.get_payload()
    assert isinstance(description, str)
    [repository] = [url for url in shown.get_all("Project-URL", []) if url.startswith("Repository, ")]
    at_release = rf"{re.escape(repository.removeprefix('Repository, '))}/(?:raw|blob)/v{shown['Version']}/"
    targets = re.findall(r"\]\(([^)\s]+)\)", description)
    assert shown["Description-Content-Type"] == "text/markdown"
    assert len(targets) == len(re.findall(r"\]\([^)\s]+\)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert [target for target in targets if not target.startswith("https://")] == []
    ours = [re.sub(at_release, "", target) for target in targets if re.match(at_release, target)]
    assert "docs/images/job.png" in ours
    assert [path for path in ours if not (ROOT / path.partition("#")[0]).exists()] == []


def test_installed_packages_are_the_wheels_own(bare: Path) -> None:
    code = "import jupyter_pai, pai_backend; print(jupyter_pai.__file__, pai_backend.__file__)"
    places = run([str(bare), "-c", code], bare.parent, no_node(bare.parents[2], bare), LIST_TIMEOUT_S).split()
    assert len(places) == 2
    assert all(Path(place).is_relative_to(bare.parents[1]) for place in places)


@pytest.mark.parametrize(
    "module",
    ["jupyter_server.extension.serverextension", "jupyterlab.labextensions"],
    ids=["jupyter server extension list", "jupyter labextension list"],
)
def test_jupyter_lists_the_extension_as_ok(bare: Path, module: str) -> None:
    command = [str(bare), "-m", module, "list"]
    shown = run(command, bare.parent, no_node(bare.parents[2], bare), LIST_TIMEOUT_S)
    lines = [line for line in shown.splitlines() if "jupyter_pai" in line or "jupyter-pai" in line]
    assert any("OK" in line for line in lines), shown
    assert any("enabled" in line for line in lines), shown
    assert not any("X" in line.split() for line in lines), shown


def test_command_line_starts(bare: Path) -> None:
    pai = bare.parent / "pai"
    assert run([str(pai), "--help"], bare.parent, no_node(bare.parents[2], bare), LIST_TIMEOUT_S).startswith(
        "usage: pai"
    )
