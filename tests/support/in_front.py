"""What stands between a browser and a server: a forwarded TCP port as of ``ssh -L``, nginx, Apache and Traefik."""

from __future__ import annotations

import re
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

import yaml

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
        listen 127.0.0.1:{port}{tls};
{location}
    }}
}}
"""
APACHE = """
ServerName portal.example
ServerRoot {root}
PidFile {root}/apache.pid
ErrorLog {root}/error.log
DefaultRuntimeDir {root}
Mutex posixsem
Listen 127.0.0.1:{port}
{modules}
User daemon
Group daemon
{location}
"""
FORGETTING = " ".join(f'proxy_set_header X-Forwarded-{name} "";' for name in ("For", "Host", "Port", "Prefix"))
MODULES = ("mpm_event", "authz_core", "headers", "proxy", "proxy_http")
DOCUMENTED = Path(__file__).resolve().parents[2] / "docs" / "connect" / "jupyter.md"


def documented(server: str) -> list[str]:
    """What the documentation shows of a server before a Jupyter server on port 8888."""
    return re.findall(rf"```{server}\n(.*?)```", DOCUMENTED.read_text(encoding="utf-8"), re.DOTALL)


@contextmanager
def forwarded(
    port: int, host: str = "127.0.0.1", *, at: int = 0, within: AbstractContextManager[None] | None = None
) -> Iterator[int]:
    """A port of 127.0.0.1 that leads to a port of a host.

    ``at`` is the port, or 0 for any. ``within``: where it is, such as a network of its own (``OwnNetwork.entered``).
    """

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((host, port)) as other:
                back = threading.Thread(target=_pump, args=(other, self.request), daemon=True)
                back.start()
                _pump(self.request, other)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

    with within or nullcontext():
        made = Server(("127.0.0.1", at), Forward)
    with made as server:
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
def nginx(
    root: Path,
    jupyter_port: int,
    tls: tuple[Path, Path] | None = None,
    *,
    below: str = "/base/",
    at: int = 0,
    forgets: bool = False,
) -> Iterator[int]:
    """nginx as documented before a server on ``jupyter_port``; yields its own port, which is ``at`` if that is given.

    ``tls``: a certificate and its key, with which it speaks https. ``below``: the paths that it passes on.
    ``forgets``: what is said of earlier hops is dropped, as Traefik does that is not told whom to trust.
    """
    port = at or free_port()
    root.mkdir()
    location, upgrade = documented("nginx")
    location = location.replace("/base/", below).replace("127.0.0.1:8888", f"127.0.0.1:{jupyter_port}")
    if forgets:
        location = location.replace("proxy_pass", f"{FORGETTING} proxy_pass", 1)
    secure = f" ssl; ssl_certificate {tls[0]}; ssl_certificate_key {tls[1]}" if tls else ""
    text = NGINX.format(root=root, port=port, location=location, map=upgrade, tls=secure)
    with _running(root, text, port, "nginx", "-e", str(root / "error.log"), "-c"):
        yield port


@contextmanager
def apache(root: Path, jupyter_port: int) -> Iterator[int]:
    """Apache's httpd as documented before a Jupyter server on ``jupyter_port``; yields its own port."""
    port = free_port()
    root.mkdir()
    (location,) = documented("apache")
    location = location.replace("127.0.0.1:8888", f"127.0.0.1:{jupyter_port}")
    modules = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in MODULES)
    text = APACHE.format(root=root, port=port, location=location, modules=modules)
    with _running(root, text, port, "/usr/sbin/apache2", "-DFOREGROUND", "-f"):
        yield port


@contextmanager
def traefik(root: Path, program: Path, jupyter_port: int) -> Iterator[int]:
    """Traefik as documented before a Jupyter server on ``jupyter_port``; yields its own port."""
    port = free_port()
    root.mkdir()
    (routes,) = documented("yaml")
    (root / "routes.yaml").write_text(routes.replace("127.0.0.1:8888", f"127.0.0.1:{jupyter_port}"))
    given = {
        "entryPoints": {"web": {"address": f"127.0.0.1:{port}"}},
        "providers": {"file": {"filename": str(root / "routes.yaml")}},
        "log": {"filePath": str(root / "error.log")},
        "global": {"checkNewVersion": False, "sendAnonymousUsage": False},
    }
    with _running(root, yaml.safe_dump(given), port, str(program), "--configFile", name="traefik.yaml"):
        yield port


@contextmanager
def _running(root: Path, configuration: str, port: int, *command: str, name: str = "server.conf") -> Iterator[None]:
    """A server that takes the path of its configuration ``name`` as the last word, until the end of the block."""
    (root / name).write_text(configuration)
    process = subprocess.Popen([*command, str(root / name)])
    log = root / "error.log"
    try:
        deadline = time.monotonic() + START_S
        while True:
            assert process.poll() is None, log.read_text() if log.exists() else "it ended at once"
            with suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=START_S).close()
                break
            assert time.monotonic() < deadline, "it does not listen"
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(START_S)
