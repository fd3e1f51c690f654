"""Files of the default file system, streamed both ways."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from datetime import UTC
from email.utils import format_datetime
from typing import Any

from pai_backend.api.base import DRAIN_BYTES, ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import FileQuery, NewPath, RemoveQuery, UploadQuery
from pai_backend.api.services.storage import FileService, Receiving
from pai_backend.api.wire import FileListing, UploadState
from pai_backend.model.digits import whole_number
from pai_backend.model.errors import (
    FileConflict,
    Forbidden,
    InvalidParameters,
    NoEnoughQuota,
    NoSuchFile,
    PaiError,
    TooLarge,
    Unavailable,
)
from pai_backend.model.scope import Scope
from pai_backend.storage.files import FileInfo
from pai_backend.store import deeds

log = logging.getLogger(__name__)


class FileHandler(ApiHandler):
    """``/api/v2/fs/{path}``; the path may hold slashes."""

    scope = Scope.FILES

    _receiving: Receiving | None = None
    _abandoned: asyncio.Task[None] | None = None

    @property
    def service(self) -> FileService:
        """The service, for the caller."""
        return FileService(self.ctx, self.user)

    def drain_bytes(self) -> int:
        """A file's body is taken whatever its length; other bodies are short."""
        return 1 << 62 if self.request.method == "PUT" else DRAIN_BYTES

    async def prepare(self) -> None:
        """As the base; for an upload all is checked and open before the first byte comes."""
        await super().prepare()
        if self.request.method != "PUT":
            return
        try:
            if self._refusal is not None:
                raise self._refusal
            self._receiving = await self._begin()
        except PaiError as error:
            self._refuse(error)

    async def _begin(self) -> Receiving:
        query = self.parse_query(UploadQuery)
        length = self.request.headers.get("Content-Length", "")
        whole = query.size
        if whole is None and (size := whole_number(length)) is not None:
            whole = query.offset + size
        return await self.service.begin(self.path_args[0], query.offset, whole, query.sha256, may_replace=query.replace)

    def _refuse(self, error: PaiError) -> None:
        """Answer with this once the body has come, or now when that may take long; the connection then ends."""
        self._refusal = error
        length = self.request.headers.get("Content-Length", "")
        size = whole_number(length)
        if size is None or size > DRAIN_BYTES:
            self.send_error(exc_info=(type(error), error, None))

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Called by tornado with each part of the body; it waits for what is returned."""
        if self._receiving is None:
            return super().data_received(chunk)
        if self._refusal is not None:
            return None
        try:
            written = self._receiving.add(chunk)
        except PaiError as error:
            self._refuse(error)
            return None
        return None if written is None else self._write(written)

    async def _write(self, written: Awaitable[None]) -> None:
        try:
            await written
            await self.require_still()
        except PaiError as error:
            self._refuse(error)

    def on_connection_close(self) -> None:
        """Called by tornado when the client has gone: keep what came."""
        super().on_connection_close()
        self._let_go()

    def on_finish(self) -> None:
        """Called by tornado after every request."""
        self._let_go()

    def _let_go(self) -> None:
        if self._receiving is not None and self._abandoned is None:
            self._abandoned = asyncio.create_task(self._close(self._receiving))

    @staticmethod
    async def _close(receiving: Receiving) -> None:
        try:
            await receiving.close()
        except PaiError as error:
            log.warning("the rest of an upload could not be kept: %s", error.message)

    @operation(
        Operation(
            "A file's bytes, or what a directory holds.",
            query=FileQuery,
            answer=FileListing,
            or_bytes=True,
            raises=(NoSuchFile, FileConflict, Forbidden, Unavailable),
        )
    )
    async def get(self, path: str, query: FileQuery) -> FileListing | None:
        """Bytes from ``offset`` on as ``application/octet-stream``; a directory as JSON."""
        info, _ = await self.service.stat(path)
        if info is None or info.directory:
            listing = await self.service.listing(path, query.after, query.limit)
            self.set_header("X-Pai-Kind", "directory")
            return listing
        await self._send(path, query.offset, query.length)
        return None

    async def _send(self, path: str, offset: int, length: int | None) -> None:
        """The file from there on. When its storage fails on the way, the connection ends before the last byte."""
        reading = await self.service.open(path)
        try:
            left = max(0, reading.info.size - offset)
            left = left if length is None else min(left, length)
            if left:
                await reading.seek(offset)
            self._describe(reading.info)
            self.set_header("Content-Disposition", "attachment")  # never a page of the site that relays it
            self.set_header("Content-Length", str(left))
            while left and (data := await reading.next(left)):
                left -= len(data)
                self.write(data)
                await self.flush()
                await self.require_still()
            if left:
                self._cut("it became shorter while it was sent")
        except PaiError as error:
            if not self._headers_written:
                raise
            self._cut(error.message)
        finally:
            await reading.close()

    def _cut(self, reason: str) -> None:
        """End the connection: the client sees that bytes are missing."""
        log.warning("%s %s was cut: %s [%s]", self.request.method, self.request.path, reason, self.request_id)
        connection: Any = self.request.connection
        connection.stream.close()

    @operation(
        Operation(
            "What is at a path, and in `X-Pai-Kept` how many bytes are kept of an unfinished upload.",
            answer=FileListing,
            or_bytes=True,
            raises=(NoSuchFile, Forbidden, Unavailable, InvalidParameters),
        )
    )
    async def head(self, path: str) -> None:
        """Headers alone, also when there is nothing: then ``X-Pai-Kept`` may be the only answer."""
        info, kept = await self.service.stat(path)
        self.set_header("X-Pai-Kept", str(kept))
        if info is None:
            self.set_header("Content-Type", "application/json")
            self.set_status(404)
            return
        self._describe(info)
        if not info.directory:
            self.set_header("Content-Length", str(info.size))

    def _describe(self, info: FileInfo) -> None:
        """Headers that tell one version of a file from another."""
        self.set_header("X-Pai-Kind", "directory" if info.directory else "file")
        self.set_header("X-Pai-Size", str(info.size))
        if info.modified is not None:
            self.set_header("Last-Modified", format_datetime(info.modified.astimezone(UTC), usegmt=True))
        self.set_header("Content-Type", "application/json" if info.directory else "application/octet-stream")

    @operation(
        Operation(
            "Upload a file, or a part of it; the body is its bytes.",
            audit="file.written",
            query=UploadQuery,
            takes_bytes=True,
            answer=UploadState,
            raises=(FileConflict, Forbidden, TooLarge, NoEnoughQuota, Unavailable),
        )
    )
    async def put(self, _path: str, _query: UploadQuery) -> UploadState:
        """The body has come; with it the file may be complete."""
        assert self._receiving is not None  # else ``begin_verb`` has refused
        if self._receiving.completes:
            await self.begin_deed()
        else:
            deeds.changes_nothing()
        return await self._receiving.end()

    @operation(
        Operation(
            "Make a directory, or copy what is elsewhere to here.",
            audit="file.made",
            body=NewPath,
            status=204,
            raises=(NoSuchFile, FileConflict, Forbidden, NoEnoughQuota, InvalidParameters, Unavailable),
        )
    )
    async def post(self, path: str, new: NewPath) -> None:
        """Nothing is answered."""
        await self.begin_deed("" if new.source is None else f"copied from {new.source}")
        if new.source is None:
            await self.service.make_directory(path)
        else:
            await self.service.copy(new.source, path)

    @operation(
        Operation(
            "Remove a file or directory.",
            audit="file.removed",
            query=RemoveQuery,
            status=204,
            raises=(NoSuchFile, FileConflict, Forbidden, Unavailable),
        )
    )
    async def delete(self, path: str, query: RemoveQuery) -> None:
        """Nothing is answered."""
        await self.begin_deed("with all in it" if query.recursive else "")
        await self.service.remove(path, recursive=query.recursive)
