"""Planted secrets through the whole program: the task gets them, and nothing else shows or keeps them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from pai_backend.model.job import State
from tests.support.backend_process import Backend, backend, until
from tests.support.living_trees import contents_below

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("secrets")]

SECRET = "planted-Secret-0123456789"
HIDDEN = "*" * len(SECRET)
OURS = "application/vnd.jupyter-pai+json"
BEARER = "bearer-of-bob-0123456789"

DOCUMENT = f"""\
# kept as it is
protocolVersion: 2
name: NAME
type: job
secrets:
  token: "{SECRET}"  # a comment
  list: [{SECRET}-1, {{inner: '{SECRET}-2'}}]
prerequisites:
  - {{name: img, type: dockerimage, uri: none}}
taskRoles:
  worker:
    dockerImage: img
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands:
      - test "<% $secrets.token %>" = planted-Secret-"0123456789"
      - test "<% $secrets.list[1].inner %>" = planted-Secret-"0123456789-2"
      - echo "token <% $secrets.token %>; jupyter $JUPYTER_TOKEN"
      - exit CODE
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    root = tmp_path_factory.mktemp("hidden")
    config = root / "backend.yaml"
    config.write_text(
        f"api: {{tokens: [{{user: bob, token: {BEARER}}}, {{user: boss, token: {BEARER}-2, admin: true}}]}}\n"
        "engine: {trust_all_users: true}\n"
    )
    config.chmod(0o600)
    logs = ["--log-dir", str(root / "log"), "--log-level", "debug"]
    with backend(root / "data", ["--config", str(config), "--user", "alice", *logs]) as one:
        yield one
    for path in (*(root / "log").iterdir(), one.errors):
        assert SECRET.encode() not in path.read_bytes(), f"after all of these tests: {path}"


def document(name: str, code: int = 0) -> bytes:
    return DOCUMENT.replace("NAME", name).replace("CODE", str(code)).encode()


def submitted(running: Backend, name: str, code: int = 0) -> None:
    with running.client() as client:
        answer = client.post("/api/v2/jobs?filename=job.yaml", content=document(name, code))
    assert answer.status_code == 202, answer.text
    assert SECRET not in answer.text


def ended(running: Backend, name: str) -> str:
    """The state that a job ends in."""
    states: list[str] = []

    def over() -> bool:
        with running.client() as client:
            states.append(client.get(f"/api/v2/jobs/{name}", headers={"Accept": OURS}).json()["state"])
        return State(states[-1]).final

    until(over)
    return states[-1]


def test_the_task_gets_its_secrets_and_its_log_hides_them(running: Backend) -> None:
    submitted(running, "good")
    assert ended(running, "good") == "SUCCEEDED"
    with running.client() as client:
        log = client.get("/api/v2/jobs/good/logs").text

    assert log == f"token {HIDDEN}; jupyter {'*' * 64}\n"


PATHS = (
    "/api/v2/jobs",
    "/api/v2/jobs/{}",
    "/api/v2/jobs/{}/events",
    "/api/v2/jobs/{}/logs",
    "/api/v2/jobs/{}/ssh",
    "/api/v1/jobs/{}",
    "/metrics",
    "/readyz",
    "/openapi.json",
)


def test_no_answer_but_the_owners_document_has_a_secret(running: Backend) -> None:
    submitted(running, "failing", code=3)
    assert ended(running, "failing") == "FAILED"
    with running.client() as client:
        for path in PATHS:
            answer = client.get(path.format("failing"))
            assert answer.status_code < 500, path
            assert SECRET not in answer.text, path
        config = client.get("/api/v2/jobs/failing/config")
    assert config.content == document("failing", 3), "byte for byte"


def test_only_the_owner_reads_the_document_as_it_is(running: Backend) -> None:
    submitted(running, "mine")
    name = "/api/v2/jobs/alice~mine/config"
    with httpx.Client(base_url=running.url, timeout=60) as client:
        admin = client.get(name, headers={"Authorization": f"Bearer {BEARER}-2"})
        other = client.get(name, headers={"Authorization": f"Bearer {BEARER}"})

    assert other.status_code == 404
    assert admin.status_code == 200
    assert SECRET not in admin.text
    assert "# kept as it is" in admin.text
    assert "<% $secrets.token %>" in admin.text


