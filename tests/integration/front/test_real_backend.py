"""The front before the real backend: documents judged alike on both sides, and the main job as a whole."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from jupyter_client.session import Session
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from jupyter_pai.embedded import Embedded
from jupyter_pai.following import observe
from jupyter_pai.log_times import TimedLines
from jupyter_pai.sync import Client
from tests.support.jupyter import TOKEN, JupyterServer

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
DEMO_TIMEOUT_S = 270
START_TIMEOUT_S = 60
T = TypeVar("T")


BAD = [
    b'{"jobName": "a",\n "image" "x"}',
    b'{"jobName": "a b", "image": "x", "taskRoles": [], "colour": 1}',
    b'{"jobName": 5}',
    b"[1, 2",
    b"",
]


@pytest.mark.parametrize("document", BAD)
def test_an_invalid_document_has_the_same_faults_with_and_without_a_backend(backend: Client, document: bytes) -> None:
    command = [sys.executable, "-m", "jupyter_pai.cli", "validate", "-", "--json"]
    offline = subprocess.run(command, input=document, capture_output=True, timeout=60)
    assert offline.returncode == 2
    answer = json.loads(offline.stdout)
    online = backend.validate(document)
    assert answer["errors"] == online["errors"]
    assert answer["errors"]
    assert set(answer) == set(online)


@pytest.mark.parametrize("name", ["scm-helloworld.json", "scm-jupyter.json"])
def test_a_valid_document_means_the_same_with_and_without_a_backend(backend: Client, name: str) -> None:
    document = (EXAMPLES / name).read_bytes()
    command = [sys.executable, "-m", "jupyter_pai.cli", "validate", str(EXAMPLES / name), "--json"]
    answer = json.loads(subprocess.run(command, capture_output=True, timeout=60, check=True).stdout)
    online: dict[str, Any] = {**backend.validate(document, filename=name)}
    compared = ("valid", "dialect", "name", "spec")
    assert {key: answer[key] for key in compared} == {key: online[key] for key in compared}


def test_a_job_is_followed_from_submit_to_its_exit_code(backend: Client) -> None:
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
    command = "echo 中文 from $PAI_JOB_NAME; echo oops >&2; exit 7"
    document = {"jobName": "followed", "image": "none", "taskRoles": [{**role, "command": command}]}
    job = backend.submit(json.dumps(document).encode())
    items = list(backend.iterate(observe(backend.api, job["uid"], log=True)))
    log = b"".join(item for item in items if isinstance(item, bytes)).decode()
    final = items[-1]
    assert "中文 from followed\n" in log
    assert "oops\n" in log
    assert not isinstance(final, bytes)
    assert (final["state"], final["exit"]) == ("FAILED", final["exit"])
    assert final["exit"] is not None
    assert final["exit"]["status"] == 7
    assert [event["seq"] for event in backend.events("followed")] == list(range(1, len(backend.events("followed")) + 1))


def test_a_log_is_read_and_followed_with_the_times_of_its_lines(backend: Client, tmp_path: Path) -> None:
    """The last line comes while it is followed; a page that is read afterwards tells the same."""
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
    command = f"echo first; until [ -e {tmp_path}/go ]; do sleep 0.1; done; sleep 1.1; date -u +%s"
    document = {"jobName": "timed", "image": "none", "taskRoles": [{**role, "command": command}]}
    job = backend.submit(json.dumps(document).encode())
    shown = b""
    for piece in backend.follow_log(job["uid"], lines=TimedLines()):
        shown += piece
        if shown.endswith(b" first\n"):
            (tmp_path / "go").touch()
    first, last = (line.split(" ", 1) for line in shown.decode().splitlines())
    came = datetime.fromisoformat(last[0])
    assert timedelta(seconds=-2) < came - datetime.fromtimestamp(int(last[1]), UTC) < timedelta(seconds=2)
    assert datetime.fromisoformat(first[0]) < came
    assert backend.log(job["uid"], lines=TimedLines()).data == shown


@pytest.mark.asyncio
async def test_a_service_below_jupyters_address_calculates(tmp_path: Path) -> None:
    """Through the extension alone: it starts the backend, and passes HTTP and WebSocket to the job's Jupyter."""
    data = tmp_path / "data"
    extension = {"data_dir": str(data), "config_file": str(EXAMPLES / "backend.yaml")}
    with JupyterServer(tmp_path, {"PaiExtension": extension}, {}) as server:
        try:
            assert await calculate(server.url, (EXAMPLES / "scm-jupyter.json").read_bytes()) == "2"
        finally:
            private = Embedded(data)
            with Client(await asyncio.to_thread(private.require)) as client:
                client.stop("jupyter_16be8b71")
                list(client.follow_events("jupyter_16be8b71"))  # its end
            await asyncio.to_thread(private.stop)


