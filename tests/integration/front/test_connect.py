"""Connecting to a running task with everything real: backend, gateway, task, OpenSSH, PuTTY where it is installed."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from jupyter_pai import access
from jupyter_pai.connect.putty import putty_host_key
from jupyter_pai.doctor.clients import CLIENTS
from jupyter_pai.doctor.examining import observe
from jupyter_pai.doctor.outcome import Probe
from jupyter_pai.doctor.running import OpenSshRoute
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.following import observe as follow
from jupyter_pai.sync import Client
from tests.support.lacking import needs
from tests.support.private_backend import private_backend
from tests.support.warm_start import run_pai

ADMIN = "token-of-another-administrator"
EXAMPLES = Path(__file__).parents[3] / "examples"
ROLE = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
BARE = ("awk", "bash", "cat", "chmod", "df", "expr", "id", "mkdir", "mktemp", "rm", "sh", "sleep", "tail", "uname")
"""What a small image has: no tar, no downloader, no scp."""


Pai = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="module")
def backend(place: Path) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAI_BACKEND_API__TOKENS", json.dumps([{"user": "ada", "token": ADMIN, "admin": True}]))
        patch.setenv("PAI_BACKEND_ENGINE__TRUST_ALL_USERS", "true")
        with private_backend(place / "data", EXAMPLES / "backend.yaml") as client:
            yield client


@pytest.fixture(scope="module")
def pai(backend: Client, place: Path) -> Pai:
    """``pai`` of a user whose SSH directory this module's tests share."""
    return command_line(backend, place / "ssh")


@pytest.fixture
def pai_of_new_user(backend: Client, tmp_path: Path) -> Pai:
    """``pai`` of a user in whose SSH directory nothing is."""
    return command_line(backend, tmp_path / "ssh")


def command_line(backend: Client, ssh: Path) -> Pai:
    endpoint = backend.api.endpoint
    ours = {"PAI_URL": endpoint.url, "PAI_TOKEN": endpoint.token, "PAI_SSH_DIR": str(ssh)}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return run_pai(*words, env={**os.environ, **ours})

    return call


def running(backend: Client, name: str, environ: Mapping[str, str], command: str = "sleep 600") -> None:
    """Submit a job and wait until its task runs."""
    document = {"jobName": name, "image": "none", "jobEnvs": environ, "taskRoles": [{**ROLE, "command": command}]}
    uid = backend.submit(json.dumps(document).encode())["uid"]
    for item in backend.iterate(follow(backend.api, uid, log=False)):
        if not isinstance(item, bytes) and item["state"] == "RUNNING":
            return
    pytest.fail("the task never ran")


@pytest.fixture(scope="module")
def whole(backend: Client) -> str:
    """A task with all that this machine has."""
    running(backend, "whole", {})
    return "whole"


def codes(report: Any) -> dict[str, list[str]]:
    """What keeps programs from working, by program."""
    return {
        each["client"]: [found["code"] for found in each["findings"] if found["blocking"]] for each in report["clients"]
    }


@pytest.mark.skipif(sys.platform != "linux", reason="what the verdicts are about is Linux")
def test_the_doctor_finds_a_whole_task_good_and_leaves_nothing(
    backend: Client, pai: Pai, place: Path, whole: str
) -> None:
    reached = access.reach(backend, whole, place / "ssh")
    seen = observe(OpenSshRoute(reached.files.config, reached.login.alias))
    assert {probe: outcome for probe, outcome in seen.outcomes.items() if outcome.worked is False} == {}
    untried = {probe for probe, outcome in seen.outcomes.items() if outcome.worked is None}
    assert untried <= ({Probe.RSYNC} if shutil.which("rsync") is None else set())
    assert set(seen.outcomes) == set(Probe)
    assert (seen.left_behind, Path(seen.facts.place).is_absolute(), Path(seen.facts.place).exists()) == (
        "",
        True,
        False,
    )

    assert pai("ssh-config").returncode == 0
    done = pai("doctor", whole, "--client", "ssh", "--client", "sftp", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["works"], [each["client"] for each in report["clients"]]) == (True, ["ssh", "sftp"])


