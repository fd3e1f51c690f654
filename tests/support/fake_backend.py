"""A small backend for tests of the front: the shapes of docs/rest.md over real HTTP and WebSocket, no jobs run.

Limited to what the front uses. A test says what happens by calling :meth:`FakeBackend.advance` and
:meth:`FakeBackend.write_log`; nothing moves by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import tornado.web
import tornado.websocket
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from jupyter_pai.endpoint import Endpoint

TOKEN = "a-token-for-tests-only"
NOW = "2026-11-21T12:00:00Z"
FINAL = ("STOPPED", "SUCCEEDED", "FAILED")


def task_body(uid: str, state: str = "WAITING", phase: str = "queued") -> dict[str, Any]:
    """One task as the wire has it."""
    return {
        "uid": f"{uid}-0-0-0",
        "role": "main",
        "index": 0,
        "alias": f"{uid}--main-0",
        "attempt": 0,
        "state": state,
        "phase": phase,
        "node": "carol",
        "address": "127.0.0.1",
        "gpus": [0],
        "gpuType": "TITANX",
        "ports": {"web": [15001]},
        "startedTime": None if phase == "queued" else NOW,
        "completedTime": NOW if state in FINAL else None,
        "exit": None,
        "keptUntil": None,
        "sshCommand": f"ssh -p 2222 {uid}--main-0@127.0.0.1",
    }


def job_body(name: str, uid: str, **changes: Any) -> dict[str, Any]:
    """A job's detail as the wire has it."""
    return {
        "uid": uid,
        "id": f"tester~{name}",
        "name": name,
        "username": "tester",
        "alias": uid,
        "state": "WAITING",
        "phase": "queued",
        "why": "",
        "virtualCluster": "default",
        "submissionTime": NOW,
        "launchedTime": None,
        "completedTime": None,
        "retries": 0,
        "totalTaskNumber": 1,
        "totalGpuNumber": 1,
        "exitStatus": None,
        "warnings": [],
        "dialect": "scm",
        "image": "ubuntu",
        "attempt": 0,
        "stopReason": "",
        "exit": None,
        "retryDetails": {"user": 0, "platform": 0, "resource": 0},
        "version": 1,
        "sshCommand": f"ssh -p 2222 {uid}@127.0.0.1",
        "taskRoles": [{"name": "main", "taskStatuses": [task_body(uid)]}],
        "services": [
            {
                "label": "web",
                "role": "main",
                "index": 0,
                "alias": f"{uid}--web",
                "port": 15001,
                "url": f"http://{uid}--web.localhost:8000/",
                "pathUrl": f"/s/{uid}--web/",
                "state": "WAITING",
            }
        ],
        **changes,
    }


