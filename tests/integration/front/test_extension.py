"""The extension in a real Jupyter server, before a fake backend: relays, sign-in, authorizer, events."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from jupyter_pai.widgets.output import MIME
from tests.support.fake_backend import TOKEN as BACKEND_TOKEN
from tests.support.jupyter import TOKEN, JupyterServer
from tests.support.running_fake import RunningFake

ROOT = Path(__file__).parents[3]
SIGNED_IN = {"Authorization": f"token {TOKEN}"}
TIMEOUT_S = 60


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value


@dataclass
class Site:
    """A Jupyter server in front of a fake backend."""

    fake: RunningFake
    server: JupyterServer
    asked: Path

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        parts = urlsplit(self.server.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, parts.path + path, body, SIGNED_IN if headers is None else headers)
            answer = connection.getresponse()
            names = {name.lower() for name, _ in answer.getheaders()}
            return Answer(answer.status, {name: answer.getheader(name) or "" for name in names}, answer.read())
        finally:
            connection.close()

    async def connect(
        self, path: str, headers: dict[str, str] = SIGNED_IN, subprotocols: list[str] | None = None
    ) -> WebSocketClientConnection:
        request = HTTPRequest(self.server.url.replace("http", "ws", 1) + path, headers=headers)
        return await websocket_connect(request, subprotocols=subprotocols)

    def request_that_reached(self, method: str, path: str) -> dict[str, str]:
        """Headers of the backend's request of that method and path."""
        return next(seen[2] for seen in self.fake.backend.requests if seen[:2] == (method, path))

    def forget_questions(self) -> None:
        self.asked.write_text("")
        self.asked.with_suffix(".refused").write_text("")

    def questions(self) -> list[str]:
        return self.asked.read_text().splitlines()


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("jupyter")
    token_file = root / "token"
    token_file.write_text(BACKEND_TOKEN)
    asked = root / "asked"
    with RunningFake() as fake:
        config: dict[str, object] = {
            "PaiExtension": {"backend_url": fake.endpoint.url, "token_file": str(token_file)},
            "ServerApp": {"authorizer_class": "tests.support.recording_authorizer.RecordingAuthorizer"},
        }
        environ = {"PAI_TEST_ASKED": str(asked), "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'backend'}"}
        with JupyterServer(root, config, environ) as server:
            yield Site(fake, server, asked)


@pytest.fixture
def site(whole_site: Site) -> Site:
    whole_site.forget_questions()
    whole_site.fake.backend.requests.clear()
    return whole_site


def test_calls_are_relayed_with_our_token_and_without_jupyters(site: Site) -> None:
    answer = site.request("POST", "pai/api/v2/jobs?name=relayed", b'{"jobName": "x"}')
    assert (answer.status, answer.json()["name"]) == (202, "relayed")
    headers = site.request_that_reached("POST", "/api/v2/jobs?name=relayed")
    assert headers["Authorization"] == f"Bearer {BACKEND_TOKEN}"
    assert TOKEN not in json.dumps(headers)


def test_a_configured_backend_is_said_to_be_fixed(site: Site) -> None:
    assert site.request("GET", "pai/contexts").json()["fixedBy"] == "PAI_URL"


def test_the_backends_errors_pass_as_they_are(site: Site) -> None:
    answer = site.request("POST", "pai/api/v2/jobs", b'{"jobName"')
    assert answer.status == 400
    assert answer.json()["code"] == "InvalidProtocolError"
    answer = site.request("GET", "pai/api/v2/jobs/a%2Fb")
    assert (answer.status, answer.json()["code"]) == (404, "NoJobError")
    assert site.request_that_reached("GET", "/api/v2/jobs/a%2Fb")