def test_the_doctor_asks_the_backend_why_a_key_is_denied_and_mends_nothing(
    backend: Client, pai_of_new_user: Pai, whole: str, tmp_path: Path
) -> None:
    def found() -> list[str]:
        done = pai_of_new_user("doctor", whole, "--client", "ssh", "--json")
        (ssh,) = json.loads(done.stdout)["clients"]
        assert done.returncode == (0 if ssh["works"] else 1), done.stderr
        return [finding["code"] for finding in ssh["findings"]]

    assert found() == ["no-include"], "the user's own configuration is what is tried"
    assert pai_of_new_user("ssh-config").returncode == 0
    assert found() == []
    me = getpass.getuser()
    with Client(Endpoint(backend.api.endpoint.url, ADMIN)) as admin:
        pai_of_admin = command_line(admin, tmp_path / "nowhere")
        assert pai_of_admin("user", "disable", me, "--yes").returncode == 0
        assert found() == ["locked-out"]
        assert pai_of_admin("user", "enable", me).returncode == 0
    registered = backend.keys()
    backend.delete_key(registered[-1]["fingerprint"])
    assert found() == ["key-unregistered"]
    assert found() == ["key-unregistered"], "the doctor registers nothing"
    assert pai_of_new_user("ssh-config").returncode == 0
    assert found() == []


