"""A file of a job's Jupyter through the Jupyter server and the backend: neither gathers it."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.lab_site import running_lab
from tests.support.living import lives
from tests.support.opening import JUPYTER, SERVICE, until_answers

SIZE = 200 << 20
LIMIT = 32 << 20  # of growth; each hop holds some pieces of 64 KiB
FORGET_PEAK = "5"  # proc(5), clear_refs


def peak_bytes(process: psutil.Process) -> int:
    """The most memory that it has had since its peak was forgotten."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


def hops_of(root: Path) -> list[psutil.Process]:
    """The Jupyter server, and the process of its backend that has the service proxy."""
    alive = [child for child in psutil.Process().children() if lives(child)]
    server = next(child for child in alive if "jupyterlab" in child.cmdline())
    api = json.loads((root / "backend" / "runtime" / "api.json").read_text(encoding="utf-8"))
    return [server, psutil.Process(api["pid"])]


@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from /proc")
@pytest.mark.timeout(600)
def test_200_mb_pass_through_the_path_with_flat_memory(tmp_path: Path) -> None:
    document = json.loads(JUPYTER.read_text(encoding="utf-8"))
    role = document["taskRoles"][0]
    made = f"head -c {SIZE} /dev/urandom > large.bin && sha256sum large.bin > large.txt"
    role["command"] = f"{made} && {role['command']}"
    with running_lab(tmp_path, options=["--ServerApp.base_url=/base/"]) as site:
        headers = {"Authorization": f"token {site.token}", "Content-Type": "application/json"}
        with httpx.Client(base_url=site.url, headers=headers, timeout=60) as client:
            client.post("pai/api/v2/jobs", json=document).raise_for_status()
            until_answers(client, SERVICE)
            hops = hops_of(tmp_path)
            before = {}
            for hop in hops:
                Path(f"/proc/{hop.pid}/clear_refs").write_text(FORGET_PEAK)
                before[hop] = peak_bytes(hop)
            digest, length = hashlib.sha256(), 0
            with client.stream("GET", f"pai/s/{SERVICE}/files/large.bin") as answer:
                answer.raise_for_status()
                for data in answer.iter_raw():
                    digest.update(data)
                    length += len(data)
            growth = {" ".join(hop.cmdline())[-60:]: peak_bytes(hop) - before[hop] for hop in hops}
            assert length == SIZE
            assert client.get(f"pai/s/{SERVICE}/files/large.txt").text.startswith(digest.hexdigest())
            assert all(grown < LIMIT for grown in growth.values()), growth