def test_a_log_keeps_its_media_type_and_offsets(site: Site) -> None:
    uid = site.fake.add_job("logged")
    site.fake.write_log(uid, b"0123")
    answer = site.request("GET", f"pai/api/v2/jobs/{uid}/logs?offset=1")
    assert (answer.body, answer.headers["x-pai-offset"], answer.headers["x-pai-next"]) == (b"123", "1", "4")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("path", ["pai/api/v2/jobs", "pai/api/v2/keys", "pai/s/x--web/", "pai/api/v2/events/stream"])
def test_strangers_get_nothing(site: Site, path: str) -> None:
    # A stream of a test before this one may still be on its way to the backend: ours is told by its query.
    answer = site.request("GET", f"{path}?by=a-stranger", headers={})
    assert answer.status in (302, 403)
    assert "login" in answer.headers.get("location", "login")
    assert not [seen for seen in site.fake.backend.requests if "a-stranger" in seen[1]]
    if path.startswith("pai/api/") and not path.endswith("stream"):  # a query does come through
        site.request("GET", f"{path}?by=a-user")
        assert any("by=a-user" in seen[1] for seen in site.fake.backend.requests)


QUESTIONS = [
    ("GET", "pai/api/v2/jobs", "read pai:jobs"),
    ("POST", "pai/api/v2/validate", "write pai:jobs"),
    ("PUT", "pai/api/v2/jobs/x/executionType", "write pai:jobs"),
    ("DELETE", "pai/api/v2/jobs/x", "write pai:jobs"),
    ("GET", "pai/api/v2/keys", "read pai:keys"),
    ("DELETE", "pai/api/v2/keys/SHA256:x", "write pai:keys"),
    ("GET", "pai/contexts", "read pai:jobs"),
    ("PUT", "pai/contexts", "write pai:jobs"),
    ("POST", "pai/connect/x", "write pai:keys"),
    ("POST", "pai/doctor/x", "write pai:keys"),
    ("POST", "pai/code/x", "write pai:keys"),
    ("POST", "pai/api/v2/jobs/x/services/web/ticket", "execute pai:services"),
    ("GET", "pai/s/x--web/", "execute pai:services"),
    ("POST", "pai/s/x--web/", "execute pai:services"),
    ("POST", "pai/local/x--web", "execute pai:services"),
    ("DELETE", "pai/local/x--web", "execute pai:services"),
    ("GET", "pai/api/v2/events/stream", "read pai:jobs"),
    ("POST", "pai/notebooks", "write pai:jobs"),
    ("GET", "pai/notebooks/x", "read pai:jobs"),
    ("POST", "pai/notebooks/x", "read pai:jobs"),
    ("POST", "pai/programs", "write pai:jobs"),
    ("POST", "pai/folders", "write pai:jobs"),
    ("POST", "pai/sweeps", "write pai:jobs"),
    ("GET", "pai/sweeps/x", "read pai:jobs"),
    ("POST", "pai/sweeps/x", "write pai:jobs"),
]


@pytest.mark.parametrize(("method", "path", "question"), QUESTIONS)
def test_each_verb_asks_for_its_own_action_and_resource(site: Site, method: str, path: str, question: str) -> None:
    site.asked.with_suffix(".refused").write_text(question)
    body = b"{}" if method in ("POST", "PUT") else None
    assert site.request(method, f"{path}?by=whom-the-authorizer-refuses", body).status == 403
    assert site.questions() == [question]
    # The extension's own stream of events may reach the backend at any time: ours is told by its query.
    assert not [seen for seen in site.fake.backend.requests if "whom-the-authorizer-refuses" in seen[1]]


def test_a_task_that_cannot_be_reached_is_refused_with_the_reason(site: Site) -> None:
    site.fake.add_job("waits")
    answer = site.request("POST", "pai/connect/waits", b"")
    assert (answer.status, answer.json()["code"]) == (400, "InvalidParametersError")
    assert "there is nothing to log in to" in str(answer.json()["message"])
    answer = site.request("POST", "pai/doctor/nobody", b"")
    assert (answer.status, answer.json()["code"]) == (404, "NoJobError")
    answer = site.request("POST", "pai/connect/waits?index=one", b"")
    assert (answer.status, answer.json()["message"]) == (400, "'one' is not a task index.")


