"""Reading a small file for a user in a process of its own: bounded in size and in time."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from pai_backend.storage.faults import Absent, Away, StorageFault
from pai_backend.storage.fetch import fetch
from pai_backend.storage.uris import parse

pytestmark = pytest.mark.asyncio


async def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "auth").write_bytes(bytes(range(256)))
    assert await fetch(parse(str(tmp_path / "auth")), "alice", 4096, {}, 30) == bytes(range(256))


async def test_a_larger_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "auth").write_bytes(b"x" * 4097)
    with pytest.raises(StorageFault, match="is larger than 4096 bytes"):
        await fetch(parse(str(tmp_path / "auth")), "alice", 4096, {}, 30)


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageFault, match="gone does not exist") as caught:
        await fetch(parse(str(tmp_path / "gone")), "alice", 4096, {}, 30)
    assert not isinstance(caught.value, Absent | Away)


async def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert await fetch(parse(str(tmp_path / "pipe")), "alice", 4096, {}, 30) == b""


async def test_nobody_at_the_address_is_a_reason_to_try_again_and_shows_no_password() -> None:
    place = parse("webhdfs://alice:hunter22@127.0.0.1:1/auth")
    with pytest.raises(Away) as caught:
        await fetch(place, "alice", 4096, {"kerberos": False}, 30)
    assert "hunter22" not in caught.value.line()


async def test_a_server_that_never_answers_is_given_up_and_its_reader_is_gone() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        place = parse(f"webhdfs://127.0.0.1:{silent.getsockname()[1]}/auth")
        with pytest.raises(Away, match="does not answer within 3 s"):
            await fetch(place, "alice", 4096, {}, 3)
        connection, _ = await asyncio.to_thread(silent.accept)
        with connection:
            connection.settimeout(60)
            while await asyncio.to_thread(connection.recv, 4096):
                pass  # the request; then the end, as its reader was killed
