"""The quota under attack: copies, measurements and uploads that meet, and uploads that fail at their end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from pai_backend.storage.areas import partial_name
from pai_backend.storage.files import Parts
from pai_backend.storage.local_files import LocalFiles
from pai_backend.storage.room import FileRoom
from tests.support.api_site import running_api
from tests.support.living_trees import contents_below

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]
MIB = 1 << 20
PATIENCE_S = 60


class Steps(LocalFiles):
    """Waits before a copy, and after a measurement, until it may go on."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.copying, self.measured = threading.Event(), threading.Event()
        self.may_copy, self.may_measure = threading.Event(), threading.Event()
        self.may_measure.set()

    def copy(self, source: Parts, target: Parts, max_entries: int, max_bytes: int | None = None) -> None:
        self.copying.set()
        assert self.may_copy.wait(PATIENCE_S)
        super().copy(source, target, max_entries, max_bytes)

    def usage(self, path: Parts) -> int:
        size = super().usage(path)
        self.measured.set()
        assert self.may_measure.wait(PATIENCE_S)
        return size


def url(path: str) -> str:
    return f"/api/v2/fs{path}"


def held(root: Path) -> int:
    """Bytes below the root, unfinished uploads too."""
    return sum(len(content) for _, content in contents_below(root))


async def happened(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, PATIENCE_S)


async def test_a_copy_that_ends_while_the_directory_is_measured_is_counted(tmp_path: Path) -> None:
    files = Steps(tmp_path / "fs")
    room = FileRoom(files, quota_bytes=3 * MIB)
    async with running_api(tmp_path, files=room) as site, site.client() as client:
        for name, size in (("a", MIB), ("small", 1)):
            assert (await client.put(url(f"/alice/{name}"), content=bytes(size))).status_code == 200
        copy = asyncio.create_task(client.post(url("/alice/b"), json={"source": "/alice/a"}))
        await happened(files.copying)
        await client.delete(url("/alice/small"))  # the next upload measures
        files.may_measure.clear()
        files.measured.clear()
        upload = asyncio.create_task(client.put(url("/alice/c"), content=bytes(MIB)))
        await happened(files.measured)
        files.may_copy.set()
        assert (await copy).status_code == 204
        files.may_measure.set()
        assert (await upload).status_code == 200

        assert (await client.put(url("/alice/d"), content=bytes(MIB))).status_code == 403
        assert held(tmp_path / "fs") <= 3 * MIB


async def test_what_grows_before_it_is_copied_does_not_pass_the_quota(tmp_path: Path) -> None:
    files = Steps(tmp_path / "fs")
    room = FileRoom(files, quota_bytes=3 * MIB)
    async with running_api(tmp_path, files=room) as site, site.client() as client:
        await client.put(url("/alice/a"), content=b"1")
        copy = asyncio.create_task(client.post(url("/alice/b"), json={"source": "/alice/a"}))
        await happened(files.copying)
        assert (await client.put(url("/alice/a"), content=bytes(2 * MIB))).status_code == 200
        files.may_copy.set()

        answer = await copy

        assert (answer.status_code, answer.json()["code"]) == (409, "ConflictFileError")
        assert held(tmp_path / "fs") == 2 * MIB


async def test_uploads_that_cannot_be_finished_count_all_the_same(tmp_path: Path) -> None:
    room = FileRoom(LocalFiles(tmp_path / "fs"), quota_bytes=3 * MIB)
    async with running_api(tmp_path, files=room) as site, site.client() as client:

        async def body(name: str) -> AsyncIterator[bytes]:
            yield bytes(MIB // 2)
            while not (tmp_path / "fs" / "alice" / partial_name(name)).exists():  # noqa: ASYNC110 - files tell no one
                await asyncio.sleep(0.01)
            await client.post(url(f"/alice/{name}"), json={})  # a directory of that name
            yield bytes(MIB // 4)

        async def send(number: int) -> int:
            name = f"n{number}"
            try:
                async with asyncio.timeout(PATIENCE_S):
                    return (await client.put(url(f"/alice/{name}"), content=body(name))).status_code
            except httpx.TransportError:  # refused and closed before all of it was sent
                return 403

        codes: list[int] = []
        while 403 not in codes:
            codes.append(await send(len(codes)))
            assert held(tmp_path / "fs") <= 3 * MIB

        assert codes[0] == 409


async def test_what_was_removed_during_a_measurement_is_free_at_once(tmp_path: Path) -> None:
    files = Steps(tmp_path / "fs")
    files.may_copy.set()
    room = FileRoom(files, quota_bytes=3 * MIB)
    async with running_api(tmp_path, files=room) as site, site.client() as client:
        for name in ("a", "small"):
            assert (await client.put(url(f"/alice/{name}"), content=bytes(MIB))).status_code == 200
        await client.delete(url("/alice/small"))
        files.may_measure.clear()
        files.measured.clear()
        upload = asyncio.create_task(client.put(url("/alice/c"), content=bytes(1)))
        await happened(files.measured)
        assert (await client.delete(url("/alice/a"))).status_code == 204
        files.may_measure.set()
        assert (await upload).status_code == 200

        assert (await client.put(url("/alice/d"), content=bytes(2 * MIB + 100))).status_code == 200
