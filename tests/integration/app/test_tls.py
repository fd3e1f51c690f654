"""A backend that speaks https by itself: API, streams, services, renewal of its certificate."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tests.support.backend_process import START_S, backend, command, until
from tests.support.certificates import Authority
from tests.support.documents import scm_document

SERVE = (
    'exec python -c "import http.server as h, json\n'
    "class H(h.BaseHTTPRequestHandler):\n"
    " protocol_version='HTTP/1.1'\n"
    " def do_POST(self):\n"
    "  body=self.rfile.read(int(self.headers['Content-Length']))\n"
    "  self.answer(body)\n"
    " def do_GET(self): self.answer(json.dumps(dict(self.headers)).encode())\n"
    " def answer(self, body):\n"
    "  self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers()\n"
    "  self.wfile.write(body)\n"
    "h.ThreadingHTTPServer(('127.0.0.1', int('$PAI_PORT_LIST_worker_0_web')), H).serve_forever()\""
)
LARGE = os.urandom(1 << 20) * 24


@dataclass
class TlsSite:
    url: str
    token: str
    authority: Authority
    files: tuple[Path, Path]
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, **how: Any) -> httpx.Client:
        """Connects to this machine, whatever name it asks for."""
        headers = {"Authorization": f"Bearer {self.token}"} | how.pop("headers", {})
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=self.authority.client(), **how)

    def number(self) -> int:
        """Of the certificate that a new connection gets."""
        context = self.authority.client()
        with (
            socket.create_connection(("127.0.0.1", self.port), 60) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1.example") as wrapped,
        ):
            found = wrapped.getpeercert()
        assert found is not None
        return int(str(found["serialNumber"]), 16)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsSite]:
    directory, authority = tmp_path_factory.mktemp("tls"), Authority()
    files = directory / "tls.crt", directory / "tls.key"
    authority.write(*files, "localhost", "*.localhost", "127.0.0.1.example")
    arguments = ["--api-tls-certificate", str(files[0]), "--api-tls-key", str(files[1])]
    with backend(directory / "data", arguments, whole=False) as running:
        url = running.url.replace("127.0.0.1", "localhost")
        assert url.startswith("https://")
        found = TlsSite(url, running.token, authority, files, directory / "data.stderr")
        with found.client() as client:
            until(lambda: client.get("/readyz").status_code == 200)
        yield found


def test_the_api_answers_by_https_and_knows_its_clients(site: TlsSite) -> None:
    with site.client() as client:
        answer = client.get("/api/v2/info")
        assert (answer.status_code, answer.headers["Strict-Transport-Security"]) == (200, "max-age=31536000")
        assert client.post("/api/v2/jobs?name=seen", content=scm_document()).status_code == 202
        (event,) = client.get("/api/v2/audit?types=job.submitted").json()["data"]
        assert event["source"] == "127.0.0.1"
        path = f"/api/v2/fs/{event['by']}/large"
        put = client.put(path, content=LARGE)
        assert put.status_code == 200, put.text
        assert client.get(path).content == LARGE


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1")
def test_neither_http_nor_old_tls_nor_strangers_certificates(site: TlsSite) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(site.url.replace("https", "http") + "/readyz", timeout=60)
    old = site.authority.client()
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{site.url}/readyz", verify=old, timeout=60)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{site.url}/readyz", timeout=60)
    with site.client() as client:
        assert client.get("/readyz").status_code == 200


@pytest.mark.asyncio
async def test_a_stream_goes_on_by_wss(site: TlsSite) -> None:
    with site.client() as client:
        uid = client.post("/api/v2/jobs?name=streamed", content=scm_document()).json()["id"]
    address = f"{site.url.replace('https', 'wss')}/api/v2/jobs/{uid}/events/stream"
    request = HTTPRequest(
        address, headers={"Authorization": f"Bearer {site.token}"}, ssl_options=site.authority.client()
    )
    async with asyncio.timeout(START_S):
        stream = await websocket_connect(request)
        first = await stream.read_message()
        stream.close()
    assert first is not None
    assert json.loads(first)["type"] == "job.submitted"


def test_a_service_gets_a_secure_cookie_and_whole_bodies_and_hears_of_https(site: TlsSite) -> None:
    document = json.loads(scm_document("served"))
    role = {
        "name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": SERVE,
        "portList": [{"label": "web", "beginAt": 0, "portNumber": 1}],
    }  # fmt: skip
    with site.client() as client:
        answer = client.post("/api/v2/jobs", content=json.dumps({**document, "taskRoles": [role]}))
        assert answer.status_code == 202, answer.text
        until(lambda: client.get("/api/v2/jobs/served").json()["jobStatus"]["state"] == "RUNNING")
        ticket = client.post("/api/v2/jobs/served/services/web/ticket").json()
        assert ticket["url"].startswith(f"https://served--web.localhost:{site.port}/")
    host = f"served--web.localhost:{site.port}"
    with site.client() as browser:  # the name of a service is looked up by browsers, not by Python
        del browser.headers["Authorization"]
        signed_in = browser.get(ticket["url"].replace(host, f"localhost:{site.port}"), headers={"Host": host})
        cookies = SimpleCookie(signed_in.headers["Set-Cookie"])
        (name,) = cookies
        assert (name, bool(cookies[name]["secure"])) == ("__Host-pai-session", True)
        session = {"Host": host, "Cookie": f"{name}={cookies[name].coded_value}"}
        until(lambda: browser.get("/", headers=session).status_code == 200)
        assert browser.get("/", headers=session).json()["X-Forwarded-Proto"] == "https"
        assert browser.post("/", headers=session, content=LARGE).content == LARGE
        told = browser.get("/api/v2/info", headers={"Authorization": f"Bearer {site.token}"})
        assert told.status_code == 200, "the same connection goes back to the API"


def test_a_renewed_certificate_is_taken_and_a_broken_one_is_not(site: TlsSite) -> None:
    hosts = ("localhost", "*.localhost", "127.0.0.1.example")
    before = site.number()
    with site.client() as kept:
        assert kept.get("/readyz").status_code == 200
        renewed = site.authority.write(*site.files, *hosts)
        until(lambda: site.number() == renewed)
        assert renewed != before
        assert kept.get("/readyz").status_code == 200, "connections that are open go on"
    site.files[0].write_text("no certificate")
    until(lambda: (site.number(), "the certificate that was read before stays" in site.log.read_text())[1])
    assert site.number() == renewed
    last = site.authority.write(*site.files, *hosts)
    until(lambda: site.number() == last)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (("--api-tls-certificate", "{0}/tls.crt"), "certificate and key belong together: name both files"),
        (("--api-tls-certificate", "{0}/no.crt", "--api-tls-key", "{0}/tls.key"), "certificate: {0}/no.crt: No such"),
        (
            ("--api-tls-certificate", "{0}/tls.key", "--api-tls-key", "{0}/tls.crt"),
            "do not belong together, or are not in PEM",
        ),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, files: tuple[str, ...], said: str) -> None:
    Authority().write(tmp_path / "tls.crt", tmp_path / "tls.key", "localhost")
    arguments = [each.format(tmp_path) for each in files]
    ended = subprocess.run(
        command(tmp_path / "data", *arguments), capture_output=True, text=True, timeout=START_S, check=False
    )
    assert ended.returncode == 2
    assert said.format(tmp_path) in ended.stderr


def test_pai_says_what_to_do_about_a_certificate_that_it_does_not_trust(site: TlsSite, tmp_path: Path) -> None:
    trusted = tmp_path / "authority.crt"
    trusted.write_bytes(site.authority.pem)
    line = [sys.executable, "-m", "jupyter_pai.cli", "list"]
    env = {**os.environ, "HOME": str(tmp_path), "PAI_URL": site.url, "PAI_TOKEN": site.token}
    refused = subprocess.run(line, env=env, capture_output=True, text=True, timeout=START_S, check=False)
    assert (refused.returncode, "set SSL_CERT_FILE" in refused.stderr) == (3, True)
    env["SSL_CERT_FILE"] = str(trusted)
    assert subprocess.run(line, env=env, capture_output=True, timeout=START_S, check=False).returncode == 0
