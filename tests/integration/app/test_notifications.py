"""A user of a real backend is told of a job by mail and in a chat, and nothing of that is seen where it must not be."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from tests.conformance.engines.documents import commands
from tests.support.backend_process import Backend, backend, until
from tests.support.mail_server import MailServer, mail_server_beside
from tests.support.warm_start import run_pai

CHAT_SECRET = "s3cret-of-the-chat"


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with mail_server_beside() as server:
        yield server


@pytest.fixture
def chat() -> Iterator[tuple[str, list[str]]]:
    """A chat's bot: its URL, and what was said."""
    said: list[str] = []

    class Bot(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said.append(body["text"]["content"])
            assert "sign=" in self.path
            answer = b'{"errcode": 0}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Bot)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/robot/send?access_token=s3cret-token", said
    server.shutdown()
    thread.join()
    server.server_close()


def pai(running: Backend, *words: str, stdin: str = "") -> str:
    env = {"PATH": "/usr/bin:/bin", "PAI_URL": running.url, "PAI_TOKEN": running.token, "HOME": str(running.data_dir)}
    done = run_pai(*words, env=env, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_failed_job_is_told_by_mail_and_in_a_chat(
    tmp_path: Path, mail: MailServer, chat: tuple[str, list[str]]
) -> None:
    url, said = chat
    config = tmp_path / "backend.yaml"
    config.write_text(
        json.dumps(
            {
                "notifications": {
                    "smtp_host": "127.0.0.1",
                    "smtp_port": mail.port,
                    "smtp_security": "none",
                    "mail_from": "pai@example.org",
                    "networks": ["127.0.0.1/32"],
                }
            }
        )
    )
    with backend(tmp_path / "data", ["--config", str(config)]) as running:
        pai(running, "notify", "add", "mail", "ann@example.org")
        made = json.loads(
            pai(running, "notify", "add", "dingtalk", "-", "--secret-stdin", "--json", stdin=f"{url}\n{CHAT_SECRET}\n")
        )
        assert "A message has arrived at 127.0.0.1." in pai(running, "notify", "test", made["id"])
        document = tmp_path / "fails.json"
        document.write_text(json.dumps(commands("exit 3")))
        pai(running, "submit", str(document), "--name", "fails")
        until(lambda: len(mail.mails) == 1 and len(said) == 2)
        assert mail.mails[0]["Subject"] == "[pai] fails: failed"
        assert "fails has failed: " in said[1]
        assert mail.mails[0].get_content().splitlines()[0].endswith(said[1])
        listed = pai(running, "notify", "list")
        assert "did not arrive" not in listed
        family = [*psutil.Process(running.process.pid).children(recursive=True), psutil.Process(running.process.pid)]
        seen = " ".join(" ".join(each.cmdline()) for each in family) + listed + running.errors.read_text()
    for secret in ("s3cret-token", CHAT_SECRET):
        assert secret not in seen
        assert secret.encode() not in b"".join(path.read_bytes() for path in (tmp_path / "data").glob("pai.sqlite*"))
