"""A port is shared by the processes of one gateway, and by no two gateways."""

from __future__ import annotations

import errno
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from pai_backend.listening import bind
from pai_backend.roles.shared_port import join
from tests.support.ssh_world import free_port

HOST = "127.0.0.1"


def _join(port: int, locks: Path) -> ExitStack | None:
    """Take part; None where another has the port."""
    with ExitStack() as held:
        try:
            join(HOST, port, locks, held)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return None
        return held.pop_all()
    return None


def _greets(listener: socket.socket, port: int) -> int:
    """How many of 64 connections arrive at this socket."""
    _accepted(listener)  # those of an earlier look
    with ExitStack() as clients:
        for _ in range(64):
            clients.enter_context(socket.create_connection((HOST, port), 5))
        return _accepted(listener)


def _accepted(listener: socket.socket) -> int:
    count = 0
    try:
        while True:
            listener.accept()[0].close()
            count += 1
    except BlockingIOError:
        return count


def test_processes_of_one_gateway_share_its_port(tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as first, ExitStack() as second:
        one = join(HOST, port, tmp_path, first)
        other = join(HOST, port, tmp_path, second)
        assert 0 < _greets(one, port) < 64
        first.close()
        assert _greets(other, port) == 64
        with ExitStack() as back:
            assert 0 < _greets(join(HOST, port, tmp_path, back), port) < 64


def test_another_backend_never_gets_into_a_port_that_is_shared(tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as ours:
        join(HOST, port, tmp_path / "ours", ours)
        join(HOST, port, tmp_path / "ours", ours)
        for _ in range(2):  # its first process, and the one that comes after that has ended
            assert _join(port, tmp_path / "theirs") is None
    theirs = _join(port, tmp_path / "theirs")
    assert theirs is not None, "it is free when the last of them is gone"
    with theirs, bind(HOST, 0) as anything:
        assert _join(port, tmp_path / "ours") is None
        assert _join(anything.getsockname()[1], tmp_path / "ours") is None, "nor does a gateway take what others have"


@pytest.mark.parametrize("backends", [2, 5])
def test_of_backends_that_start_at_once_one_at_most_has_the_port(tmp_path: Path, backends: int) -> None:

    def start(name: int) -> ExitStack | None:
        return _join(port, tmp_path / str(name))

    winners = 0
    with ThreadPoolExecutor(backends) as pool:
        for _ in range(20):
            port = free_port()
            with ExitStack() as opened:
                joined = [held for held in pool.map(start, range(backends)) if held is not None]
                for held in joined:
                    opened.enter_context(held)
                assert len(joined) <= 1
                winners += len(joined)
    assert winners