@pytest.mark.asyncio
async def test_streams_are_pushed_and_end_as_the_backends_do(site: Site) -> None:
    uid = site.fake.add_job("streamed")
    stream = await site.connect(f"pai/api/v2/jobs/{uid}/events/stream?after=0")
    first = await asyncio.wait_for(stream.read_message(), TIMEOUT_S)
    assert json.loads(first or "")["seq"] == 1
    await asyncio.to_thread(site.fake.advance, uid, "SUCCEEDED")
    second = await asyncio.wait_for(stream.read_message(), TIMEOUT_S)
    assert json.loads(second or "")["seq"] == 2
    assert await asyncio.wait_for(stream.read_message(), TIMEOUT_S) is None
    assert stream.close_code == 1000


@pytest.mark.asyncio
async def test_a_refused_stream_is_refused_here_too(site: Site) -> None:
    with pytest.raises(HTTPClientError) as caught:
        await site.connect("pai/api/v2/jobs/nobody/events/stream")
    assert caught.value.code == 404
    assert caught.value.response is not None
    assert json.loads(caught.value.response.body)["code"] == "NoJobError"


def test_a_service_sees_the_page_and_its_own_cookies_only(site: Site) -> None:
    hubs = "jupyterhub-user-ann=h; jupyterhub-session-id=h; jupyterhub-user-ann-oauth-state=h"
    cookies = f"theme=dark; username-127-0-0-1=login; _xsrf=jupyters; {hubs}"
    headers = {**SIGNED_IN, "Cookie": cookies, "Origin": "http://x", "Pai-Relay-Prefix": "/elsewhere"}
    answer = site.request("GET", f"pai/s/x--web/a%20b?q=1&token={TOKEN}", headers=headers)
    seen = answer.json()
    assert (seen["path"], seen["query"]) == ("/s/x--web/a%20b", "q=1")
    passed = seen["headers"]
    assert isinstance(passed, dict)
    assert passed["Origin"] == "http://x"
    assert (passed["Pai-Relay-Prefix"], passed["Pai-Relay-Scheme"]) == ("/hub%40x/pai", "http")
    assert passed["Pai-Relay-Host"] == urlsplit(site.server.url).netloc
    assert passed["Host"] != passed["Pai-Relay-Host"], "a reverse proxy finds the backend by its own name"
    assert TOKEN not in json.dumps(passed)
    assert passed["Cookie"] == "theme=dark"
    # Jupyter's own cookie for signing in by token is there too.
    assert "_xsrf=inner; Path=/hub%40x/pai/s/x--web/" in answer.headers["set-cookie"].split(", ")


def test_a_service_does_not_own_jupyters_origin(site: Site) -> None:
    answer = site.request("GET", "pai/s/x--web/page", headers=SIGNED_IN)
    jupyters, services = answer.headers["content-security-policy"].split(", ")
    assert jupyters.startswith("frame-ancestors 'self'; report-uri")
    assert services == "default-src 'self'"
    said = {"service-worker-allowed", "clear-site-data", "alt-svc", "strict-transport-security", "nel"}
    assert not said & {name.lower() for name in answer.headers}
    for worker in ({"Service-Worker": "script"}, {"Sec-Fetch-Dest": "serviceworker"}):
        assert site.request("GET", "pai/s/x--web/worker.js", headers={**SIGNED_IN, **worker}).status == 403


def test_a_services_redirect_stays_below_jupyter(site: Site) -> None:
    answer = site.request("GET", "pai/s/x--web/redirect")
    assert (answer.status, answer.headers["location"]) == (302, "/hub%40x/pai/s/x--web/there")


