"""``…/pai/terminals/…`` of the Jupyter server: persistent terminals of tasks.

The messages are those of Jupyter's own terminals: ``setup``, ``stdout`` and ``disconnect`` to the browser, ``stdin``
and ``set_size`` from it. Beside them there is ``["pai", KIND, {…}]``, which says why there is no shell or how it ended,
for the panel to say in its language.
The WebSocket lasts while the connection to the task is made again; it ends with the shell.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
from datetime import UTC, datetime
from typing import Any

from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from jupyter_pai import relay
from jupyter_pai.backend_link import BackendLink
from jupyter_pai.connect.files import ssh_dir
from jupyter_pai.endpoint import Endpoint, resolve
from jupyter_pai.errors import USAGE, ClientError
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.terminals.frames import is_size
from jupyter_pai.terminals.link import asked
from jupyter_pai.terminals.login import TaskPlace, entered, logged_in
from jupyter_pai.terminals.persistent import Ending, PersistentTerminal

TERMINALS = "pai:terminals"
"""The resource that an authorizer is asked about."""

_SIZE_S = 5.0  # a page that tells no size gets the usual one
_ENDED = 1000  # RFC 6455 §7.4.1; pages go by the message before it


class TerminalsHandler(APIHandler):
    """The user's terminals in a task."""

    link: BackendLink

    def initialize(self, link: BackendLink) -> None:
        """Called by tornado with the arguments of the route."""
        self.link = link

    @authenticated
    @authorized("execute", TERMINALS)
    async def get(self, job: str, role: str, index: str) -> None:
        """List them."""
        await self._answer(job, role, index, do="list")

    @authenticated
    @authorized("execute", TERMINALS)
    async def delete(self, job: str, role: str, index: str, name: str) -> None:
        """End one, and what runs in it."""
        await self._answer(job, role, index, do="end", name=name)

    async def _answer(self, job: str, role: str, index: str, **request: str) -> None:
        try:
            place = TaskPlace(job, role, int(index), ssh_dir())
            async with entered(logged_in(self.link.find, place)) as login:
                found = await asked(login.command, owner=login.folder, **request)
        except ClientError as error:
            self.set_status(error.status or (400 if error.exit_code == USAGE else 503))
            self.finish(json.dumps(error.body()))
        else:
            self.finish(json.dumps({"terminals": found}))


class TerminalSocket(WebSocketMixin, JupyterHandler, WebSocketHandler):
    """One window that shows a terminal."""

    auth_resource = TERMINALS
    link: BackendLink

    def initialize(self, link: BackendLink) -> None:
        """Called by tornado with the arguments of the route."""
        self.link = link
        self._terminal: PersistentTerminal | None = None
        self._running: asyncio.Task[None] | None = None
        self._sized = asyncio.Event()
        self._size = 24, 80
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def check_origin(self, origin: str | None = None) -> bool:
        """Called by tornado. Jupyter's own check lets any page through that has a token, or ``allow_origin='*'``."""
        return relay.is_of_own_page(self.request.headers)

    @authenticated
    @authorized("execute", TERMINALS)
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Open the WebSocket, for a page of this server."""
        if not self.check_origin():
            raise HTTPError(403, "A page of another site may not open a terminal")
        await super().get(*args, **kwargs)

    def open(self, job: str, role: str, index: str, name: str) -> None:
        """The browser's side is open. ``?start=true``: there may be no such terminal yet."""
        super().open(job, role, index, name)
        place = TaskPlace(job, role, int(index), ssh_dir())
        self._running = asyncio.create_task(self._run(place, name), name="pai-terminal")

    async def _run(self, place: TaskPlace, name: str) -> None:
        try:
            await self._serve(place, name)
            await self._say("disconnect", 1)
        except WebSocketClosedError:
            return  # the browser has left
        except Exception:
            self.log.exception("a terminal of job %s failed", place.job)
            self.close(1011, "internal error")
        else:
            self.close(_ENDED)

    async def _serve(self, place: TaskPlace, name: str) -> None:
        """Show the terminal until it ends, and say how it did. Raises WebSocketClosedError."""
        await self._say("setup", {})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SIZE_S):
                await self._sized.wait()
        try:
            ending = await self._shown(place, name)
        except ClientError as error:
            await self._say("pai", "refused", {"message": error.message, "hint": error.hint, "code": error.code})
        else:
            await self._say("pai", "ended", vars(ending))

    async def _shown(self, place: TaskPlace, name: str) -> Ending:
        may_start = self.get_query_argument("start", "") == "true"

        def find() -> Endpoint:
            """Where the backend is. One that the user has stopped meanwhile is not started for this."""
            return resolve(start=False) if terminal.is_patient else self.link.find()

        terminal = PersistentTerminal(
            lambda: logged_in(find, place), name, self, self._size, may_start=may_start, is_patient=not may_start
        )
        self._terminal = terminal
        return await terminal.run()

    async def on_message(self, message: str | bytes) -> None:
        """A message of the browser. Others are ignored, as Jupyter's own terminals do."""
        try:
            kind, *content = json.loads(message)
        except (ValueError, TypeError, RecursionError):
            return
        if kind == "stdin" and content and isinstance(content[0], str):
            self.settings["terminal_last_activity"] = datetime.now(UTC)  # so that no culler ends a server in use
            if self._terminal is not None:
                await self._terminal.type(content[0].encode("utf-8", "replace"))
        elif kind == "set_size" and len(content) >= 2 and is_size(content[0], content[1]):
            self._size = content[0], content[1]
            self._sized.set()
            if self._terminal is not None:
                await self._terminal.resize(*self._size)

    def on_close(self) -> None:
        """The browser's side is closed; the shell goes on."""
        super().on_close()
        if self._running is not None:
            self._running.cancel()

    # ---- for the terminal ----------------------------------------------------------------------
    async def show(self, data: bytes) -> None:
        """Output; returns when the browser has room for more."""
        if text := self._decoder.decode(data):
            await self._say("stdout", text)

    async def lost(self, reason: str) -> None:
        """The connection to the task is lost, and will be made again."""
        self._decoder.reset()
        await self._say("pai", "lost", {"message": reason})

    async def _say(self, *message: object) -> None:
        await self.write_message(json.dumps(message))