def test_no_file_of_the_backend_has_a_secret_but_the_tasks_own(running: Backend) -> None:
    submitted(running, "files", code=1)
    assert ended(running, "files") == "FAILED"

    kept = {path: content for path, content in contents_below(running.data_dir) if "engine" not in path.parts}
    logged = dict(contents_below(running.data_dir.parent / "log"))
    assert [path for path, content in (kept | logged).items() if SECRET.encode() in content] == []
    assert SECRET.encode() not in running.errors.read_bytes()
    assert {"pai.sqlite", "pai.sqlite-wal", "secret.key"} <= {path.name for path in kept}
    assert any(logged.values())


def test_no_process_shows_the_key_of_the_database(running: Backend) -> None:
    key = (running.data_dir / "secret.key").read_text().strip()
    processes = [psutil.Process(running.process.pid), *running.children().values()]

    assert len(processes) == 4
    for process in processes:
        assert key not in " ".join(process.cmdline())
        assert key not in str(process.environ())


KEPT = """\
protocolVersion: 2
name: NAME
type: job
prerequisites:
  - {name: img, type: dockerimage, uri: none}
taskRoles:
  worker:
    dockerImage: img
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands:
      - printf %s "$HF_TOKEN" | sha256sum
      - printf %s "<% $secrets.hf-token %>" | sha256sum
      - echo "token $HF_TOKEN and <% $secrets.hf-token %>"
      - exit CODE
extras:
  jupyterPai:
    secretEnv: {HF_TOKEN: hf-token}
"""


def submitted_with(running: Backend, name: str, code: int, value: str) -> httpx.Response:
    text = KEPT.replace("NAME", name).replace("CODE", str(code))
    with running.client() as client:
        assert client.put("/api/v2/secrets/hf-token", json={"value": value}).status_code == 204
        answer = client.post("/api/v2/jobs?filename=job.yaml", content=text)
    assert answer.status_code == 202, answer.text
    return answer


def test_a_secret_that_the_user_keeps_reaches_the_task_and_is_shown_nowhere(running: Backend) -> None:
    said = [submitted_with(running, "kept", 3, SECRET).text]
    assert ended(running, "kept") == "FAILED"
    digest = f"{hashlib.sha256(SECRET.encode()).hexdigest()}  -\n"
    with running.client() as client:
        log = client.get("/api/v2/jobs/kept/logs").text
        said += [client.get(path.format("kept")).text for path in (*PATHS, "/api/v2/jobs/{}/config", "/api/v2/secrets")]
    assert log == f"{digest * 2}token {HIDDEN} and {HIDDEN}\n"
    with httpx.Client(base_url=running.url, timeout=60, headers={"Authorization": f"Bearer {BEARER}-2"}) as admin:
        said += [admin.get(path.format("alice~kept")).text for path in (*PATHS, "/api/v2/jobs/{}/config")]
        assert admin.get("/api/v2/secrets").json()["data"] == []
    assert not any(SECRET in text for text in said)
    kept = {path: content for path, content in contents_below(running.data_dir) if "engine" not in path.parts}
    logged = dict(contents_below(running.data_dir.parent / "log"))
    assert [path for path, content in (kept | logged).items() if SECRET.encode() in content] == []


def test_a_job_runs_again_with_the_value_that_it_was_submitted_with(running: Backend) -> None:
    submitted_with(running, "again", 0, SECRET)
    assert ended(running, "again") == "SUCCEEDED"
    with running.client() as client:
        assert client.delete("/api/v2/secrets/hf-token").status_code == 204
        refused = client.post("/api/v2/jobs?name=other", content=KEPT.replace("CODE", "0"))
        assert (refused.status_code, refused.json()["code"]) == (400, "InvalidProtocolError")
        assert client.put("/api/v2/jobs/again/executionType", json={"value": "START"}).status_code == 202
    assert ended(running, "again") == "SUCCEEDED"
    with running.client() as client:
        log = client.get("/api/v2/jobs/again/logs").text
    assert hashlib.sha256(SECRET.encode()).hexdigest() in log


