"""Files of the backend's storage through a Jupyter server: they are data of its origin, and not in its memory."""

from __future__ import annotations

import getpass
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from jupyter_pai.embedded import Embedded
from tests.support.jupyter import TOKEN, JupyterServer

EXAMPLES = Path(__file__).parents[3] / "examples"
MIB = 1 << 20
PART = 4 * MIB  # as the panel sends them
FILE = 256 * MIB
ROOM = 128 * MIB
"""What the server's memory may grow by: half of the file. Up to 76 MiB were measured with 1 GiB, which are parts that
Python has not collected yet: it falls back to 12 MiB in between."""
PAGES = {
    "page.html": b"<script>fetch('/api/contents')</script>",
    "page.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><script>fetch("/api/contents")</script></svg>',
    "page.xhtml": b'<html xmlns="http://www.w3.org/1999/xhtml"><script>fetch("/api/contents")</script></html>',
}


@dataclass
class Site:
    """A Jupyter server before a real backend; ``client`` asks for paths of the user's folder of the storage."""

    server: JupyterServer
    client: httpx.Client

    def memory(self) -> int:
        """Bytes that the Jupyter server has in memory."""
        resident: int = psutil.Process(self.server.process.pid).memory_info().rss
        return resident


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("jupyter")
    data = root / "data"
    extension = {"data_dir": str(data), "config_file": str(EXAMPLES / "backend.yaml")}
    with JupyterServer(root, {"PaiExtension": extension}, {}) as server:
        folder = f"{server.url}pai/api/v2/fs/{getpass.getuser()}"
        headers = {"Authorization": f"token {TOKEN}"}
        try:
            with httpx.Client(base_url=folder, headers=headers, timeout=60) as client:
                yield Site(server, client)
        finally:
            Embedded(data).stop()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_among_the_files_is_no_page_of_jupyter(site: Site, name: str) -> None:
    site.client.put(name, content=PAGES[name]).raise_for_status()
    got = site.client.get(name)
    assert got.content == PAGES[name]
    assert got.headers["Content-Type"] == "application/octet-stream"
    assert got.headers["Content-Disposition"] == "attachment"
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    policy = {each.strip() for each in got.headers["Content-Security-Policy"].split(";")}
    assert {"sandbox", "default-src 'none'"} <= policy


def test_a_large_file_goes_both_ways_without_lying_in_the_servers_memory(site: Site) -> None:
    sent, got = hashlib.sha256(), hashlib.sha256()
    part = os.urandom(PART)
    before = most = site.memory()
    for offset in range(0, FILE, PART):
        sent.update(part)
        query: dict[str, str | int] = {"offset": offset, "size": FILE, "replace": "false"}
        site.client.put("large", params=query, content=part).raise_for_status()
        most = max(most, site.memory())
    with site.client.stream("GET", "large") as answer:
        for data in answer.iter_bytes(MIB):
            got.update(data)
            most = max(most, site.memory())
    assert got.hexdigest() == sent.hexdigest()
    assert most - before < ROOM, f"it grew by {(most - before) // MIB} MiB"
    site.client.delete("large").raise_for_status()
