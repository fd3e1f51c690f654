"""Strangers and users who use up what all need: descriptors, processor time, disk."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import psutil
import pytest

from tests.attack.site import ADMIN, LIMIT_S, OTHER, OWNER, QUOTA_BYTES, Site, document, ok
from tests.support.backend_process import until
from tests.support.living_trees import contents_below

STRANGERS = 1_100
MOST_CPU_S = 4.0
"""Of one request about 1 MB of text: it took 12 and 13 s, and takes a tenth of one."""


@pytest.mark.attack(21, "1,100 idle connections end the api and the controller")
def test_idle_connections_end_nothing(site: Site, many_files: None) -> None:
    before = {name: process.pid for name, process in site.backend.children().items()}
    with ExitStack() as stack:
        for _ in range(STRANGERS):
            stack.enter_context(socket.create_connection(site.address, LIMIT_S))
        site.job("meanwhile", "sleep 1000")
        site.stop("meanwhile")
    assert {name: process.pid for name, process in site.backend.children().items()} == before


def _cpu(site: Site) -> float:
    times = site.backend.children()["api"].cpu_times() if "api" in site.backend.children() else None
    found = times or psutil.Process(site.backend.process.pid).children()[0].cpu_times()
    return float(found.user + found.system)


@pytest.mark.attack(23, "a text of 1 MB keeps the api busy for 10 s")
@pytest.mark.parametrize(
    ("user", "path", "text"),
    [
        (OWNER, "/api/v2/validate", document("long", "x" * 1_000_000)),
        (OWNER, "/api/v2/validate", document("quotes", "\\'" * 400_000)),
        (OWNER, "/api/v2/validate", document("dollars", "$(" * 400_000)),
        (OWNER, "/api/v2/validate", b"protocolVersion: 2\nname: " + b"[" * 1_000_000),
        (OWNER, "/api/v2/validate", b"protocolVersion: 2\nname: " + b"{a: " * 200_000),
        (ADMIN, "/api/v2/cluster/config?dryRun=true", b"[" * 8_192),
        (ADMIN, "/api/v2/cluster/config?dryRun=true", b"physicalCluster: " + b"{a: " * 20_000),
        (ADMIN, "/api/v2/cluster/config?dryRun=true", b"- " * 100_000),
    ],
    ids=["one word", "quotes", "substitutions", "lists", "objects", "cluster lists", "cluster objects", "cluster rows"],
)
def test_texts_of_users_take_little_time(site: Site, user: str, path: str, text: bytes) -> None:
    before = _cpu(site)
    with site.http(user) as client:
        answer = client.post(path, content=text)
    assert answer.status_code in (200, 400, 413), answer.text[:300]
    assert _cpu(site) - before < MOST_CPU_S


@pytest.mark.attack(24, "parallel uploads pass the quota of the storage")
def test_uploads_at_once_stay_within_the_quota(site: Site) -> None:
    piece = b"x" * (QUOTA_BYTES // 3)

    def upload(number: int) -> int:
        with site.http(OWNER) as client:
            try:
                return client.put(f"/api/v2/fs/{OWNER}/piece-{number}", content=piece).status_code
            except httpx.TransportError:  # refused before its body was read
                return 0

    with ThreadPoolExecutor(12) as pool:
        codes = list(pool.map(upload, range(12)))
    pieces = contents_below(site.backend.data_dir)
    kept = sum(len(content) for path, content in pieces if path.name.startswith("piece-"))
    assert 0 < kept <= QUOTA_BYTES, codes
    with site.http(OWNER) as client:
        for number, code in enumerate(codes):
            if 200 <= code < 300:
                ok(client.delete(f"/api/v2/fs/{OWNER}/piece-{number}"))


@pytest.mark.attack(24, "whoever uses a job's name first has the outputs of all jobs of that name")
def test_jobs_of_one_name_have_outputs_of_their_own(site: Site) -> None:
    for user in (OTHER, OWNER):
        site.job("same", 'echo "$PAI_USER_NAME" > "$PAI_OUTPUT_DIR/words"; sleep 1000', user)
    for user in (OTHER, OWNER):
        with site.http(user) as client:
            until(lambda: client.get("/api/v2/fs/Output/same/words").text == f"{user}\n", LIMIT_S)  # noqa: B023
        site.stop("same", user)
