"""Those who attack a backend, in a process of their own.

``python -m bench.attackers WHAT PORT COUNT`` prints a line when the attack goes on, and attacks until it is ended.
``guess`` guesses passwords of alice in that many threads, ``idle`` holds that many connections that say nothing, and
``texts`` sends texts of 1 MB as the user of ``PAI_BENCH_TOKEN``, in that many threads.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable, Iterator

from bench.texts import requests

GUESSER = "127.0.0.2"
"""Where guesses come from."""
SOURCES = 200
REFUSED = (400, 413, 429)


def _guess(port: int, begun: threading.Event) -> None:
    for number in itertools.count():
        connection = http.client.HTTPConnection("127.0.0.1", port, source_address=(GUESSER, 0))
        body = json.dumps({"username": "alice", "password": f"guess {number}"})
        connection.request("POST", "/api/v2/authn/basic/login", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status in REFUSED, answer.status
        if answer.status == 429:
            begun.set()  # the first guesses are free
        connection.close()


def _send_texts(port: int, begun: threading.Event) -> None:
    headers = {"Authorization": f"Bearer {os.environ['PAI_BENCH_TOKEN']}"}
    for method, path, body, more in itertools.cycle(requests()):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        begun.set()
        try:
            connection.request(method, path, body, {**headers, **more})
            answer = connection.getresponse()
            answer.read()
            assert answer.status < 500, (path[:100], body[:100], answer.status)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before it was read to its end
        connection.close()


def _hold(port: int, count: int) -> Iterator[socket.socket]:
    for number in range(count):
        held = socket.socket()
        held.bind((f"127.0.1.{1 + number % SOURCES}", 0))
        held.connect(("127.0.0.1", port))
        yield held


def main() -> None:
    """Attack."""
    what, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if what == "idle":
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        held = list(_hold(port, count))
        print("there", flush=True)
        sys.stdin.read()
        return held.clear()
    attacks: dict[str, Callable[[int, threading.Event], None]] = {"guess": _guess, "texts": _send_texts}
    begun = threading.Event()
    for _ in range(count):
        threading.Thread(target=attacks[what], args=(port, begun), daemon=True).start()
    begun.wait()
    print("there", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
