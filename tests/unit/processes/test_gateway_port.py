"""Which ports a gateway tries in which order, and that it shares its port with its own processes alone."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from pai_backend.config.gateway import GatewaySettings
from pai_backend.platform.listening import bind
from pai_backend.processes.gateway_port import FIRST_PORT, PORTS_TRIED, GatewayPortTaken, candidates, take
from pai_backend.processes.roles.gateway import _options
from pai_backend.testing.free_ports import free_port

ALL = list(range(FIRST_PORT, FIRST_PORT + PORTS_TRIED))
HOST = "127.0.0.1"


def test_a_configured_port_is_the_only_one() -> None:
    assert list(candidates(22, 2300, Path("/a"))) == [22]


def test_the_kept_port_comes_first_and_then_every_port_of_the_range_once() -> None:
    first, *rest = candidates(0, 2300, Path("/a"))
    assert first == 2300
    assert sorted(rest) == ALL


def test_backends_of_different_directories_do_not_try_the_same_port_first() -> None:
    firsts = {next(candidates(0, None, Path(f"/home/user{number}"))) for number in range(20)}
    assert len(firsts) > 15


def test_a_chosen_port_is_kept_and_given_up_when_another_has_it(tmp_path: Path) -> None:
    with ExitStack() as opened:
        port = _take(tmp_path, opened, 0)[0].getsockname()[1]
        other = _take(tmp_path, opened, 0)[0].getsockname()[1]
        assert other != port
        assert (tmp_path / "gateway.port").read_text() == f"{other}\n"


def test_a_configured_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with (
        bind(HOST, 0) as taken,
        pytest.raises(GatewayPortTaken, match=r"gateway\.port: cannot listen on 127\.0\.0\.1:\d+: .*in use"),
    ):
        take({"host": HOST, "port": taken.getsockname()[1], "processes": 1}, tmp_path)


def test_processes_of_one_gateway_share_its_port_and_nobody_else_gets_in(tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as opened:
        one, other = _take(tmp_path, opened, port, 2)
        with ExitStack() as clients:
            for _ in range(64):
                clients.enter_context(socket.create_connection((HOST, port), 60))
            counts = _accepted(one), _accepted(other)
        assert sum(counts) == 64
        assert all(counts)
        for _ in range(2):  # with its first process, and after that has ended
            with pytest.raises(GatewayPortTaken):
                take({"host": HOST, "port": port, "processes": 2}, tmp_path)
            one.close()
    with ExitStack() as opened:
        assert len(_take(tmp_path, opened, port, 3)) == 3, "it is free when the last of them is gone"


@pytest.mark.parametrize("backends", [2, 5])
def test_of_backends_that_start_at_once_one_at_most_has_the_port(tmp_path: Path, backends: int) -> None:
    winners = 0
    with ThreadPoolExecutor(backends) as pool:
        for _ in range(20):
            port = free_port()
            with ExitStack() as opened:

                def start(name: int, port: int = port, opened: ExitStack = opened) -> bool:
                    directory = tmp_path / str(name)
                    directory.mkdir(exist_ok=True)
                    try:
                        _take(directory, opened, port, 2)
                    except GatewayPortTaken:
                        return False
                    return True

                started = sum(pool.map(start, range(backends)))
                assert started <= 1
                winners += started
    assert winners


def _take(directory: Path, opened: ExitStack, port: int, processes: int = 1) -> list[socket.socket]:
    listeners = take({"host": HOST, "port": port, "processes": processes}, directory)
    for listener in listeners:
        opened.enter_context(listener)
    return listeners


def _accepted(listener: socket.socket) -> int:
    count = 0
    try:
        while True:
            listener.accept()[0].close()
            count += 1
    except BlockingIOError:
        return count


def test_a_gateway_drains_as_long_as_it_is_told() -> None:
    assert _options(GatewaySettings(drain_s=3600)).drain_s == 3600
