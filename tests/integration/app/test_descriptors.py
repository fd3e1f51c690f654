"""Strangers who hold connections open: whoever else asks is answered, and no process of the backend ends."""

from __future__ import annotations

import resource
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.backend_process import Backend, backend, until
from tests.support.documents import scm_document
from tests.support.living_trees import stdout_of

DESCRIPTORS = 256
STRANGERS = 600
FIRST = 128


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """This process may have as many as the strangers need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4_096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def narrow(tmp_path: Path, many_descriptors: None) -> Iterator[Backend]:
    """A backend that may have few files open, and begins with fewer."""
    python = tmp_path / "python"
    limits = f"ulimit -Sn {FIRST} && ulimit -Hn {DESCRIPTORS} || exit 1"
    python.write_text(f'#!/bin/sh\n{limits}\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    with backend(tmp_path / "data", python=str(python)) as running:
        yield running


@pytest.mark.parametrize(
    "said", [b"", b"GET /api/v2/jobs HTTP/1.1\r\nHost: localhost\r\nX-More: "], ids=["silent", "begun"]
)
def test_idle_connections_keep_nobody_out_and_end_nothing(narrow: Backend, said: bytes) -> None:
    url = urlsplit(narrow.url)
    before = {name: process.pid for name, process in narrow.children().items()}
    with ExitStack() as stack, narrow.client() as client:
        for _ in range(STRANGERS):
            stranger = stack.enter_context(socket.create_connection((url.hostname, url.port or 80), timeout=60))
            stranger.sendall(said)
        document = scm_document().replace(b"echo hello", b"ulimit -Sn").replace(b'"taskNumber": 2', b'"taskNumber": 1')
        answer = client.post("/api/v2/jobs", content=document)
        assert answer.status_code == 202, answer.text
        until(lambda: client.get("/api/v2/jobs/hello").json()["state"] == "SUCCEEDED")
        figures = client.get("/metrics").text
    assert stdout_of(narrow.data_dir / "engine", "*") == f"{FIRST}\n"  # of the user's own programs
    (line,) = (line for line in figures.splitlines() if line.startswith("pai_api_connections "))
    assert 8 < float(line.split()[1]) <= DESCRIPTORS * 3 / 4
    assert {name: process.pid for name, process in narrow.children().items()} == before
    assert "Traceback" not in narrow.errors.read_text()
