"""What a server lacks is found before its users find it."""

from __future__ import annotations

import json
import os
import socket
import ssl
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pai_backend.commands import server_check
from pai_backend.commands.server_check import CheckResult, check, main
from pai_backend.commands.server_setup import unit
from pai_backend.config.settings import Settings
from pai_backend.platform.runtime_files import write_json
from pai_backend.testing.free_ports import free_ports
from tests.support.certificates import Authority

OUTSIDE = "0.0.0.0"


def settings(place: Path, **more: Any) -> Settings:
    api_port, ssh_port = free_ports(2)
    values: dict[str, Any] = {
        "data_dir": place,
        "api": {"port": api_port},
        "gateway": {"port": ssh_port},
        "engine": {"accounts": {"first_uid": 2_000_000, "count": 10}},
    }
    for key, value in more.items():
        values[key] = {**values.get(key, {}), **value} if isinstance(value, dict) else value
    return Settings.model_validate(values)


def certificate_files(place: Path, names: list[str], days: float) -> tuple[Path, Path]:
    place.mkdir(exist_ok=True)
    files = place / "certificate.pem", place / "key.pem"
    Authority().write(*files, *names, days=days)
    return files


def found(checked: list[CheckResult], name: str) -> list[tuple[str, bool]]:
    """What one of the checks says, and whether it blocks."""
    (one,) = (each for each in checked if each.name == name)
    return [(finding.what, finding.blocking) for finding in one.findings]


def test_a_server_that_only_its_own_machine_reaches_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    checked = check(settings(tmp_path), None)
    assert [each.name for each in checked if any(finding.blocking for finding in each.findings)] == []
    assert found(checked, "ways in") == [("only this machine reaches the API", False)]
    assert found(checked, "backend") == [("it does not run", False)]


def test_a_port_that_another_program_has_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ((what, blocks),) = found(check(settings(tmp_path, api={"port": port}), None), "ports")
    assert what == f"api.port {port} on 127.0.0.1: Address already in use"
    assert blocks


@pytest.mark.parametrize(
    ("api", "expected"),
    [
        ({"host": OUTSIDE}, [("passwords pass the network in clear text: 0.0.0.0 speaks http", True)]),
        (
            {"host": OUTSIDE, "public_url": "http://pai.example.org"},
            [("passwords pass the network in clear text: 0.0.0.0 speaks http", True)],
        ),
        (
            {"host": OUTSIDE, "public_url": "https://pai.example.org"},
            [("a guessed password locks out all who come by the proxy", False)],
        ),
        ({"host": OUTSIDE, "public_url": "https://pai.example.org", "proxies": ["10.0.0.7"]}, []),
    ],
)
def test_ways_in_for_others_are_encrypted(
    tmp_path: Path, api: dict[str, Any], expected: list[tuple[str, bool]]
) -> None:
    given = settings(tmp_path, api=api, gateway={"host": OUTSIDE})
    assert found(check(given, None), "ways in") == expected


def test_ssh_that_others_do_not_reach_is_told(tmp_path: Path) -> None:
    given = settings(tmp_path, api={"host": OUTSIDE, "public_url": "https://pai.example.org", "proxies": ["10.0.0.7"]})
    assert found(check(given, None), "ways in") == [("only this machine reaches SSH into jobs", False)]


@pytest.mark.parametrize(
    ("days", "names", "expected"),
    [
        (90, ["pai.example.org", "*.pai.example.org"], []),
        (90, ["*.example.org", "*.pai.example.org"], []),
        (5, ["pai.example.org", "*.pai.example.org"], [("ends on", False)]),
        (-1, ["pai.example.org", "*.pai.example.org"], [("has ended", True)]),
        (90, ["other.example.org"], [("is not for pai.example.org", True), ("is not for *.pai.example.org", False)]),
    ],
)
def test_a_certificate_is_for_its_names_and_lasts(
    tmp_path: Path, days: int, names: list[str], expected: list[tuple[str, bool]]
) -> None:
    certificate, key = certificate_files(tmp_path, names, days)
    tls = {"certificate": certificate, "key": key}
    given = settings(
        tmp_path, api={"tls": tls, "public_url": "https://pai.example.org:8750", "service_domain": "pai.example.org"}
    )
    said = found(check(given, None), "certificate")
    assert [blocks for _, blocks in said] == [blocks for _, blocks in expected]
    assert all(words in what for (what, _), (words, _) in zip(said, expected, strict=True))


