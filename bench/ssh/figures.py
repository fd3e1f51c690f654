"""What a login costs and what passes: through the gateway, and by ``ssh -J`` through Debian's sshd, in turn.

All connections of all sides have the same key exchange, types of keys and cipher (``aes128-gcm@openssh.com``; figures
that are called ``chosen`` have what OpenSSH chooses by itself). Each is of the medians of rounds in which every way is
gone once. Rates of ``ssh`` begin when the login is over; those of ``sftp`` have it in them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median

from bench.figures import Figure, percentile
from bench.processes import ended
from bench.ssh.clients import down_bytes_per_s, echoes_ms, files_bytes_per_s, login_ms, moving, up_bytes_per_s
from bench.ssh.site import ALIAS, BRIDGE, CIPHER, DIRECT, JUMP, PEER, QUIET, Site, site

LOGINS, ROUNDS = 15, 5
BYTES = 128 << 20
ECHOES, ECHO_RUNS, TYPING_S = 150, 3, 0.01
HANDSHAKES, CLIENTS = 300, 2
IDLE, WARM = 2000, 100
SILENT, SILENT_ROUNDS = 1000, 3
SETTLE_S = 2.0
LIMIT_S = 400.0


async def measure() -> list[Figure]:
    """All figures of the gateway."""
    async with site() as here:
        handshakes = await _handshakes(here)
        figures = [*_logins(here), *_bulk(here, CIPHER, ""), *_bulk(here, "", "chosen_"), *_files(here)]
        return [*figures, await _echo(here), handshakes, *await _crowd(here), await _among_silent(here)]


def _in_turn(measured: Callable[[str], float], ways: tuple[str, ...], rounds: int) -> dict[str, float]:
    """The median of each way, after one round that does not count."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way in ways:
            value = measured(way)
            if number:
                found[way].append(value)
    return {way: median(values) for way, values in found.items()}


def _share(name: str, ours: float, peer: float, told: str) -> Figure:
    return Figure(name, 100 * ours / peer, told)


def _logins(here: Site) -> list[Figure]:
    taken = _in_turn(lambda way: login_ms(here.ssh(way, "true")), (BRIDGE, JUMP, PEER, DIRECT), LOGINS)
    without = f"; without anything between {taken[DIRECT]:.0f} ms"
    return [
        _share(
            f"login_{way}", taken[way], taken[PEER], f"{taken[way]:.0f} ms; through sshd {taken[PEER]:.0f} ms{without}"
        )
        for way in (BRIDGE, JUMP)
    ]


def _bulk(here: Site, cipher: str, prefix: str) -> list[Figure]:
    figures = []
    for name, measured in (("down", down_bytes_per_s), ("up", up_bytes_per_s)):

        def rate(way: str, measured: Callable[[list[str], int], float] = measured) -> float:
            return measured(here.ssh(way, cipher=cipher), BYTES)

        rates = _in_turn(rate, (BRIDGE, JUMP, PEER), ROUNDS)
        figures += [
            _share(f"{prefix}{way}_{name}", rates[way], rates[PEER], _rates(rates[way], rates[PEER]))
            for way in (BRIDGE, JUMP)
        ]
    return figures


def _files(here: Site) -> list[Figure]:
    (here.home / "file").write_bytes(bytes(BYTES))
    batch, figures = here.home / "batch", []
    for name in ("put", "get"):

        def rate(way: str, line: str = f"{name} {here.home / 'file'} /dev/null") -> float:
            return files_bytes_per_s(here.sftp(way, batch), batch, line, BYTES)

        rates = _in_turn(rate, (BRIDGE, PEER), ROUNDS)
        figures.append(_share(f"sftp_{name}", rates[BRIDGE], rates[PEER], _rates(rates[BRIDGE], rates[PEER])))
    return figures


def _rates(ours: float, peer: float) -> str:
    return f"{ours / 1e6:.0f} MB/s; through sshd {peer / 1e6:.0f} MB/s"


async def _echo(here: Site) -> Figure:
    """An echo while another login moves bulk data: the best of some runs of each way."""
    found: dict[str, list[float]] = {BRIDGE: [], PEER: []}
    for _ in range(ECHO_RUNS):
        for way in found:
            async with moving(here.ssh(way)):
                found[way].append(percentile(await echoes_ms(here.ssh(way), ECHOES, TYPING_S), 0.99))
    return Figure("echo_p99", min(found[BRIDGE]), f"through sshd {min(found[PEER]):.1f} ms; bulk data beside it")


async def _handshakes(here: Site) -> Figure:
    """Key exchange and authentication, from two processes of eight clients each, which take more CPU than it does."""
    rates, used = {}, here.cpu_s()
    for name, port in (("gateway", here.gateway_port), ("sshd", here.sshd_port)):
        user = ALIAS if name == "gateway" else "root"
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(_clients(here, "logins", port, user, HANDSHAKES))
                for _ in range(CLIENTS)
            ]
            times = [json.loads(await _line(client)) for client in clients]
        rates[name] = CLIENTS * HANDSHAKES / (max(t["ended"] for t in times) - min(t["began"] for t in times))
        used = here.cpu_s() - used if name == "gateway" else used
    each = f"{1000 * used / CLIENTS / HANDSHAKES:.1f} ms of the gateway's CPU each"
    return Figure("handshakes", rates["gateway"], f"{each}; sshd {rates['sshd']:.0f} 1/s, of the same clients")


async def _crowd(here: Site) -> list[Figure]:
    """Thousands of sessions that do nothing: what they hold, and what an echo takes beside them."""
    alone = await _quickest_echo(here)
    async with _clients(here, "sessions", here.gateway_port, QUIET, WARM) as warm:
        assert await _line(warm) == b"there\n"
        before = here.gateway.memory_full_info().uss
        async with _clients(here, "sessions", here.gateway_port, QUIET, IDLE) as crowd:
            assert await _line(crowd) == b"there\n"
            await asyncio.sleep(SETTLE_S)
            held = (here.gateway.memory_full_info().uss - before) / IDLE / 1024
            beside = await _quickest_echo(here)
    return [
        Figure("idle_memory", held, f"{IDLE} sessions, both legs of each"),
        Figure("echo_among_idle", beside, f"p99; {alone:.1f} ms without them"),
    ]


async def _among_silent(here: Site) -> Figure:
    """Logins while strangers hold as many connections as they can, beside logins without them, in turn."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(SILENT_ROUNDS):
        for crowded, taken in found.items():
            async with AsyncExitStack() as stack:
                if crowded:
                    crowd = _clients(here, "silent", here.gateway_port, "-", SILENT)
                    assert await _line(await stack.enter_async_context(crowd)) == b"there\n"
                for _ in range(LOGINS):
                    taken.append(await asyncio.to_thread(login_ms, here.ssh(BRIDGE, "true")))
    quiet, crowded_ms = (percentile(found[each], 0.95) for each in (False, True))
    told = f"p95 {crowded_ms:.0f} ms beside {SILENT} silent connections, {quiet:.0f} ms without"
    return Figure("login_among_silent", 100 * crowded_ms / quiet, told)


async def _quickest_echo(here: Site) -> float:
    return min([percentile(await echoes_ms(here.ssh(BRIDGE), ECHOES, TYPING_S), 0.99) for _ in range(ECHO_RUNS)])


@asynccontextmanager
async def _clients(
    here: Site, what: str, port: int, user: str, count: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of many clients; it ends with the block."""
    words = [what, str(port), user, str(here.home / "id"), str(count)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.ssh.crowd", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        await ended(process)


async def _line(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    async with asyncio.timeout(LIMIT_S):
        return await process.stdout.readline()
