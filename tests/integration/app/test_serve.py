"""``serve`` as a command: what it refuses, what it waits for, and that jobs run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from pai_backend.platform.listening import bind, keep_port
from pai_backend.platform.runtime_files import read_json
from pai_backend.processes.gateway_port import FIRST_PORT, PORTS_TRIED
from pai_backend.testing.free_ports import free_port
from tests.support.backend_process import START_S, backend, command, until
from tests.support.command_lines import command_lines_with
from tests.support.documents import scm_document


def run(*arguments: str, timeout: float = START_S) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-P", "-m", "pai_backend", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=timeout)


def test_a_wrong_key_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    config = tmp_path / "backend.yaml"
    config.write_text("api:\n  prot: 1\n")
    ended = run("serve", "--config", str(config))
    assert ended.returncode == 2
    assert ended.stderr == f"pai_backend: {config}:2: api.prot is not known. Did you mean api.port?\n"
    assert ended.stdout == ""


def test_help_is_there_without_a_configuration() -> None:
    ended = run("serve", "--help")
    assert ended.returncode == 0
    assert "--api-port" in ended.stdout


@pytest.mark.parametrize("key", ["api.port", "gateway.port", "gateway.metrics_port"])
def test_a_port_in_use_is_one_line_that_names_the_key(tmp_path: Path, key: str) -> None:
    flag = "--" + key.replace(".", "-").replace("_", "-")
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run(
            command(tmp_path / "data", flag, str(port), "--log-dir", str(tmp_path / "log")),
            capture_output=True,
            text=True,
            timeout=START_S,
        )
    assert ended.returncode == 2
    assert ended.stderr == f"pai_backend: {key}: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert command_lines_with(f"{tmp_path}/") == []


def test_a_gateway_whose_kept_port_another_has_takes_one_of_its_range(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        keep_port(data / "gateway.port", port)
        with backend(data) as running:
            now = read_json(data / "runtime" / "gateway.json")
            assert now is not None
            assert FIRST_PORT <= int(str(now["port"])) < FIRST_PORT + PORTS_TRIED
            with socket.create_connection(("127.0.0.1", int(str(now["port"]))), 60) as client:
                assert client.recv(8) == b"SSH-2.0-"
            assert "ended with code" not in running.errors.read_text()


def test_an_agent_alone_imports_neither_database_nor_http() -> None:
    code = "import sys, pai_backend.processes.app, pai_backend.processes.roles.agent\n"
    code += "print([name for name in ('sqlalchemy', 'tornado', 'pydantic_settings', 'alembic') if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=START_S)
    assert ended.stdout == "[]\n"


def test_the_supervisor_imports_the_standard_library_only() -> None:
    code = "import sys, pai_backend.processes.supervisor\n"
    code += "import sysconfig\n"
    code += "names = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
    code += "print(sorted(name for name in names if not name.startswith(('_', 'sitecustomize', 'pai_backend'))))"
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        timeout=START_S,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "backend")},
    )
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


def test_without_its_database_the_api_is_alive_not_ready_and_says_why(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        api_port = free_port()
        environment = {**os.environ, "PAI_BACKEND_DATABASE": f"postgresql+asyncpg://u:hunter2@127.0.0.1:{port}/pai"}
        errors = tmp_path / "stderr"
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                command(tmp_path / "data", "--role", "api", "--api-port", str(api_port)), stderr=stderr, env=environment
            )
        try:
            url = f"http://127.0.0.1:{api_port}"

            def answers() -> bool:
                try:
                    return httpx.get(f"{url}/healthz").status_code == 200
                except httpx.TransportError:
                    return False

            until(answers)
            until(lambda: "cannot be opened" in errors.read_text())
            ready = httpx.get(f"{url}/readyz")
            jobs = httpx.get(f"{url}/api/v2/jobs")
        finally:
            process.send_signal(signal.SIGTERM)
            ended = process.wait(60)
    assert ended == 0
    assert ready.status_code == jobs.status_code == 503
    assert ready.json()["checks"][0]["ok"] is False
    assert jobs.json()["code"] == "UnavailableError"
    assert "hunter2" not in errors.read_text() + ready.text + jobs.text
    assert "Trying again in" in errors.read_text()


def test_roles_of_one_backend_may_run_as_processes_without_a_supervisor(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path / "data", "--role", "api,controller"), stderr=subprocess.DEVNULL)
    try:
        until(lambda: read_json(tmp_path / "data" / "runtime" / "api.json") is not None)
        facts = read_json(tmp_path / "data" / "runtime" / "api.json")
        assert facts is not None
        until(lambda: httpx.get(f"{facts['url']}/readyz").status_code == 200)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert read_json(tmp_path / "data" / "runtime" / "api.json") is None


def test_a_submitted_job_runs_and_its_log_and_history_are_read(tmp_path: Path) -> None:
    role = {
        "name": "worker",
        "taskNumber": 1,
        "cpuNumber": 1,
        "memoryMB": 128,
        "gpuNumber": 1,
        "command": "echo $PAI_JOB_NAME; exit 3",
    }
    with backend(tmp_path / "data") as running, running.client() as client:
        submitted = client.post("/api/v2/jobs", content=scm_document(taskRoles=[role]))
        assert submitted.status_code == 202, submitted.text
        until(lambda: client.get("/api/v2/jobs/hello").json()["state"] == "FAILED")
        detail = client.get("/api/v2/jobs/hello").json()
        log = client.get("/api/v2/jobs/hello/logs?stream=stdout")
        tail = client.get("/api/v2/jobs/hello/logs?stream=stdout&offset=-3")
        events = client.get("/api/v2/jobs/hello/events").json()["data"]
    assert detail["exitStatus"] == 3
    assert detail["taskRoles"][0]["taskStatuses"][0]["node"] == "carol"
    assert log.text == "hello\n"
    assert (tail.text, tail.headers["x-pai-offset"]) == ("lo\n", "3")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
