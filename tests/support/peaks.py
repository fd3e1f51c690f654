"""The most memory that processes have had, as Linux tells it: what streams through them must not gather in them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

GROWTH = 32 << 20
"""Each hop holds some pieces of 64 KiB; a reading of memory beside them is not exact."""
FORGET_PEAK = "5"  # proc(5), clear_refs
HOPS = ("-m jupyterlab", "-m jupyterhub.singleuser", "-m pai_backend", "-m jupyter_pai.cli")


def hops_of(root: Path) -> list[psutil.Process]:
    """Jupyter servers, processes of backends and clients that have their home or an open file below ``root``."""
    return [each for each in psutil.process_iter() if _is_hop(each, root)]


def _is_hop(process: psutil.Process, root: Path) -> bool:
    try:
        words = process.cmdline()
        if not any(hop in " ".join(words) for hop in HOPS):
            return False
        places = [process.environ().get("HOME", ""), *(each.path for each in process.open_files())]
    except psutil.Error:  # it has ended
        return False
    return any(place.startswith(str(root)) for place in places)


@contextmanager
def flat(root: Path) -> Iterator[None]:
    """What runs in the block lets no hop below ``root`` grow. There are two or more: a Jupyter server and a backend.

    Only Linux tells that; elsewhere the block runs unwatched.
    """
    if sys.platform != "linux":
        yield
        return
    hops = hops_of(root)
    assert len(hops) > 1, hops
    before = {}
    for hop in hops:
        Path(f"/proc/{hop.pid}/clear_refs").write_text(FORGET_PEAK)
        before[hop] = peak_bytes(hop)
    yield
    growth = {" ".join(hop.cmdline())[-60:]: peak_bytes(hop) - before[hop] for hop in hops}
    assert all(grown < GROWTH for grown in growth.values()), growth


def peak_bytes(process: psutil.Process) -> int:
    """The most memory that it has had since its peak was forgotten."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10
