"""What the service proxy costs: ``python -m tests.support.measure_proxy [SECONDS]``.

Prints requests per second of a small answer and the round trip of a WebSocket message, through the proxy and without
it, and the proxy's CPU time for a request.

Server, proxy and client are three processes on this machine; each figure is the median of five turns.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time

import psutil
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tests.support.proxy_fakes import HOST, running_proxy, service_job
from tests.support.proxy_upstreams import web_server

CLIENTS = 16
TURNS = 5
BEARER = "Authorization: Bearer alice-token\r\n"


async def _serve(what: str) -> None:
    """Run one of the two servers until standard input closes; its port is the first line of output."""
    done = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    if what == "upstream":
        async with web_server() as (port, _):
            print(port, flush=True)
            await done
    else:
        async with running_proxy(service_job(int(what))) as under_test:
            print(under_test.port, flush=True)
            await done


class _Server:
    """One of the two servers in a process of its own."""

    def __init__(self, what: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.measure_proxy", "serve", what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def cpu_s(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def stop(self) -> None:
        self.process.communicate()


async def _requests(port: int, until: float) -> int:
    """Requests answered on one kept-alive connection until then."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = f"GET /status/200 HTTP/1.1\r\nHost: {HOST}:{port}\r\n{BEARER}\r\n".encode()
    count = 0
    while time.perf_counter() < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        await reader.readexactly(1000)
        count += 1
    writer.close()
    return count


async def _rate(port: int, seconds: float) -> float:
    until = time.perf_counter() + seconds
    counts = await asyncio.gather(*(_requests(port, until) for _ in range(CLIENTS)))
    return sum(counts) / seconds


async def _round_trip_ms(port: int, count: int = 500) -> float:
    request = HTTPRequest(
        f"ws://127.0.0.1:{port}/deep/ws",
        headers={"Host": f"{HOST}:{port}", "Authorization": "Bearer alice-token"},
    )
    socket = await websocket_connect(request)
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        await socket.write_message("x" * 100)
        await socket.read_message()
        taken.append(time.perf_counter() - start)
    socket.close()
    return statistics.median(taken) * 1000


async def _measure(seconds: float, upstream: _Server, proxy: _Server) -> None:
    rates: dict[str, list[float]] = {"direct": [], "proxied": []}
    trips: dict[str, list[float]] = {"direct": [], "proxied": []}
    costs = []
    for _ in range(TURNS):
        for name, port in (("direct", upstream.port), ("proxied", proxy.port)):
            before = proxy.cpu_s()
            rates[name].append(await _rate(port, seconds))
            if name == "proxied":
                costs.append((proxy.cpu_s() - before) / (rates[name][-1] * seconds) * 1000)
            trips[name].append(await _round_trip_ms(port))
    for name in rates:
        print(
            f"{name:8} {statistics.median(rates[name]):8.0f} requests/s   "
            f"WebSocket round trip {statistics.median(trips[name]):.2f} ms"
        )
    print(f"the proxy used {statistics.median(costs):.2f} ms of CPU a request")


def main() -> None:
    """Serve, or measure."""
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(_serve(sys.argv[2]))
        return
    upstream = _Server("upstream")
    proxy = _Server(str(upstream.port))
    try:
        asyncio.run(_measure(float(sys.argv[1]) if sys.argv[1:] else 2.0, upstream, proxy))
    finally:
        proxy.stop()
        upstream.stop()


if __name__ == "__main__":
    main()