def test_a_services_answer_arrives_piece_by_piece(site: Site) -> None:
    parts = urlsplit(site.server.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    connection.request("GET", f"{parts.path}pai/s/x--web/stream", headers=SIGNED_IN)
    answer = connection.getresponse()
    assert answer.readline() == b"first\n"  # the second is written only after this
    site.fake.add_job("news")
    site.fake.write_log(next(iter(site.fake.backend.jobs)), b"")
    assert answer.readline() == b"second\n"
    connection.close()


def test_a_foreign_page_may_not_send_to_a_service(site: Site) -> None:
    foreign = {**SIGNED_IN, "Sec-Fetch-Site": "cross-site"}
    assert site.request("POST", "pai/s/x--web/", b"x", foreign).status == 403
    answer = site.request("POST", "pai/s/x--web/", b"x" * 100_000)
    assert (answer.status, len(answer.body)) == (201, 100_000)


@pytest.mark.asyncio
async def test_a_foreign_page_may_not_open_a_services_websocket_even_with_a_token(site: Site) -> None:
    with pytest.raises(HTTPClientError) as caught:
        await site.connect("pai/s/x--web/echo?by=a-foreign-page", {**SIGNED_IN, "Origin": "http://evil.example"})
    assert caught.value.code == 403
    assert not [seen for seen in site.fake.backend.requests if "a-foreign-page" in seen[1]]
    own = {**SIGNED_IN, "Origin": site.server.url.removesuffix("/hub%40x/")}
    (await site.connect("pai/s/x--web/echo", own)).close()


@pytest.mark.asyncio
async def test_a_services_websocket_passes_both_ways_with_subprotocol_and_close_code(site: Site) -> None:
    socket = await site.connect("pai/s/x--web/echo", subprotocols=["one", "two"])
    assert socket.selected_subprotocol == "two"
    for message in ("text", b"\x00bytes" * 1000):
        await socket.write_message(message, binary=isinstance(message, bytes))
        assert await asyncio.wait_for(socket.read_message(), TIMEOUT_S) == message
    await socket.write_message("bye")
    assert await asyncio.wait_for(socket.read_message(), TIMEOUT_S) is None
    assert (socket.close_code, socket.close_reason) == (3007, "as asked")


@pytest.mark.asyncio
async def test_job_events_come_over_jupyters_event_bus(site: Site) -> None:
    site.request("GET", "pai/api/v2/jobs")  # the follower waits until the backend is needed
    bus = await site.connect("api/events/subscribe")
    uid = site.fake.add_job("announced")
    stop = threading.Event()

    def keep_moving() -> None:
        while not stop.wait(0.1):  # until the follower, which connects in its own time, has seen one
            site.fake.advance(uid, "RUNNING")

    mover = threading.Thread(target=keep_moving)
    mover.start()
    try:
        while True:
            async with asyncio.timeout(TIMEOUT_S):
                message = json.loads(await bus.read_message() or "")
            if message["schema_id"] == "https://jupyter-pai.readthedocs.io/events/job/v1" and message["job"] == uid:
                break
    finally:
        stop.set()
        mover.join()
        bus.close()
    assert message["type"] in ("job.submitted", "job.state")
    assert (message["at"], message["payload"]) == ("2026-11-21T12:00:00Z", {})


def test_a_backend_that_is_away_is_a_503_with_its_code_and_comes_back(site: Site) -> None:
    site.fake.stop()
    try:
        answer = site.request("GET", "pai/api/v2/jobs")
        assert (answer.status, answer.json()["code"]) == (503, "UnavailableError")
        assert answer.headers["content-type"] == "application/json"
        assert "Connection refused" in str(answer.json()["message"])
        assert site.request("GET", "pai/s/x--web/").status == 503
        assert site.request("GET", "pai/api/v2/events/stream", headers=_UPGRADE).status == 503
    finally:
        site.fake.start_again()
    assert site.request("GET", "pai/api/v2/jobs").status == 200


_UPGRADE = {
    **SIGNED_IN,
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Version": "13",
}


def test_looking_is_no_activity_and_submitting_is(site: Site) -> None:
    def last_activity() -> object:
        return site.request("GET", "api/status?no_track_activity=1").json()["last_activity"]

    before = last_activity()
    site.request("GET", "pai/api/v2/jobs")
    assert last_activity() == before
    site.request("POST", "pai/api/v2/validate", b'{"jobName": "x"}')
    assert last_activity() != before


def test_a_job_is_an_output_of_a_notebook(site: Site) -> None:
    uid = site.fake.add_job("train")
    site.fake.write_log(uid, "损失 <0.5>\n".encode())
    site.fake.advance(uid, "SUCCEEDED")
    bundle = site.request("GET", f"pai/output/{uid}").json()
    assert bundle.keys() == {MIME, "text/html", "text/plain"}
    assert "损失 &lt;0.5&gt;" in str(bundle["text/html"])
    output = bundle[MIME]
    assert isinstance(output, dict)
    assert (output["state"], output["ended"]) == ("SUCCEEDED", True)
    missing = site.request("GET", "pai/output/nothing")
    assert (missing.status, missing.json()["code"]) == (404, "NoJobError")
    assert site.request("GET", f"pai/output/{uid}", headers={}).status == 403
    assert "read pai:jobs" in site.questions()


def test_files_of_the_server_are_read_and_written_for_those_who_may(site: Site) -> None:
    for method, path, needed in (
        ("POST", "pai/notebooks", "read contents"),
        ("POST", "pai/notebooks/x", "write contents"),
        ("POST", "pai/programs", "read contents"),
        ("POST", "pai/folders", "read contents"),
    ):
        site.asked.with_suffix(".refused").write_text(needed)
        assert site.request(method, path, b"{}").status == 403


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("notebooks", b"[]", "The body is not a JSON object."),
        ("notebooks", b'{"path": "none.ipynb"}', "none.ipynb cannot be read"),
        ("notebooks", b'{"path": 5}', "path is not of the type str."),
        ("notebooks", b'{"parameters": {"1x": "2"}}', "'1x' is not the name of a variable."),
        ("notebooks/none", b"{}", "There is no job none."),
        ("programs", b'{"path": "none.py"}', "none.py cannot be read"),
        ("programs", b'{"path": "../../etc/profile.sh"}', "cannot be read"),
        ("programs", b'{"path": "notes.txt"}', "notes.txt is not a program that a job can run."),
        ("programs", b'{"path": "a.py", "arguments": "--name \'x"}', "a quotation mark that is not closed"),
        ("programs", b'{"path": "a.py", "arguments": "1\\nrm x"}', "The arguments have several lines."),
        ("folders", b'{"path": "none"}', "There is no folder none."),
        ("folders", b'{"path": 1}', "path is not of the type str."),
        ("sweeps", b'{"document": "{}"}', "The sweep has no values."),
        ("sweeps", b'{"document": "{}", "axes": ["lr"]}', "'lr' is not NAME=VALUE,VALUE"),
        ("sweeps", b'{"document": "{", "axes": ["lr=1"]}', "The document cannot be read for a sweep"),
        ("sweeps", b'{"document": "{}", "axes": ["lr=1"], "parallel": 0}', "parallel is less than 1."),
        ("sweeps", b'{"document": "{}", "axes": ["lr=1"], "name": "../x"}', "is not a name for jobs."),
        ("sweeps", b'{"document": "{}", "axes": ["a=1..99", "b=1..99"]}', "The sweep would have 9,801 jobs"),
        ("sweeps/rates", b"{}", "The new sweep has no name."),
    ],
)
def test_a_request_that_cannot_be_carried_out_says_why_and_makes_no_job(
    site: Site, path: str, body: bytes, told: str
) -> None:
    jobs = len(site.fake.backend.jobs)
    answer = site.request("POST", f"pai/{path}", body)
    assert answer.status in (400, 404)
    assert told in str(answer.json()["message"])
    assert len(site.fake.backend.jobs) == jobs
