"""The processes of a backend: they come back, they end together, and there is one backend for a directory."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pai_backend.platform.runtime_files import read_json
from tests.support.backend_process import START_S, Backend, backend, command, is_free, kill, until
from tests.support.living import lives
from tests.support.living_trees import contents_below


def test_a_killed_process_is_back_at_once_at_the_same_address(tmp_path: Path) -> None:
    with backend(tmp_path / "data") as running:
        before = running.children()
        assert set(before) == {"api,controller", "gateway", "agent"}
        gateway = read_json(running.data_dir / "runtime" / "gateway.json")
        for child in before.values():
            kill(child)
        until(lambda: set(running.children()) == set(before))
        until(running.ready)
        after = running.children()
        assert {child.pid for child in after.values()}.isdisjoint(child.pid for child in before.values())
        assert (read_json(running.data_dir / "runtime" / "api.json") or {})["url"] == running.url
        assert gateway is not None

        def gateway_is_back() -> bool:
            now = read_json(running.data_dir / "runtime" / "gateway.json") or {}
            return now.get("pid") != gateway["pid"] and now.get("port") == gateway["port"]

        until(gateway_is_back)


AS_ON_MACOS = """
import sys, tempfile
import pai_backend.__main__ as program
from pai_backend.processes import forking, supervisor

def be_supervisor(settings, ready_fd):
    with tempfile.TemporaryFile() as file:
        file.write(settings)
        file.flush()
        return supervisor.supervise(file.fileno(), ready_fd)

forking.FORKS, program.be_supervisor = False, be_supervisor
sys.exit(program.run(sys.argv[1:]))
"""


def test_where_forks_are_not_safe_children_are_programs_of_their_own(tmp_path: Path) -> None:
    read, write = os.pipe()
    data = tmp_path / "data"
    arguments = command(data, "--ready-fd", str(write))[4:]
    process = subprocess.Popen([sys.executable, "-P", "-c", AS_ON_MACOS, *arguments], pass_fds=[write])
    os.close(write)
    try:
        assert select.select([read], [], [], START_S)[0]
        running = Backend(process, data, json.loads(os.read(read, 4096))["url"], tmp_path / "errors")
        until(running.ready)
        children = running.children()
        assert set(children) == {"api,controller", "gateway", "agent"}
        assert all("--inherited" in child.cmdline() for child in children.values())
        kill(children["gateway"])
        until(lambda: running.children().get("gateway", children["gateway"]) != children["gateway"])
    finally:
        os.close(read)
        process.terminate()
        assert process.wait(60) == 0


def test_children_of_a_killed_supervisor_end_and_its_locks_are_free(tmp_path: Path) -> None:
    with backend(tmp_path / "data") as running:
        children = list(running.children().values())
        kill(psutil.Process(running.process.pid))
        running.process.wait(60)
        psutil.wait_procs(children, timeout=60)
        assert [child for child in children if lives(child)] == []
        assert is_free(running.data_dir / "backend.lock")
        assert is_free(running.data_dir / "runtime" / "processes.lock")
        assert is_free(running.data_dir / "controller.lock")
    with backend(tmp_path / "data") as again:
        assert again.url == running.url


def test_a_second_backend_in_the_same_directory_says_who_is_there(tmp_path: Path) -> None:
    with backend(tmp_path / "data") as running:
        second = subprocess.run(command(running.data_dir), capture_output=True, text=True, timeout=60)
        assert second.returncode == 3
        assert second.stderr == (
            f"pai_backend: a backend is running already in {running.data_dir} (pid {running.process.pid})\n"
        )
        assert running.ready()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_clean_end_leaves_no_process_and_no_runtime_file(tmp_path: Path, number: signal.Signals) -> None:
    with backend(tmp_path / "data") as running:
        children = list(running.children().values())
        running.process.send_signal(number)
        assert running.process.wait(60) == 0
        assert [child for child in children if lives(child)] == []
        assert [entry.name for entry in (running.data_dir / "runtime").iterdir()] == ["processes.lock"]
        assert "ended by signal" not in running.errors.read_text()


def test_one_that_is_told_to_end_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    runtime = tmp_path / "data" / "runtime"
    process = subprocess.Popen(command(tmp_path / "data"), stderr=subprocess.DEVNULL)
    until((runtime / "supervisor.json").exists)
    process.terminate()
    assert process.wait(60) == 0
    assert [entry.name for entry in runtime.iterdir()] == ["processes.lock"]


def test_a_hung_supervisor_is_no_reason_for_two_backends(tmp_path: Path) -> None:
    with backend(tmp_path / "data") as running:
        running.process.send_signal(signal.SIGSTOP)
        try:
            second = subprocess.run(command(running.data_dir), capture_output=True, text=True, timeout=60)
        finally:
            running.process.send_signal(signal.SIGCONT)
        assert second.returncode == 3


def test_a_process_that_keeps_dying_is_started_again_with_pauses(tmp_path: Path) -> None:
    with backend(tmp_path / "data") as running:
        for _ in range(4):
            gone = running.children()["agent"]
            kill(gone)

            def another(gone: int = gone) -> bool:
                return running.children().get("agent", gone) != gone

            until(another)
        until(running.ready)
        assert running.errors.read_text().count("was ended by signal 9") == 4


def test_log_files_take_everything_and_the_terminal_stays_quiet(tmp_path: Path) -> None:
    logs = tmp_path / "log"
    with backend(tmp_path / "data", ["--log-dir", str(logs)]) as running:
        assert sorted(entry.name for entry in logs.iterdir()) == [
            "agent.log",
            "core.log",
            "gateway.log",
            "supervisor.log",
        ]
        assert all(entry.stat().st_mode & 0o777 == 0o600 for entry in logs.iterdir())
        assert "all processes are ready" in (logs / "supervisor.log").read_text()
        token = running.token
    assert running.errors.read_bytes() == b""
    assert all(token not in entry.read_text() for entry in logs.iterdir())


def test_secrets_are_in_no_argument_and_no_file_but_the_token(tmp_path: Path) -> None:
    config = tmp_path / "backend.yaml"
    secret = "secret-token-of-bob-0123456789"
    config.write_text(f"api:\n  tokens:\n    - {{user: bob, token: {secret}}}\nengine: {{trust_all_users: true}}\n")
    config.chmod(0o600)
    with backend(tmp_path / "data", ["--config", str(config)]) as running:
        processes = [psutil.Process(running.process.pid), *running.children().values()]
        assert all(secret not in " ".join(process.cmdline()) for process in processes)
        assert all(secret not in " ".join(process.environ().values()) for process in processes)
        contents = contents_below(running.data_dir)
        assert [path for path, content in contents if secret.encode() in content] == []
        headers = {"Authorization": f"Bearer {secret}"}
        with running.client() as client:
            assert client.get("/api/v2/jobs", headers=headers).status_code == 200


def test_runtime_files_say_who_and_where(tmp_path: Path) -> None:
    with backend(tmp_path / "data") as running:
        runtime = running.data_dir / "runtime"
        files = {path.name: json.loads(path.read_text()) for path in runtime.glob("*.json")}
        children = running.children()
        assert files["supervisor.json"]["pid"] == running.process.pid
        assert files["api.json"]["pid"] == children["api,controller"].pid
        assert files["api.json"]["url"] == running.url
        assert files["gateway.json"]["pid"] == children["gateway"].pid
        assert files["agent.json"] == {"pid": children["agent"].pid}
        assert runtime.stat().st_mode & 0o777 == 0o700
