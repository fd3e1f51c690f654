"""A whole backend that is told to end while somebody is logged in."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

from tests.conformance.clients.entry import LIMIT_S
from tests.conformance.engines.documents import commands
from tests.support.backend_process import until
from tests.support.gateway_site import gateway_site, session

REFUSED_S = 60.0
DRAIN_S = 200.0  # far more than the test takes: what ends, ends by itself
ENDS_ITSELF = "echo started; read line; echo got $line; exit 7"


def refuses(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


def test_logins_go_on_until_they_end_while_nobody_new_gets_in(tmp_path: Path) -> None:
    over = tmp_path / "over"
    document = commands(f"until [ -e {over} ]; do sleep 0.1; done")
    with gateway_site(tmp_path / "site", document, drain_s=DRAIN_S) as site:
        try:
            with session(site.alice, ENDS_ITSELF) as first, session(site.alice) as second:
                site.backend.process.send_signal(signal.SIGTERM)
                until(lambda: refuses(site.port), REFUSED_S)
                runtime = site.backend.data_dir / "runtime"
                until(lambda: not (runtime / "gateway.json").exists(), REFUSED_S)
                until(lambda: not site.processes("api") and not site.processes("controller"), LIMIT_S)
                assert second.echoes("still here")
                assert first.process.communicate(b"to the end\n", timeout=LIMIT_S) == (b"got to the end\n", b"")
                assert first.process.returncode == 7
                assert second.echoes("still here")
                assert site.backend.process.poll() is None
                assert second.process.communicate(timeout=LIMIT_S) == (b"", b"")
                assert second.process.returncode == 0
            assert site.backend.process.wait(LIMIT_S) == 0
        finally:
            over.touch()  # the task would outlive its backend