@pytest.mark.skipif(sys.platform != "linux", reason="what the verdicts are about is Linux")
def test_the_doctor_says_what_a_small_image_lacks(backend: Client, pai: Pai, place: Path) -> None:
    programs = place / "programs"
    programs.mkdir()
    for name in BARE:
        program = shutil.which(name)
        assert program is not None
        (programs / name).symlink_to(program)
    running(backend, "bare", {"PATH": str(programs)})
    assert pai("ssh-config").returncode == 0
    done = pai("doctor", "bare", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    found = codes(report)
    assert list(found) == list(CLIENTS)
    assert (found["ssh"], found["scp"], found["sftp"], found["putty"]) == ([], [], [], [])
    assert found["rsync"] == ["no-rsync"]
    assert {"no-tool", "no-downloader"} <= set(found["vscode"])
    assert {"no-tool", "no-downloader"} <= set(found["jetbrains"])
    assert found["pycharm"] == []  # the local engine has its own Python on each task's PATH
    (scp,) = [each for each in report["clients"] if each["client"] == "scp"]
    assert [each["code"] for each in scp["findings"]] == ["no-scp-legacy"]
    assert report["leftBehind"] == ""


def test_the_guide_tells_where_the_task_is_and_writes_project_files(
    pai_of_new_user: Pai, tmp_path: Path, whole: str
) -> None:
    project, pai = tmp_path / "project", pai_of_new_user
    tried = pai("connect", whole, "--pycharm", str(project), "--dry-run")
    assert tried.returncode == 0, tried.stderr
    assert "+      <sshConfig id=" in tried.stdout
    assert not project.exists()

    done = pai("connect", whole, "--pycharm", str(project), "--json")
    guide = json.loads(done.stdout)
    where = subprocess.run(
        ["ssh", "-F", str(tmp_path / "ssh" / "pai" / "lab" / "config"), whole, "pwd"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.strip()
    assert guide["directory"] == where
    assert guide["included"] is False
    assert [link["editor"] for link in guide["links"]][:2] == ["vscode", "vscode-insiders"]
    assert guide["links"][0]["url"] == f"vscode://vscode-remote/ssh-remote+{whole}{where}?windowId=_blank"
    assert sorted(path.name for path in (project / ".idea").iterdir()) == [
        "deployment.xml",
        "sshConfigs.xml",
        "webServers.xml",
    ]
    assert f'deploy="{where}"' in (project / ".idea" / "deployment.xml").read_text()
    assert json.loads(pai("connect", whole, "--pycharm", str(project), "--json").stdout)["changed"] == []

    assert pai("ssh-config").returncode == 0
    assert json.loads(pai("connect", whole, "--json").stdout)["included"] is True


def test_a_notebook_shows_the_same(pai: Pai, place: Path, backend: Client, whole: str) -> None:
    endpoint = backend.api.endpoint
    ours = {"PAI_URL": endpoint.url, "PAI_TOKEN": endpoint.token, "PAI_SSH_DIR": str(place / "ssh")}
    cells = f"%load_ext jupyter_pai\n%pai connect {whole}\n%pai doctor {whole} --client sftp\n%pai doctor x --client y"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", _shown(cells)],
        env={**os.environ, **ours, "IPYTHONDIR": str(place / "ipython")},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert f"vscode://vscode-remote/ssh-remote+{whole}/" in done.stdout, done.stderr
    assert "works          sftp\n" in done.stdout
    assert "invalid choice: 'y'" in done.stdout + done.stderr


def _shown(cells: str) -> str:
    """A program that runs each line as a cell of its own and prints its result."""
    body = "    shown = get_ipython().run_cell(cell).result\n    shown and print(shown)"
    return f"for cell in {cells.splitlines()!r}:\n{body}"


def test_a_project_file_that_is_no_xml_is_left_as_it_is(pai: Pai, place: Path, whole: str) -> None:
    idea = place / "odd" / ".idea"
    idea.mkdir(parents=True)
    (idea / "webServers.xml").write_text("<project")
    refused = pai("connect", whole, "--pycharm", str(idea.parent))
    assert refused.returncode == 2
    assert "webServers.xml is left as it is: webServers.xml is not XML" in refused.stderr
    assert [path.name for path in idea.iterdir()] == ["webServers.xml"]


def test_plink_takes_the_host_key_that_is_written_for_it(backend: Client, pai: Pai, place: Path, whole: str) -> None:
    """The session's file has PuTTY's own form of the host key: with it in place, nothing is asked."""
    sessions = {"putty": place / "task.reg", "xshell": place / "task.xsh"}
    words = [word for name, path in sessions.items() for word in (f"--{name}", str(path))]
    assert pai("connect", whole, *words, "--key", r"C:\keys\task.ppk").returncode == 0
    registry = sessions["putty"].read_bytes().decode("utf-16")
    assert '"PublicKeyFile"="C:\\\\keys\\\\task.ppk"\r\n' in registry
    assert f"UserName={whole}\r\n" in sessions["xshell"].read_bytes().decode("utf-16")
    needs("plink", "puttygen")
    reached = access.reach(backend, whole, place / "ssh")
    kind, value = putty_host_key(reached.host_key)
    assert f'"{kind}@{reached.login.port}:{reached.login.host}"="{value}"' in registry
    home = place / "putty-home"
    (home / ".putty").mkdir(parents=True)
    key = home / "task.ppk"
    subprocess.run(["puttygen", str(reached.files.identity), "-o", str(key)], check=True, timeout=60)
    command = ["plink", "-batch", "-P", str(reached.login.port), "-i", str(key), "-l", whole, reached.login.host]

    def plink() -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "HOME": str(home)}
        return subprocess.run([*command, "echo reached"], capture_output=True, text=True, timeout=60, env=environ)

    assert plink().returncode != 0  # it knows no host key yet
    (home / ".putty" / "sshhostkeys").write_text(f"{kind}@{reached.login.port}:{reached.login.host} {value}\n")
    done = plink()
    assert (done.stdout, done.returncode) == ("reached\n", 0), done.stderr


def test_names_of_ended_jobs_are_gone_after_the_next_writing(backend: Client, pai: Pai, place: Path) -> None:
    running(backend, "short", {})
    assert pai("ssh-config").returncode == 0
    config = place / "ssh" / "pai" / "lab" / "config"
    assert "Host short--main-0\n" in config.read_text()
    backend.stop("short")
    for _ in backend.follow_events("short"):
        pass
    assert pai("ssh-config").returncode == 0
    assert "Host short" not in config.read_text()
    refused = pai("doctor", "short")
    assert refused.returncode == 2
    assert "there is nothing to log in to" in refused.stderr
