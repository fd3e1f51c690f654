"""Asking for a file while the backend starts: the reason of a refusal may be gone when it is asked for."""

from __future__ import annotations

import json

import pytest
import tornado.httpserver
import tornado.testing
import tornado.web

from jupyter_pai.client import AsyncClient
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import BackendAway
from jupyter_pai.fs.backend_files import BackendFiles, RemoteFile
from pai_backend.api.starting import StartingDelegate, starting_application

pytestmark = pytest.mark.asyncio


class Started(tornado.web.RequestHandler):
    """A backend that has ``there`` and nothing else."""

    def get(self) -> None:
        if self.request.path.endswith("/there"):
            self.set_header("X-Pai-Size", "7")
            self.finish(b"content")
        else:
            self.set_status(404)
            self.finish(json.dumps({"code": "NoFileError", "message": "There is nothing."}))

    head = get


class Backend:
    """A port that refuses ``refusals`` requests because its backend starts, and serves all after them."""

    def __init__(self, refusals: int) -> None:
        self.left = refusals
        starting = starting_application(self.why)
        self.front = StartingDelegate(starting)
        self.server = tornado.httpserver.HTTPServer(self.front)
        socket, port = tornado.testing.bind_unused_port()
        self.server.add_socket(socket)
        self.client = AsyncClient(Endpoint(f"http://127.0.0.1:{port}", "t"))

    def why(self) -> str:
        self.left -= 1
        if not self.left:
            self.front.target = tornado.web.Application([(".*", Started)])
        return "It starts."

    async def stat(self, name: str) -> RemoteFile:
        try:
            return await BackendFiles(self.client).stat(name)
        finally:
            self.client.close()
            self.server.stop()
            await self.server.close_all_connections()


@pytest.mark.parametrize(("name", "exists"), [("/there", True), ("/absent", False)])
async def test_a_backend_that_has_started_meanwhile_tells_what_is_there(name: str, exists: bool) -> None:
    there = await Backend(refusals=1).stat(name)
    assert (there.exists, there.size) == (exists, 7 if exists else 0)


async def test_a_backend_that_still_starts_is_away() -> None:
    with pytest.raises(BackendAway, match=r"It starts\."):
        await Backend(refusals=2).stat("/there")
