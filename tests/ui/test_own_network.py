"""What happens to the interfaces of the machine does not reach a page that is being loaded."""

from __future__ import annotations

import os

import psutil
import pytest
from playwright.sync_api import Browser

from tests.support.lab_site import LabSite


def network(process: int) -> str:
    """The network namespace of a process."""
    return os.readlink(f"/proc/{process}/ns/net")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces, and nodes of Kubernetes")
def test_browser_and_jupyterlab_are_in_a_network_of_their_own(browser: Browser, lab: LabSite) -> None:
    assert browser.is_connected()
    assert lab.url
    below = psutil.Process().children(recursive=True)
    started = {
        kind: {network(process.pid) for process in below if kind in " ".join(process.cmdline()[:3])}
        for kind in ("chromium", "jupyterlab")
    }
    # Within a test, this process is in it, too; who started the tests is not.
    assert started == {kind: {network(os.getpid())} for kind in started}
    assert network(os.getpid()) != network(os.getppid())