def broken(change: Callable[[str], str]) -> bytes:
    text = change(DOCUMENT.replace("NAME", "broken").replace("CODE", "0"))
    assert text != DOCUMENT.replace("NAME", "broken").replace("CODE", "0")
    return text.encode()


FAULTY = {
    "an unclosed quote": broken(lambda text: text.replace(f'"{SECRET}"', f'"{SECRET}')),
    "a tab": broken(lambda text: text.replace("  token:", "\ttoken:")),
    "a double key": broken(lambda text: text.replace("  list:", f"  token: {SECRET}\n  list:")),
    "an unclosed list": broken(lambda text: text.replace("'}]", "'}")),
    "an unknown alias": broken(lambda text: text.replace(f"[{SECRET}-1", f"[*{SECRET}")),
    "a broken escape": broken(lambda text: text.replace(f'"{SECRET}"', f'"{SECRET}\\q"')),
    "a tag of YAML": broken(lambda text: text.replace(f'"{SECRET}"', f"!!python/object {SECRET}")),
    "a list of secrets": broken(lambda text: text.replace(f'token: "{SECRET}"  # a comment\n  list:', "- ")),
    "a text for secrets": broken(lambda text: text.replace("secrets:\n", f"secrets: {SECRET}\nx:\n")),
    "an unknown secret": broken(lambda text: text.replace("$secrets.token", "$secrets._token")),
    "a secret that is no text": broken(lambda text: text.replace("$secrets.token %>;", "$secrets.list[1] %>;")),
    "a secret in a number": broken(lambda text: text.replace("memoryMB: 64", 'memoryMB: "<% $secrets.token %>"')),
    "an unknown key": broken(lambda text: text.replace("taskRoles:", "taskRols:")),
    "no UTF-8": DOCUMENT.encode() + b"\xff",
    "a second job": DOCUMENT.encode() + b"---\n" + DOCUMENT.encode(),
    "secrets of JSON": b'{"protocolVersion": 2, "secrets": {"token": "' + SECRET.encode() + b'", }, "name": 5}',
}


@pytest.mark.parametrize("why", FAULTY)
def test_no_complaint_about_a_document_repeats_a_secret(running: Backend, why: str, tmp_path: Path) -> None:
    text = FAULTY[why]
    file = tmp_path / "job.yaml"
    file.write_bytes(text)
    environ = {**os.environ, "PAI_URL": running.url, "PAI_TOKEN": running.token, "HOME": str(tmp_path)}
    said = []
    with running.client() as client:
        submit = client.post("/api/v2/jobs?filename=job.yaml", content=text)
        validate = client.post("/api/v2/validate?filename=job.yaml", content=text)
    assert submit.status_code == 400, submit.text
    said += [submit.text, validate.text]
    lines = [
        [sys.executable, "-m", "jupyter_pai.cli", *words, str(file)] for words in (["submit"], ["validate", "--json"])
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(line, env=environ, **pipes) for line in lines]  # type: ignore[call-overload]
    for process in started:
        said += process.communicate(timeout=60)
        assert process.returncode != 0

    assert not any(SECRET in text for text in said), said


def test_no_magic_repeats_a_secret(running: Backend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PAI_URL", running.url)
    monkeypatch.setenv("PAI_TOKEN", running.token)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = InteractiveShell.instance()
    try:
        shell.run_line_magic("load_ext", "jupyter_pai")
        for text in FAULTY.values():
            with capture_output() as captured:
                result = shell.run_cell("%%pai submit\n" + text.decode(errors="replace"))
            assert result.error_in_exec is not None
            assert SECRET not in captured.stdout + captured.stderr + str(result.error_in_exec)
    finally:
        InteractiveShell.clear_instance()
