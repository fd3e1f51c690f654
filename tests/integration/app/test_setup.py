"""A server as ``setup`` makes it, by what its administrator types: it starts, and its check finds nothing wrong."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from pai_backend.testing.free_ports import free_ports
from tests.support.backend_process import backend
from tests.support.other_accounts import open_place, open_python
from tests.support.warm_start import run_pai

LIMIT_S = 60


def typed(command: list[str], answers: dict[str, str], env: dict[str, str]) -> str:
    """Run a program at a terminal, and type what follows each question; gives all that was shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True)
    os.close(theirs)
    shown, asked = "", dict(answers)
    try:
        while True:
            shown += os.read(ours, 4096).decode()
            question = next((each for each in asked if each in shown), None)
            if question is not None:
                os.write(ours, f"{asked.pop(question)}\n".encode())
    except OSError:  # how a terminal ends on Linux
        assert process.wait(LIMIT_S) == 0, shown
    finally:
        os.close(ours)
    assert asked == {}, f"never asked: {asked}"
    return shown


@pytest.mark.skipif(os.geteuid() != 0, reason="a server's tasks run as accounts of their users, which takes root")
def test_what_is_typed_makes_a_server_whose_check_finds_nothing_that_blocks() -> None:
    with open_place() as place:
        python = open_python(place)
        api_port, ssh_port = free_ports(2)
        config, data = place / "etc" / "backend.yaml", place / "data"
        answers = {
            "administers this server?": "root",
            "may sign in?": "ann, bob",
            "may jobs have?": "",
            "logs and tasks lie?": str(data),
            "leave what is to stay?": str(place / "srv"),
            "port of the API?": str(api_port),
            "port of SSH": str(ssh_port),
            "others reach it": "",
        }
        files = ["--output", str(config), "--unit", str(place / "pai.service"), "--runtime-image", ""]
        said = typed([python, "-m", "pai_backend", "setup", *files], answers, dict(os.environ))
        assert "pai user add ann" in said
        assert "pai user add bob" in said
        with backend(data, ["--config", str(config)], python=python) as running:
            assert running.url.endswith(f":{api_port}")
            done = run_pai("doctor", "--server", "--config", str(config), "--json")
        told = json.loads(done.stdout)
        assert (done.returncode, told["works"]) == (0, True), told["report"]
        assert "ok       backend" in told["report"]


def test_a_check_of_no_configuration_says_which_file(tmp_path: Path) -> None:
    done = run_pai("doctor", "--server", "--config", str(tmp_path / "none.yaml"))
    assert done.returncode == 2
    assert "none.yaml" in done.stderr
