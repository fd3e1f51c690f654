"""The backend's calls for files of its default file system."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from time import time
from typing import cast
from urllib.parse import quote

from tornado.httputil import HTTPHeaders

from jupyter_pai import streams
from jupyter_pai.client import AsyncClient, Query
from jupyter_pai.errors import ClientError, NotFound
from jupyter_pai.wire_types import FileEntry, FileListing, UploadState
from pai_backend.model.text import Text

LONG_S = 3600.0  # a copy, a removal, or the last part of an upload that the backend sends on
PART_S = 300.0
NOT_FOUND = 404
REFUSALS = (400, 401, 403, NOT_FOUND, 409, 429, 503)


@dataclass(frozen=True)
class RemoteFile:
    """What is at a path. ``modified`` is in seconds of this machine's clock; ``kept`` of an unfinished upload."""

    exists: bool
    directory: bool
    size: int
    modified: float
    kept: int


@dataclass(frozen=True)
class Piece:
    """Bytes of a file; ``version`` is the same for all pieces of one version of it."""

    data: bytes
    size: int
    version: str


class BackendFiles:
    """Every call raises a :class:`~jupyter_pai.errors.ClientError` when it fails."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def stat(self, path: str) -> RemoteFile:
        """What is there, and how much of an unfinished upload."""
        answer = await self._client.request("HEAD", fs_path(path), also=REFUSALS)
        if answer.code in REFUSALS and answer.code != NOT_FOUND:
            await self._raise_reason(path)
            # It was refused for a moment, as by a backend that starts, and is not any more.
            answer = await self._client.request("HEAD", fs_path(path), also=(NOT_FOUND,))
        headers = answer.headers
        return RemoteFile(
            exists=answer.code != NOT_FOUND,
            directory=headers.get("X-Pai-Kind") == "directory",
            size=int(headers.get("X-Pai-Size", "0")),
            modified=_local_time(headers),
            kept=int(headers.get("X-Pai-Kept", "0")),
        )

    async def _raise_reason(self, path: str) -> None:
        """Ask for what a refused HEAD, which is answered without a body, does not tell. Returns when it is gone."""
        with contextlib.suppress(NotFound):
            await self._client.request("GET", fs_path(path), query={"length": 0, "limit": 1})

    async def listing(self, path: str) -> list[FileEntry]:
        """All entries of a directory, by name."""
        return (await self._pages(path))[0]

    async def inside(self, path: str) -> dict[str, RemoteFile]:
        """What a directory holds, by name, without what is kept of unfinished uploads; empty when it is not there."""
        try:
            entries, ahead_s = await self._pages(path)
        except NotFound:
            return {}
        return {
            entry["name"]: RemoteFile(
                exists=True,
                directory=entry["kind"] == "directory",
                size=entry["size"],
                modified=datetime.fromisoformat(entry["modified"]).timestamp() - ahead_s if entry["modified"] else 0.0,
                kept=0,
            )
            for entry in entries
        }

    async def _pages(self, path: str) -> tuple[list[FileEntry], float]:
        """All entries, and how many seconds the backend's clock is ahead of this machine's."""
        found: list[FileEntry] = []
        while True:
            query: Query = {"after": found[-1]["name"] if found else None, "limit": 1000, "length": 0}
            answer = await self._client.request("GET", fs_path(path), query=query)
            if answer.headers.get("X-Pai-Kind") == "file":
                raise ClientError(
                    Text("{path} is a file.", path=path), code="ConflictFileError", hint="Name a directory.", status=409
                )
            page = cast(FileListing, streams.decoded(answer.body))
            found += page["data"]
            if not page["truncated"]:
                return found, _ahead_s(answer.headers)

    async def read(self, path: str, offset: int, length: int) -> Piece:
        """At most ``length`` bytes. Raises ClientError for a directory, which is answered with what it holds."""
        answer = await self._client.request(
            "GET", fs_path(path), query={"offset": offset, "length": length}, timeout_s=PART_S
        )
        headers = answer.headers
        if headers.get("X-Pai-Kind") != "file":
            raise ClientError(
                Text("{path} is a directory.", path=path), code="ConflictFileError", hint="Name a file.", status=409
            )
        size, modified = headers.get("X-Pai-Size", "0"), headers.get("Last-Modified", "")
        return Piece(answer.body, int(size), f"{size} {modified}")

    async def write(self, path: str, data: bytes, *, offset: int, size: int, sha256: str) -> UploadState:
        """A part of a file; the last one completes it, and may take long on a storage behind the backend."""
        last = offset + len(data) >= size
        query: Query = {"offset": offset, "size": size, "sha256": sha256 or None}
        answer = await self._client.request(
            "PUT",
            fs_path(path),
            query=query,
            body=data,
            media_type="application/octet-stream",
            timeout_s=LONG_S if last else PART_S,
        )
        return cast(UploadState, streams.decoded(answer.body))

    async def make_directory(self, path: str) -> None:
        """With all above it; fine when it is there."""
        await self._post(path, {})

    async def copy(self, source: str, path: str) -> None:
        """A file or a directory, within the default file system."""
        await self._post(path, {"source": source})

    async def remove(self, path: str, *, recursive: bool) -> None:
        """Raises NotFound; a directory that is not empty needs ``recursive``."""
        query: Query = {"recursive": "true" if recursive else None}
        await self._client.request("DELETE", fs_path(path), query=query, timeout_s=LONG_S)

    async def _post(self, path: str, value: dict[str, str]) -> None:
        body = json.dumps(value).encode()
        await self._client.request("POST", fs_path(path), body=body, media_type="application/json", timeout_s=LONG_S)


def fs_path(path: str) -> str:
    """The API's path for one of the default file system."""
    return "/api/v2/fs" + quote(path)


def _local_time(headers: HTTPHeaders) -> float:
    """When the file was changed, by this machine's clock: the two clocks are compared by the answer's date."""
    text = headers.get("Last-Modified")
    return parsedate_to_datetime(text).timestamp() - _ahead_s(headers) if text else 0.0


def _ahead_s(headers: HTTPHeaders) -> float:
    now = headers.get("Date")
    return parsedate_to_datetime(now).timestamp() - time() if now else 0.0
