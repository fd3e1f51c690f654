"""``pai terminal`` with everything real: a user's window, OpenSSH, the gateway, and a shell that lives in the task."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_pai import broker
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import Client
from tests.support.backend_process import until
from tests.support.private_backend import private_backend
from tests.support.ssh_people import BOB, CONFIG, Person, runs, submitted

ROLE = {"taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "exec sleep 1000"}


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A backend with a job of alice's that runs."""
    place = tmp_path_factory.mktemp("terminals")
    (place / "backend.yaml").write_text(CONFIG)
    (place / "backend.yaml").chmod(0o600)
    with private_backend(place / "data", place / "backend.yaml") as client:
        uid = submitted(client, "demo", [{"name": "main", **ROLE}, {"name": "second", **ROLE}])
        runs(client, uid)
        until(lambda: all(entry["reachable"] for entry in client.ssh(uid)["entries"]), 60)
        yield client


@pytest.fixture
def alice(backend: Client, tmp_path: Path) -> Person:
    return Person(backend.api.endpoint, tmp_path / "alice")


@pytest.fixture
def bob(backend: Client, tmp_path: Path) -> Person:
    return Person(Endpoint(backend.api.endpoint.url, BOB), tmp_path / "bob")


Steps = list[tuple[str, str | list[int]]]


def at_terminal(person: Person, *words: str, steps: Steps, size: tuple[int, int] = (24, 80)) -> tuple[str, int]:
    """What a user sees who types ``pai WORDS``, and its exit status."""
    asked = {"command": [sys.executable, "-m", "jupyter_pai.cli", *words], "steps": steps, "size": size}
    environ = {
        **os.environ,
        "PAI_URL": person.endpoint.url,
        "PAI_TOKEN": person.endpoint.token,
        "PAI_SSH_DIR": str(person.home / "ssh"),
        "TERM": "xterm-256color",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.terminal_at_shell"],
        input=json.dumps(asked), capture_output=True, text=True, timeout=300, env=environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    seen, _, status = done.stdout.rpartition("\nstatus=")
    return seen, int(status)


def test_a_detached_shell_is_there_again_and_tells_its_exit_code(alice: Person) -> None:
    seen, status = at_terminal(
        alice, "terminal", "demo",
        size=(30, 100),
        steps=[
            ("/work", "kept=yes; echo pid=$$. $(stty size) ro''le=$PAI_CURRENT_TASK_ROLE_NAME\r"),
            ("30 100 role=main", [41, 111]),
            ("/work", "until test \"$(stty size)\" = '41 111'; do sleep 0.1; done; echo lar''ger\r"),
            ("larger", "\x1c"),
        ],
    )  # fmt: skip
    assert status == 0
    assert "The shell goes on: `pai terminal demo` attaches again." in seen
    (first,) = re.findall(r"pid=(\d+)\.", seen)
    listed = alice.json("terminal", "demo", "--list")
    assert isinstance(listed, list)
    assert [(each["name"], each["clients"], each["ended"]) for each in listed] == [("1", 0, None)]
    seen, status = at_terminal(
        alice, "terminal", "demo", "main-0",
        steps=[("", "echo $kept of=$$.; "), ("larger", "exit 7\r"), ("exit code 7", "")],  # also before its prompt
    )  # fmt: skip
    assert f"yes of={first}." in seen
    assert status == 7
    assert alice.json("terminal", "demo", "--list") == []


def test_terminals_have_names_and_are_ended_by_them(alice: Person) -> None:
    at_terminal(alice, "terminal", "demo", "second-0", "--name", "build", "--detach-key", "^A",
                steps=[("/work", "\x1cecho rea''dy\r"), ("ready", "\x01")])  # fmt: skip
    listed = alice.pai("terminal", "demo", "second-0", "--list").stdout
    assert re.fullmatch(r"build +detached +since \d{4}-\d\d-\d\d \d\d:\d\d\n", listed)
    assert alice.pai("terminal", "demo", "--list").stdout == "There are no terminals.\n"
    ended = alice.pai("terminal", "demo", "second-0", "--name", "build", "--end")
    assert (ended.returncode, ended.stdout) == (0, "Terminal build has ended.\n")
    again = alice.pai("terminal", "demo", "second-0", "--name", "build", "--end")
    assert (again.returncode, "There is no terminal build" in again.stderr) == (2, True), again.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("demo", "main"), "'main' is not the name of a task."),
        (("demo", "--detach-key", "x"), "'x' is not a key that can detach."),
        (("demo",), "A terminal needs a terminal"),
        (("demo", "--list", "third-0"), "The job has no task third, index 0."),
        (("demo", "--end", "--name", "../x"), "does not name a terminal"),
        (("nothing", "--list"), "no job"),
    ],
)
def test_what_cannot_be_done_is_said(alice: Person, words: tuple[str, ...], said: str) -> None:
    done = alice.pai("terminal", *words)
    assert (done.returncode, said.lower() in done.stderr.lower()) == (2, True), done.stderr


def test_another_user_gets_in_by_a_share_only_sees_no_names_and_is_put_out(
    alice: Person, bob: Person, backend: Client
) -> None:
    at_terminal(alice, "terminal", "demo", "--name", "secret", steps=[("/work", "\x1c")])
    refused = bob.pai("terminal", "demo", "--list")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "secret" not in refused.stderr
    assert alice.pai("share", "demo", "--with", "bob", "--only", "sftp-read").returncode == 0
    limited = bob.pai("terminal", "alice~demo", "--list")
    assert (limited.returncode, limited.stdout) == (2, "")
    assert "without the right to run commands" in limited.stderr
    backend.thread.run(broker.unshare(backend.api, "demo", "bob"))
    assert alice.pai("share", "demo", "--with", "bob").returncode == 0
    entered = bob.pai("terminal", "alice~demo", "--list")
    assert entered.stdout == "There are no terminals.\n", entered.stderr
    (uid,) = [job["uid"] for job in backend.jobs(limit=9)]

    seen, status = at_terminal(
        bob, "terminal", "alice~demo",
        steps=[("/work", "echo rea''dy\r"), ("ready", ""), ("/work", f"{_unshare(alice)}\r"), ("no job", "")],
    )  # fmt: skip
    assert status != 0
    assert "ready" in seen
    assert uid
    assert backend.thread.run(broker.caller(backend.api)) == "alice"
    assert alice.pai("terminal", "demo", "--name", "secret", "--end").returncode == 0


def _unshare(alice: Person) -> str:
    """A command line by which the task's shell ends the share, as if alice did it meanwhile."""
    environ = f"PAI_URL={alice.endpoint.url} PAI_TOKEN={alice.endpoint.token}"
    paths = os.environ.get("PYTHONPATH", "")
    return f"PYTHONPATH={paths} {environ} {sys.executable} -m jupyter_pai.cli unshare demo --with bob"
