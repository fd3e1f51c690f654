"""Whose program listens on a port."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from pai_backend.engine.local import listeners
from pai_backend.engine.local.listeners import OwnPorts, listening_uids

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux tells it")


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_who_listens_is_told_and_who_is_connected_is_not(family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family) as bound:
        try:
            bound.bind((address, 0))
        except OSError:
            pytest.skip(f"no {address} here")
        port = bound.getsockname()[1]
        assert listening_uids(port) == set()
        bound.listen()
        assert listening_uids(port) == {os.geteuid()}
        with socket.create_connection((address, port)) as client:
            assert listening_uids(client.getsockname()[1]) == set()


def test_a_kernel_without_one_of_the_tables_has_the_other(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    row = "0: 0100007F:3A98 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0"
    table.write_text(f"  sl  local_address rem_address\n   {row}\n")
    assert listening_uids(15000, (tmp_path / "absent", table)) == {1000}
    assert listening_uids(15001, (table,)) == set()


@pytest.mark.asyncio
async def test_many_connections_at_once_cost_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[tuple[Path, int]] = []
    monkeypatch.setattr(listeners, "require_own", lambda *about: looks.append(about))
    ports, asked = OwnPorts(), [(Path("/one"), 80), (Path("/one"), 81), (Path("/two"), 80)]
    await asyncio.gather(*(ports.require(*about) for about in asked * 100))
    assert sorted(looks) == sorted(asked)
    await ports.require(*asked[0])
    assert len(looks) == 4, "none is relied on that began before"
