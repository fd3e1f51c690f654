"""nginx as documented, which passes requests for services on and asks the backend first."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pai_backend.testing.free_ports import free_port

START_S = 60
DOCUMENTED = Path(__file__).resolve().parents[2] / "docs" / "forward-auth.md"
AROUND = """
daemon off;
{user}
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
{documented}
}}
"""


@contextmanager
def forwarding_nginx(root: Path, backend: int) -> Iterator[int]:
    """It, before a backend on that port; yields its own port."""
    port = free_port()
    root.mkdir()
    found = re.search(r"```nginx\n(.*?)```", DOCUMENTED.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    documented = found[1].replace("127.0.0.1:8080", f"127.0.0.1:{backend}").replace("/var/cache/nginx", str(root))
    documented = documented.replace("listen 80;", f"listen 127.0.0.1:{port};").replace(
        "*.pai.example.org", "*.localhost"
    )
    user = "user root;" if os.geteuid() == 0 else ""  # its worker writes below the test's directory
    configuration = root / "nginx.conf"
    configuration.write_text(AROUND.format(root=root, documented=documented, user=user))
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
