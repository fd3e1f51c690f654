"""A gateway of two processes in a whole backend: what each may suffer, and what none of its logins notices."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from jupyter_pai import broker
from jupyter_pai.sync import Client
from pai_backend.testing.free_ports import free_port
from tests.conformance.clients.entry import LIMIT_S, Entry
from tests.conformance.engines.documents import v2, v2_role
from tests.support.backend_process import command, kill, until
from tests.support.command_lines import command_lines_with
from tests.support.gateway_site import GatewaySite, Person, gateway_site, make_key, session

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("gateway-site"),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one process gets all logins to a shared port"),
]

SERVE = "exec python3 -m http.server --bind 127.0.0.1 $PAI_CONTAINER_HOST_web_PORT_LIST"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewaySite]:
    document = v2({"main": v2_role(SERVE, ports={"web": 1}), "second": v2_role("exec sleep 1000")})
    with gateway_site(tmp_path_factory.mktemp("gateway"), document) as made:
        made.alice.pai("share", made.job, "--with", "bob")
        yield made


def certified(site: GatewaySite, name: str, *only: str) -> Person:
    """Alice with a fresh key that opens nothing, and a certificate for it."""
    way = site.alice.entry
    key = make_key(way.home / name)
    words = [word for each in only for word in ("--only", each)]
    site.alice.pai("keys", "certify", str(key.with_suffix(".pub")), "--job", site.job, *words)
    return Person(site.alice.endpoint, Entry(way.host, way.port, way.login, way.host_key, key, way.home))


def test_a_certificate_to_read_files_reads_files_and_does_nothing_else(site: GatewaySite, tmp_path: Path) -> None:
    who = certified(site, "reader", "sftp-read")
    kept, got, put = tmp_path / "kept", tmp_path / "got", tmp_path / "put"
    kept.write_bytes(os.urandom(100_000))
    assert who.openssh("sftp", "-b", "-", who.entry.address(), given=f"get {kept} {got}\n".encode()).status == 0
    assert got.read_bytes() == kept.read_bytes()
    refused = who.openssh("sftp", "-b", "-", who.entry.address(), given=f"put {kept} {put}\n".encode())
    assert (refused.status, put.exists()) == (1, False), refused.err
    ran = who.ssh(f"touch {put}")
    assert (ran.status, ran.out, put.exists()) == (255, b"", False)
    assert "exec request failed" in ran.err


def test_a_certificate_for_one_port_opens_that_port_and_does_nothing_else(site: GatewaySite, tmp_path: Path) -> None:
    who, port = certified(site, "visitor", "port:web"), free_port()
    with Client(site.alice.endpoint) as client:
        (main, second) = (role["taskStatuses"][0] for role in client.job(site.job)["taskRoles"])
    ways = {port: main["ports"]["web"][0], free_port(): second["ports"]["ssh"][0]}
    forwards = [word for here, there in ways.items() for word in ("-L", f"{here}:127.0.0.1:{there}")]
    log = tmp_path / "log"
    line = who.entry.openssh("ssh", "-N", "-E", str(log), *forwards, who.entry.address())
    with subprocess.Popen(line) as process:
        try:
            until(lambda: fetched(port).startswith(b"HTTP/1.0 200 "), LIMIT_S)
            assert fetched(next(reversed(ways))) == b""
            assert "Ports it may reach, by label: web." in log.read_text()
        finally:
            process.kill()
    ran = who.ssh("true")
    assert ran.status == 255
    assert "This login is for forwarded ports only." in ran.err


def fetched(port: int) -> bytes:
    """What a server on this port answers; nothing when none is reached."""
    try:
        with socket.create_connection(("127.0.0.1", port), LIMIT_S) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return client.recv(100)
    except OSError:
        return b""


def test_each_process_has_logins_and_tells_its_own_figures(site: GatewaySite) -> None:
    before = [site.figures(copy) for copy in (1, 2)]
    with site.sessions(site.alice) as sessions:
        assert all(each.echoes("here") for each in sessions.values())
        during = [site.figures(copy) for copy in (1, 2)]
    for was, now in zip(before, during, strict=True):
        assert now["pai_gateway_logins"] > was.get("pai_gateway_logins", 0)
        assert now["pai_gateway_sessions"] >= 1
    until(lambda: all(site.figures(copy)["pai_gateway_sessions"] == 0 for copy in (1, 2)), LIMIT_S)
    after = [site.figures(copy) for copy in (1, 2)]
    for was, now in zip(before, after, strict=True):
        assert now["pai_gateway_bytes"] >= was.get("pai_gateway_bytes", 0) + len("started\n" + 2 * "here\n")
        assert now["process_start_time_seconds"] > 0
        page = (Path(__file__).parents[3] / "docs" / "ssh-gateway.md").read_text()
        told = re.findall(r"^\| `(pai_gateway_\w+?)(?:_total)?` \|", page, re.MULTILINE)
        served = {name for name in now if name.startswith("pai_gateway_")}
        assert set(told) == {name for name in served if not name.endswith("_created")}  # when each was first counted


@pytest.mark.parametrize("copy", [1, 2])
def test_a_killed_process_takes_only_its_own_logins_along_and_comes_back(site: GatewaySite, copy: int) -> None:
    with site.sessions(site.alice) as sessions:
        victim = site.processes("gateway")[copy - 1]
        (other,) = (each for pid, each in sessions.items() if pid != victim.pid)
        kill(victim)
        sessions[victim.pid].cut()
        assert other.echoes("still here")
        assert site.alice.ssh("echo new").out == b"new\n"

        def is_back() -> bool:
            return not victim.is_running() and len(site.processes("gateway")) == 2 and has_logins(site, copy)

        until(is_back, LIMIT_S)
        assert other.echoes("still here")


def has_logins(site: GatewaySite, copy: int) -> bool:
    """Whether a new login goes to a process that began lately; one more is made."""
    assert site.alice.ssh("true").status == 0
    try:
        return site.figures(copy).get("pai_gateway_logins", 0) > 0
    except httpx.TransportError:
        return False


def test_a_removed_key_ends_its_logins_in_every_process(site: GatewaySite) -> None:
    way = site.alice.entry
    key = make_key(way.home / "removed")
    who = Person(site.alice.endpoint, Entry(way.host, way.port, way.login, way.host_key, key, way.home))
    with Client(site.alice.endpoint) as client:
        added = client.add_key(key.with_suffix(".pub").read_text().strip())
        with site.sessions(who) as sessions, session(site.alice) as other:
            client.delete_key(added["fingerprint"])
            said = [each.cut() for each in sessions.values()]
            assert all("Your key was removed." in each for each in said)
            assert other.echoes("still here")


def test_a_user_who_is_locked_out_is_out_of_every_process_until_let_in(site: GatewaySite) -> None:
    with site.sessions(site.bob) as sessions, session(site.alice) as other, Client(site.alice.endpoint) as client:
        client.thread.run(broker.lock_out(client.api, "bob"))
        said = [each.cut() for each in sessions.values()]
        assert all("An administrator has locked you out of SSH." in each for each in said)
        assert other.echoes("still here")
        assert "Permission denied" in site.bob.ssh("true").err
    site.alice.pai("user", "enable", "bob")
    assert site.bob.ssh("echo in").out == b"in\n"


@pytest.mark.parametrize("role", ["api", "controller"])
def test_a_killed_api_or_controller_costs_no_login(site: GatewaySite, role: str) -> None:
    with site.sessions(site.alice) as sessions:
        (victim,) = site.processes(role)
        kill(victim)
        assert all(each.echoes("still here") for each in sessions.values())
        assert site.alice.ssh("echo new").out == b"new\n"
        until(lambda: not victim.is_running() and site.backend.ready())
        assert all(each.echoes("still here") for each in sessions.values())
    assert site.alice.ssh("echo again").out == b"again\n"


def test_another_backend_does_not_get_into_the_port(site: GatewaySite, tmp_path: Path) -> None:
    settings = ("--gateway-processes", "2", "--gateway-port", str(site.port), "--log-dir", str(tmp_path / "log"))
    ended = subprocess.run(command(tmp_path / "data", *settings), capture_output=True, text=True, timeout=LIMIT_S)
    reason = f"gateway.port: cannot listen on 127.0.0.1:{site.port}: Address already in use"
    assert (ended.returncode, ended.stderr) == (2, f"pai_backend: {reason}\n")
    assert command_lines_with(f"{tmp_path}/") == []
    assert site.alice.ssh("echo in").out == b"in\n"
