"""A registry with one image that asks who is there: ``python -m tests.kubernetes.devices.registry ARCHIVE PORT``.

It serves an archive of ``tests.kubernetes.cluster.images`` over HTTP on 127.0.0.1, which container runtimes take
without a certificate, to whoever knows the name and password in REGISTRY_LOGIN (``name:password``).
Source: the OCI distribution and image specifications.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import sys
import tarfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+zstd"


def contents(archive: Path) -> dict[str, tuple[str, bytes]]:
    """Everything by its digest, with its media type; the manifest also by the word ``manifest``."""
    with tarfile.open(archive) as whole:

        def read(name: str) -> bytes:
            member = whole.extractfile(name)
            assert member is not None
            return member.read()

        (about,) = json.loads(read("manifest.json"))
        config, layers = read(about["Config"]), [read(name) for name in about["Layers"]]
    found: dict[str, tuple[str, bytes]] = {}

    def described(kind: str, content: bytes) -> dict[str, object]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        found[digest] = kind, content
        return {"mediaType": kind, "digest": digest, "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": described(CONFIG, config),
        "layers": [described(LAYER, layer) for layer in layers],
    }
    text = json.dumps(manifest).encode()
    described(MANIFEST, text)
    found["manifest"] = MANIFEST, text
    return found


class Handler(BaseHTTPRequestHandler):
    """Answers ``/v2/``, manifests by any tag or by digest, and blobs."""

    protocol_version = "HTTP/1.1"
    content: dict[str, tuple[str, bytes]]
    login: str

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "").removeprefix("Basic ")
        wanted = base64.b64encode(self.login.encode()).decode()
        if not hmac.compare_digest(given, wanted):
            self._answer(401, "text/plain", b"who are you?", [("WWW-Authenticate", 'Basic realm="tests"')])
            return
        kind, _, name = self.path.rpartition("/")
        if not name:
            self._answer(200, "application/json", b"{}")
        elif found := self.content.get("manifest" if kind.endswith("/manifests") and ":" not in name else name):
            self._answer(200, *found, [("Docker-Content-Digest", f"sha256:{hashlib.sha256(found[1]).hexdigest()}")])
        else:
            self._answer(404, "text/plain", b"nothing of that name")

    def _answer(self, status: int, kind: str, body: bytes, more: list[tuple[str, str]] | None = None) -> None:
        self.send_response(status)
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(body))), *(more or [])]:
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


if __name__ == "__main__":
    Handler.content, Handler.login = contents(Path(sys.argv[1])), os.environ["REGISTRY_LOGIN"]
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler) as server:
        print("serving", flush=True)
        server.serve_forever()