async def calculate(jupyter_url: str, document: bytes) -> str:
    """Submit a Jupyter document through the relay and let a kernel of its service say what 1+1 is."""
    http, headers = AsyncHTTPClient(force_instance=True), {"Authorization": f"token {TOKEN}"}

    async def ask(path: str, body: bytes | None = None) -> dict[str, Any]:
        method = "GET" if body is None else "POST"
        request = HTTPRequest(jupyter_url + path, method, headers, body, request_timeout=60)
        answer: dict[str, Any] = json.loads((await http.fetch(request)).body)
        return answer

    job = await ask("pai/api/v2/jobs", document)
    service = "pai" + job["services"][0]["pathUrl"]
    await once_it_answers(lambda: ask(service + "api"))
    kernel = await ask(service + "api/kernels", b"{}")
    address = f"{jupyter_url.replace('http', 'ws', 1)}{service}api/kernels/{kernel['id']}/channels"
    channels = await once_it_answers(lambda: websocket_connect(HTTPRequest(address, headers=headers)))
    request = Session().msg("execute_request", {"code": "1+1", "silent": False})
    await channels.write_message(json.dumps({**request, "channel": "shell"}, default=str))
    while True:
        async with asyncio.timeout(START_TIMEOUT_S):
            message = json.loads(await channels.read_message() or "")
        if message["msg_type"] == "execute_result":
            channels.close()
            http.close()
            return str(message["content"]["data"]["text/plain"])


async def once_it_answers(call: Callable[[], Awaitable[T]]) -> T:
    """Call again as long as the answer is 503: the task's Jupyter does not listen yet, or starts a kernel."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return await call()
        except HTTPClientError as error:
            if error.code != 503 or time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.1)


def run_demo(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / "demo.py"), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEMO_TIMEOUT_S, env=dict(os.environ))


def test_the_main_job_runs_from_submit_to_ssh() -> None:
    done = run_demo()
    assert (done.returncode, done.stderr) == (0, "")
    assert "jupyter_16be8b71     STOPPED    jupyter  http://jupyter-16be8b71--jupyter.localhost:" in done.stdout
    assert "helloworld_16be675e  SUCCEEDED  ssh" in done.stdout
    assert "All of it took" in done.stdout


def test_a_demo_that_fails_says_so_in_one_line_and_leaves_nothing_running(tmp_path: Path) -> None:
    import nbformat  # takes 3 s of a processor, which every worker would spend

    notebook = nbformat.v4.new_notebook()
    notebook.cells = [
        nbformat.v4.new_code_cell("%load_ext jupyter_pai"),
        nbformat.v4.new_code_cell("%pai submit scm-jupyter.json"),
        nbformat.v4.new_code_cell("%pai submit no-such-file.json"),
    ]
    path = tmp_path / "broken.ipynb"
    nbformat.write(notebook, path)
    failed = run_demo(str(path))
    assert failed.returncode == 1
    assert failed.stderr == (
        "The demo failed: the cell `%pai submit no-such-file.json` failed: CellFailure: "
        "no-such-file.json cannot be read: No such file or directory. Check the file's name.\n"
    )