def test_files_that_do_not_belong_together_are_told(tmp_path: Path) -> None:
    first, _ = certificate_files(tmp_path / "a", ["pai.example.org"], 90)
    _, second = certificate_files(tmp_path / "b", ["pai.example.org"], 90)
    given = settings(tmp_path, api={"tls": {"certificate": first, "key": second}})
    ((what, blocks),) = found(check(given, None), "certificate")
    assert "do not belong together" in what
    assert blocks


def test_users_whose_tasks_are_one_account_are_told(tmp_path: Path) -> None:
    given = settings(tmp_path, engine={"accounts": {}})
    assert [what for what, _ in found(check(given, None), "engine")] == [
        "tasks of all users run as the backend's own account"
    ]


def test_a_gpu_that_is_named_and_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pai_backend.engine.local import nodes
    from pai_backend.engine.local.nodes import simulated_node

    monkeypatch.setattr(nodes, "detect_machine", lambda: simulated_node("here", "A100", 2, 8, 1000))
    node = {"name": "here", "simulated": False, "gpu_indices": [0, 3]}
    given = settings(tmp_path, engine={"nodes": [node]})
    assert found(check(given, None), "GPUs") == [("here is to have GPU 3, and the driver shows 0, 1", True)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("", ""), []),
        (("KillMode=process", "KillMode=control-group"), ["a restart of the backend ends all jobs"]),
        (("Delegate=yes\n", ""), ["tasks cannot be held to their memory"]),
    ],
)
def test_the_unit_of_systemd_keeps_tasks(tmp_path: Path, change: tuple[str, str], expected: list[str]) -> None:
    file = tmp_path / "jupyter-pai.service"
    file.write_text(unit("/bin/python3", Path("/etc/x.yaml")).replace(*change))
    said = found(check(settings(tmp_path / "data"), file), "reboot")
    assert [what.partition(":")[0] for what, _ in said] == expected
    assert found(check(settings(tmp_path / "data"), tmp_path / "none"), "reboot")[0][1] is False


def test_it_ends_with_1_when_something_blocks_and_tells_it_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "backend.yaml"
    api_port, ssh_port = free_ports(2)
    config.write_text(
        f"data_dir: {tmp_path}\napi: {{host: {OUTSIDE}, port: {api_port}}}\ngateway: {{port: {ssh_port}}}\n"
    )
    assert main(["--config", str(config), "--json"]) == server_check.EXIT_BLOCKED
    told = json.loads(capsys.readouterr().out)
    assert told["works"] is False
    assert "wrong    ways in: passwords pass the network" in told["report"]
    assert main(["--config", str(tmp_path / "none.yaml")]) == server_check.EXIT_CONFIG
    assert main(["--unit"]) == server_check.EXIT_CONFIG


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, b"{}", []),
        (503, b'{"checks": [{"name": "database", "ok": false, "message": "away"}]}', ["database: away"]),
        (503, b"<html>", ["does not answer"]),
    ],
)
def test_a_backend_that_runs_is_asked_how_it_is_also_by_https(
    tmp_path: Path, status: int, body: bytes, expected: list[str]
) -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    certificate, key = certificate_files(tmp_path / "tls", ["pai.example.org"], 90)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        answering = Thread(target=server.handle_request)
        answering.start()
        runtime = tmp_path / "data" / "runtime"
        write_json(runtime / "supervisor.json", {"pid": os.getpid()})
        write_json(runtime / "api.json", {"url": f"https://127.0.0.1:{server.server_address[1]}"})
        said = found(check(settings(tmp_path / "data"), None), "backend")
        answering.join(60)
    assert len(said) == len(expected)
    assert all(words in what for (what, _), words in zip(said, expected, strict=True))