class FakeBackend:
    """State, a server on a free port of 127.0.0.1, and the means to move jobs along."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.sources: dict[str, bytes] = {}
        self.events: list[dict[str, Any]] = []
        self.logs: dict[str, bytes] = {}
        self.keys: list[dict[str, str]] = []
        self.shares: list[dict[str, Any]] = []
        self.given: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.drop_streams_after: int | None = None
        self.drop_by_ping = False
        self.away_for = 0
        """So many questions for a job are answered with 503."""
        self.changed = asyncio.Condition()
        self._server: HTTPServer | None = None
        self.port = 0

    async def start(self, port: int = 0) -> Endpoint:
        """Serve; returns where."""
        sockets = bind_sockets(port, "127.0.0.1")
        self.port = sockets[0].getsockname()[1]
        self._server = HTTPServer(self._application())
        self._server.add_sockets(sockets)
        return self.endpoint

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._server is not None:
            self._server.stop()
            await self._server.close_all_connections()
            self._server = None

    @property
    def endpoint(self) -> Endpoint:
        """Where it answers."""
        return Endpoint(f"http://127.0.0.1:{self.port}", TOKEN)

    def add_job(self, name: str, **changes: Any) -> dict[str, Any]:
        """A job that exists."""
        uid = f"j{len(self.jobs):016x}"
        self.jobs[uid] = job_body(name, uid, **changes)
        self._event(uid, "job.submitted")
        return self.jobs[uid]

    def find(self, name: str) -> dict[str, Any] | None:
        """A job by any of its names."""
        return next((job for job in self.jobs.values() if name in (job["uid"], job["name"], job["id"])), None)

    def _event(self, uid: str, kind: str) -> None:
        seq = 1 + sum(event["job"] == uid for event in self.events)
        self.events.append({"job": uid, "seq": seq, "at": NOW, "type": kind, "payload": {}})

    async def advance(self, uid: str, state: str, **changes: Any) -> None:
        """Move a job to a state and tell everyone; waits for streams that are sending, so none misses it."""
        phase = "ended" if state in FINAL else state.lower()
        tasks = [{"name": "main", "taskStatuses": [task_body(uid, state, phase)]}]
        async with self.changed:
            self.jobs[uid] = {**self.jobs[uid], "state": state, "phase": phase, "taskRoles": tasks, **changes}
            self._event(uid, "job.state")
            self.changed.notify_all()

    async def write_log(self, uid: str, data: bytes) -> None:
        """A task of the job has written something."""
        async with self.changed:
            self.logs[uid] = self.logs.get(uid, b"") + data
            self.changed.notify_all()

    def _application(self) -> tornado.web.Application:
        route = {"backend": self}
        job = r"/api/v2/jobs/([^/]+)"
        return tornado.web.Application(
            [
                (r"/api/v2/jobs", _Jobs, route),
                (r"/api/v2/validate", _Validate, route),
                (job, _Job, route),
                (job + r"/executionType", _Stop, route),
                (job + r"/release", _Release, route),
                (job + r"/config", _Source, route),
                (job + r"/events", _Events, route),
                (job + r"/events/stream", _EventStream, route),
                (job + r"/logs", _Log, route),
                (job + r"/logs/stream", _LogStream, route),
                (job + r"/ssh", _Ssh, route),
                (job + r"/services/([^/]+)/ticket", _Ticket, route),
                (r"/api/v2/events/stream", _AllEvents, route),
                (r"/api/v2/keys", _Keys, route),
                (r"/api/v2/shares", _Shares, route),
                (r"/api/v2/info", _Info, route),
                (r"/s/(.*)/echo", _ServiceEcho, route),
                (r"/s/(.*)", _Service, route),
                (r".*", _Nothing, route),
            ]
        )


class _Base(tornado.web.RequestHandler):
    def initialize(self, backend: FakeBackend) -> None:
        self.backend = backend

    def prepare(self) -> None:
        self.backend.requests.append((self.request.method or "", self.request.uri or "", dict(self.request.headers)))
        if self.request.headers.get("Authorization") != f"Bearer {TOKEN}" and self.request.path != "/api/v2/info":
            self.fail(401, "UnauthorizedUserError", "This token is not known.")

    def fail(self, status: int, code: str, message: str, errors: list[dict[str, Any]] | None = None) -> None:
        self.set_status(status)
        self.finish({"code": code, "message": message, "hint": "", "requestId": "r1", "errors": errors or []})

    def job_or_fail(self, name: str) -> dict[str, Any] | None:
        job = self.backend.find(name)
        if job is None:
            self.fail(404, "NoJobError", f"There is no job {name}.")
        return job

    def document(self) -> dict[str, Any] | None:
        """The body; refused, with the place, when it is no JSON or has no jobName."""
        try:
            document: dict[str, Any] = json.loads(self.request.body)
        except json.JSONDecodeError as error:
            fault = {
                "path": "$",
                "message": error.msg,
                "line": error.lineno,
                "column": error.colno,
                "hint": "Close it.",
            }
            self.fail(400, "InvalidProtocolError", "The document is no JSON.", [fault])
            return None
        return document


class _Nothing(_Base):
    def get(self) -> None:
        self.fail(404, "NoApiError", "There is nothing here.")

    post = get


class _Info(_Base):
    def get(self) -> None:
        self.write({"name": "Test Cluster", "version": "0.1.0", "engine": "fake"})


class _Jobs(_Base):
    def get(self) -> None:
        states = self.get_argument("state", "")
        own = [job for job in self.backend.jobs.values() if job["username"] == "tester"]
        jobs = [job for job in own if not states or job["state"] in states.split(",")]
        rows = [{**job, "warnings": len(job["warnings"]), "gpuTypes": []} for job in reversed(jobs)]
        if self.get_argument("withTotalCount", "false") == "true":
            self.finish({"totalCount": len(rows), "data": rows})
        else:
            self.finish(json.dumps(rows))

    async def post(self) -> None:
        document = self.document()
        if document is None:
            return
        name = self.get_argument("name", document["jobName"])
        if self.backend.find(name):
            self.fail(409, "ConflictJobError", f"You already have a job {name}.")
            return
        job = self.backend.add_job(name)
        self.backend.sources[job["uid"]] = self.request.body
        async with self.backend.changed:
            self.backend.changed.notify_all()
        self.set_status(202)
        self.finish({**job, "status": 202, "message": "submitted"})


class _Validate(_Base):
    def post(self) -> None:
        name = json.loads(self.request.body)["jobName"]
        self.finish({"valid": True, "dialect": "scm", "name": name, "warnings": [], "errors": [], "spec": {}})


class _Job(_Base):
    def get(self, name: str) -> None:
        if self.backend.away_for:
            self.backend.away_for -= 1
            self.fail(503, "UnavailableError", "The database is away.")
            return
        job = self.job_or_fail(name)
        if job:
            self.finish(job)


class _Stop(_Base):
    async def put(self, name: str) -> None:
        job = self.job_or_fail(name)
        if job and json.loads(self.request.body) == {"value": "STOP"}:
            await self.backend.advance(job["uid"], "STOPPED", exit={"status": 255, "message": "stopped", "role": None})
            self.set_status(202)
            self.finish({"status": 202, "message": "stopping"})


class _Release(_Base):
    async def post(self, name: str) -> None:
        job = self.job_or_fail(name)
        if not job:
            return
        tasks = [task for role in job["taskRoles"] for task in role["taskStatuses"]]
        wanted = self.get_query_argument("task", "")
        names = [f"{task['role']}-{task['index']}" for task in tasks if task["keptUntil"]]
        going = [each for each in names if not wanted or each in wanted.split(",")]
        for task in tasks:
            task["keptUntil"] = None
        said = f"released: {', '.join(going)}" if going else "nothing to release: no such task is kept"
        if going:
            await self.backend.advance(job["uid"], "FAILED")
        self.set_status(202)
        self.finish({"status": 202, "message": f"job {job['name']}: {said}", "tasks": going})


class _Source(_Base):
    def get(self, name: str) -> None:
        job = self.job_or_fail(name)
        if job:
            self.set_header("Content-Type", "application/json")
            if b'"******"' in self.backend.sources[job["uid"]]:
                self.set_header("X-Pai-Masked", "true")
            self.finish(self.backend.sources[job["uid"]])


class _Events(_Base):
    def get(self, name: str) -> None:
        job = self.job_or_fail(name)
        if job:
            after = int(self.get_argument("after", "0"))
            events = [e for e in self.backend.events if e["job"] == job["uid"] and e["seq"] > after]
            self.finish({"data": events})


class _Log(_Base):
    def get(self, name: str) -> None:
        job = self.job_or_fail(name)
        if job:
            log = self.backend.logs.get(job["uid"], b"")
            offset = int(self.get_argument("offset", "0"))
            first = max(len(log) + offset, 0) if offset < 0 else min(offset, len(log))
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.set_header("X-Pai-Offset", str(first))
            self.set_header("X-Pai-Next", str(len(log)))
            self.finish(log[first:])


class _Ssh(_Base):
    def get(self, name: str) -> None:
        job = self.job_or_fail(name)
        if job:
            entry = {"alias": f"{job['uid']}--main-0", "user": "tester", "role": "main", "index": 0}
            self.finish(
                {
                    "host": "127.0.0.1",
                    "port": 2222,
                    "hostKeyAlias": "pai-test",
                    "knownHosts": ["pai-test ssh-ed25519 AAAAkey"],
                    "gatewayHostKey": "ssh-ed25519 AAAAkey",
                    "certAuthority": "@cert-authority hello,hello--* ssh-ed25519 AAAAhostCA",
                    "entries": [{**entry, "state": job["state"], "reachable": job["state"] == "RUNNING"}],
                }
            )


class _Ticket(_Base):
    def post(self, name: str, label: str) -> None:
        job = self.job_or_fail(name)
        if job:
            self.set_status(201)
            url = f"http://{job['uid']}--{label}.localhost:8000/.pai/signin?ticket=t1"
            path_url = f"/s/{job['uid']}--{label}/.pai/signin?ticket=t1"
            self.finish({"url": url, "pathUrl": path_url, "expiresAt": NOW, "proof": "p1", "isJupyter": False})


class _Keys(_Base):
    def get(self) -> None:
        self.finish({"data": self.backend.keys})

    def post(self) -> None:
        value = json.loads(self.request.body)
        key = {**value, "fingerprint": f"SHA256:{len(self.backend.keys)}"}
        self.backend.keys.append(key)
        self.set_status(201)
        self.finish(key)


class _Shares(_Base):
    def get(self) -> None:
        given = self.get_query_argument("given", "false") == "true"
        self.finish({"data": self.backend.given if given else self.backend.shares})


class _Socket(tornado.websocket.WebSocketHandler, _Base):
    """Sends what ``pending`` yields whenever something has changed, until ``finished``."""

    async def get(self, *args: str, **kwargs: Any) -> None:
        if args and self.backend.find(args[0]) is None:
            self.fail(404, "NoJobError", f"There is no job {args[0]}.")
            return
        await super().get(*args, **kwargs)

    def open(self, *args: str) -> None:
        job = self.backend.find(args[0]) if args else None
        self.uid = job["uid"] if job else ""
        self.begin()
        self.task = asyncio.get_running_loop().create_task(self._push())

    def on_close(self) -> None:
        self.task.cancel()

    async def _push(self) -> None:
        while True:
            async with self.backend.changed:
                for message in self.pending():
                    await self.write_message(message, binary=isinstance(message, bytes))
                    if self.backend.drop_streams_after is not None:
                        self.backend.drop_streams_after -= 1
                        if self.backend.drop_streams_after == 0:
                            self.backend.drop_streams_after = None
                            if self.backend.drop_by_ping:
                                self.close(1000, "ping timed out")  # tornado's words
                            else:
                                self.stream_of_connection().close()
                            return
                if self.finished():
                    self.close(1000, "complete")
                    return
                await self.backend.changed.wait()

    def stream_of_connection(self) -> Any:
        """The transport, to be cut without a goodbye."""
        assert self.ws_connection is not None
        return self.ws_connection.stream

    def begin(self) -> None:
        raise NotImplementedError

    def pending(self) -> Iterator[str | bytes]:
        raise NotImplementedError

    def finished(self) -> bool:
        return bool(self.uid) and self.backend.jobs[self.uid]["state"] in FINAL


class _EventStream(_Socket):
    def begin(self) -> None:
        self.seen = int(self.get_argument("after", "0"))

    def pending(self) -> Iterator[str]:
        for event in [e for e in self.backend.events if e["job"] == self.uid and e["seq"] > self.seen]:
            self.seen = event["seq"]
            yield json.dumps(event)


class _AllEvents(_Socket):
    def begin(self) -> None:
        self.position = int(self.get_argument("position", str(len(self.backend.events))))

    def pending(self) -> Iterator[str]:
        for event in self.backend.events[self.position :]:
            self.position += 1
            yield json.dumps({"position": str(self.position), "event": event})


class _LogStream(_Socket):
    def begin(self) -> None:
        self.offset = int(self.get_argument("offset", "0"))

    def pending(self) -> Iterator[bytes]:
        data = self.backend.logs.get(self.uid, b"")[self.offset :]
        self.offset += len(data)
        if data:
            yield data


class _Service(_Base):
    """A service that says what reached it, streams, redirects and sets cookies."""

    @property
    def outer(self) -> str:
        """Where the relay in front has put our root."""
        return self.request.headers["Pai-Relay-Prefix"]

    async def get(self, path: str) -> None:
        if path.endswith("/redirect"):
            self.redirect(f"{self.outer}/s/{path.removesuffix('/redirect')}/there")
            return
        if path.endswith("/refused"):
            self.fail(503, "UnavailableError", "The task does not listen yet.")
            return
        self.set_header("Set-Cookie", f"_xsrf=inner; Path={self.outer}/s/{path.split('/')[0]}/")
        self.set_header("Content-Security-Policy", "default-src 'self'")
        for name in ("Service-Worker-Allowed", "Clear-Site-Data", "Alt-Svc", "Strict-Transport-Security", "NEL"):
            self.set_header(name, "/")  # what a service would say to own the origin it shares
        if path.endswith("/stream"):
            self.write("first\n")
            await self.flush()
            async with self.backend.changed:
                await self.backend.changed.wait()
            self.finish("second\n")
            return
        self.finish({"path": self.request.path, "query": self.request.query, "headers": dict(self.request.headers)})

    def post(self, path: str) -> None:
        self.set_status(201)
        self.finish(self.request.body)


class _ServiceEcho(tornado.websocket.WebSocketHandler, _Base):
    def check_origin(self, origin: str) -> bool:
        """As an application of a task that hears of the browser's host."""
        return urlsplit(origin).netloc == self.request.headers.get("Pai-Relay-Host")

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        return subprotocols[-1] if subprotocols else None

    async def on_message(self, message: str | bytes) -> None:
        if message == "bye":
            self.close(3007, "as asked")
        else:
            await self.write_message(message, binary=isinstance(message, bytes))
