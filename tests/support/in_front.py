"""What stands between a browser and a server: a forwarded TCP port as of ``ssh -L``, and nginx."""

from __future__ import annotations

import re
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pai_backend.testing.free_ports import free_port

START_S = 60

NGINX = """
daemon off;
pid {root}/nginx.pid;
error_log {root}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
{map}
    server {{
        listen 127.0.0.1:{port};
{location}
    }}
}}
"""
DOCUMENTED = Path(__file__).resolve().parents[2] / "docs" / "connect" / "jupyter.md"


def documented() -> list[str]:
    """What the documentation shows of nginx: a location for a Jupyter server on port 8888, and a map."""
    return re.findall(r"```nginx\n(.*?)```", DOCUMENTED.read_text(encoding="utf-8"), re.DOTALL)


@contextmanager
def forwarded(port: int) -> Iterator[int]:
    """Another port of 127.0.0.1 that leads to that one."""

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port)) as other:
                back = threading.Thread(target=_pump, args=(other, self.request), daemon=True)
                back.start()
                _pump(self.request, other)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Forward) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):  # either side is gone; the other is told
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def nginx(root: Path, jupyter_port: int) -> Iterator[int]:
    """nginx as documented before a Jupyter server on ``jupyter_port``; yields its own port."""
    port = free_port()
    root.mkdir()
    configuration = root / "nginx.conf"
    location, upgrade = documented()
    location = location.replace("127.0.0.1:8888", f"127.0.0.1:{jupyter_port}")
    configuration.write_text(NGINX.format(root=root, port=port, location=location, map=upgrade))
    process = subprocess.Popen(["nginx", "-e", str(root / "error.log"), "-c", str(configuration)])
    try:
        deadline = time.monotonic() + START_S
        while True:
            assert process.poll() is None, (root / "error.log").read_text()
            with suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=START_S).close()
                break
            assert time.monotonic() < deadline, "nginx does not listen"
            time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait(START_S)
