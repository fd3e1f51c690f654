"""What happens to the interfaces of the machine does not reach a page that is being loaded."""

from __future__ import annotations

import os

import psutil
import pytest
from playwright.sync_api import Browser

from tests.support.lab_site import LabSite


def network(process: int) -> str | None:
    """The network namespace of a process; none has a process that has ended."""
    try:
        return os.readlink(f"/proc/{process}/ns/net")
    except FileNotFoundError:
        return None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces, and nodes of Kubernetes")
def test_browser_and_jupyterlab_are_in_a_network_of_their_own(browser: Browser, lab: LabSite) -> None:
    assert browser.is_connected()
    assert lab.url
    below = {process.pid for process in psutil.Process().children(recursive=True)}
    # By the iterator: what has ended since is left out, and a zombie has no command line.
    lines = {each.pid: " ".join((each.info["cmdline"] or [])[:3]) for each in psutil.process_iter(["cmdline"])}
    started = {
        kind: {network(process) for process in below if kind in lines.get(process, "")} - {None}
        for kind in ("chromium", "jupyterlab")
    }
    # Within a test, this process is in it, too; who started the tests is not.
    assert started == {kind: {network(os.getpid())} for kind in started}
    assert network(os.getpid()) != network(os.getppid())
