"""A registry of images that gives what an OCI layout has, to who has its password; real clients pull from it.

Source: the OCI Distribution Specification 1.1, "Pulling manifests" and "Pulling blobs".
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

USER, PASSWORD = "reader", "only-for-readers"
_BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@contextmanager
def registry(layout: Path) -> Iterator[str]:
    """``host:port`` of a registry whose every repository and tag is the image of the layout, until the block ends."""
    index = json.loads((layout / "index.json").read_text())["manifests"][0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            if self.headers.get("Authorization") != _BASIC:
                self._send(401, "application/json", b"{}", with_body, ("WWW-Authenticate", 'Basic realm="registry"'))
                return
            kind, _, name = self.path.removeprefix("/v2/").rpartition("/")
            digest = name if name.startswith("sha256:") else index["digest"]
            blob = layout / "blobs" / "sha256" / digest.removeprefix("sha256:")
            if self.path in ("/v2", "/v2/"):
                self._send(200, "application/json", b"{}", with_body)
            elif "nothing" in kind or not blob.is_file():
                self._send(404, "application/json", b'{"errors": [{"code": "NAME_UNKNOWN"}]}', with_body)
            else:
                media = index["mediaType"] if kind.endswith("manifests") else "application/octet-stream"
                self._send(200, media, blob.read_bytes(), with_body, ("Docker-Content-Digest", digest))

        def _send(self, status: int, media: str, body: bytes, with_body: bool, *headers: tuple[str, str]) -> None:
            self.send_response(status)
            for name, value in (("Content-Type", media), ("Content-Length", str(len(body))), *headers):
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
