"""No restart of a process of ours closes the door: logins go on, and new ones are let in meanwhile."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pai_backend.platform.runtime_files import read_json
from tests.conformance.engines.documents import commands
from tests.support.backend_process import backend, kill, until
from tests.support.gateway_site import GatewaySite, gateway_site, session
from tests.support.living import lives

pytestmark = pytest.mark.timeout(400)

DRAIN_S = 300.0  # far more than the test takes
PAUSE_S = 0.2  # between two connections of the watch: a gateway bounds those of one source that do not log in


@pytest.fixture
def site(tmp_path: Path) -> Iterator[GatewaySite]:
    """A backend with a job that outlives it, and ends with the test."""
    over = tmp_path / "over"
    try:
        with gateway_site(tmp_path / "site", commands(f"until [ -e {over} ]; do sleep 0.1; done"), DRAIN_S) as made:
            yield made
    finally:
        over.touch()


def _config(site: GatewaySite) -> list[str]:
    return ["--config", str(site.backend.data_dir.parent / "backend.yaml")]


def test_sessions_outlive_a_killed_supervisor_and_its_successor_waits_for_none(site: GatewaySite) -> None:
    with session(site.alice) as old:
        orphans = psutil.Process(site.backend.process.pid).children()
        kill(psutil.Process(site.backend.process.pid))
        site.backend.process.wait(60)
        with backend(site.backend.data_dir, _config(site)):
            assert old.echoes("still here")
            _lets_in(site)
            assert old.echoes("still here, too")
            assert old.process.communicate(timeout=60) == (b"", b"")
            psutil.wait_procs(orphans, 60)
            assert not any(map(lives, orphans)), "they end when the last login has"


def test_a_successor_starts_while_the_old_backend_drains(site: GatewaySite) -> None:
    with session(site.alice) as old:
        site.backend.process.send_signal(signal.SIGTERM)
        until(lambda: not site.processes("api"), 60)
        until(lambda: not (site.backend.data_dir / "runtime" / "supervisor.json").exists(), 60)
        with backend(site.backend.data_dir, _config(site)) as new:
            assert site.backend.process.poll() is None
            assert old.echoes("still here")
            _lets_in(site)
            assert old.echoes("still here, too")
            assert old.process.communicate(timeout=60) == (b"", b"")
            assert site.backend.process.wait(60) == 0
            said = read_json(new.data_dir / "runtime" / "supervisor.json") or {}
            assert said["pid"] == new.process.pid, "the old one has not removed what the new one says"


def test_a_replaced_program_refuses_no_connection_and_cuts_no_session(site: GatewaySite) -> None:
    runtime, before = site.backend.data_dir / "runtime", site.backend.children()
    started = (read_json(runtime / "supervisor.json") or {})["started"]
    with session(site.alice) as old, _refusals(site.port) as refusals:
        site.backend.process.send_signal(signal.SIGUSR2)
        until(lambda: (read_json(runtime / "supervisor.json") or {"started": started})["started"] != started)
        until(lambda: _gateway(site) not in (None, before["gateway"].pid))
        until(site.backend.ready)
        _lets_in(site)
        assert old.echoes("still here")
    assert refusals == []
    assert {process.pid for process in before.values()}.isdisjoint(
        process.pid for process in site.backend.children().values()
    )


def test_a_program_that_does_not_take_the_configuration_replaces_nothing(site: GatewaySite) -> None:
    before = {role: process.pid for role, process in site.backend.children().items()}
    settings = _settings_of(site.backend.process.pid)
    text = settings.read_bytes()
    settings.write_bytes(text.replace(b'"gateway": {', b'"gateway": {"drain_s": "a-secret", "unknown": 1, ', 1))
    assert settings.read_bytes() != text
    site.backend.process.send_signal(signal.SIGUSR2)
    until(lambda: "the program is not replaced" in site.backend.errors.read_text())
    words = site.backend.errors.read_text()
    assert "gateway.unknown" in words
    assert "a-secret" not in words
    settings.write_bytes(text)
    assert {role: process.pid for role, process in site.backend.children().items()} == before
    _lets_in(site)


@pytest.mark.parametrize("role", ["gateway", "agent"])
def test_a_process_that_is_told_to_end_is_followed_at_once(site: GatewaySite, role: str) -> None:
    with session(site.alice) as old, _refusals(site.port) as refusals, _failures(site) as failures:
        leaving = site.processes(role)
        for process in leaving:
            process.send_signal(signal.SIGTERM)
        until(lambda: len(set(site.processes(role)) - set(leaving)) > 0)
        _lets_in(site)
        assert old.echoes("still here")
    assert (refusals, failures) == ([], [])


def test_a_killed_agent_refuses_no_login(site: GatewaySite) -> None:
    _lets_in(site)
    with _failures(site) as failures:
        killed = site.processes("agent")
        for process in killed:
            kill(process)
        until(lambda: len(set(site.processes("agent")) - set(killed)) > 0)
        _lets_in(site)
    # one that was under way when it was killed may have been cut, as at a gateway
    assert [failure for failure in failures if "was lost" not in failure and "closed" not in failure] == []


def test_a_killed_gateway_refuses_no_connection(site: GatewaySite) -> None:
    with _refusals(site.port) as refusals:
        for process in site.processes("gateway"):
            kill(process)
        _lets_in(site)
    assert refusals == []


def _lets_in(site: GatewaySite) -> None:
    done = site.alice.ssh("echo new")
    assert (done.status, done.out) == (0, b"new\n"), done.err


def _gateway(site: GatewaySite) -> object:
    return (read_json(site.backend.data_dir / "runtime" / "gateway.json") or {}).get("pid")


def _settings_of(supervisor: int) -> Path:
    """The nameless file of settings, by the descriptor that the supervisor has."""
    nameless = [each for each in Path(f"/proc/{supervisor}/fd").iterdir() if os.readlink(each).endswith(" (deleted)")]
    (settings,) = [each for each in nameless if each.read_bytes().startswith(b"{")]
    return settings


@contextmanager
def _failures(site: GatewaySite) -> Iterator[list[str]]:
    """Log in again and again while the block runs; gives what those read who did not get in."""
    failed: list[str] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            done = site.alice.ssh("echo new")
            if done.out != b"new\n":
                failed.append(done.err)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield failed
    finally:
        over.set()
        watching.join()


@contextmanager
def _refusals(port: int) -> Iterator[list[str]]:
    """Connect again and again while the block runs; gives what went wrong."""
    refused: list[str] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(PAUSE_S):
            with socket.socket() as client:
                client.settimeout(60)
                try:
                    client.connect(("127.0.0.1", port))
                except OSError as error:
                    refused.append(str(error))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield refused
    finally:
        over.set()
        watching.join()
