"""What ``setup`` writes is what a backend takes, and what it refuses changes nothing."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

import pytest
import yaml

from pai_backend.commands import setup
from pai_backend.commands.server_check import report
from pai_backend.commands.server_setup import Answers, configuration, next_steps, unit
from pai_backend.config.load import load
from pai_backend.engine.containers.provider import ContainersProvider

ANSWERS = Answers(
    admin="root",
    people=("ann", "bob"),
    gpus=None,
    data_dir=Path("/var/lib/jupyter-pai"),
    files=Path("/srv/pai"),
    api_port=8750,
    ssh_port=2222,
    domain="",
    certificate=None,
    key=None,
    proxy="",
    runtime_image="localhost/jupyter-pai/runtime:1",
)
GIVEN = ("--admin", "root", "--people", "ann, bob", "--gpus", "all", "--runtime-image", "")


def answers(**changes: object) -> Answers:
    return Answers(**{**vars(ANSWERS), **changes})


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Flags by which all that is written lies in a directory of the test."""
    names = {
        "--output": "etc/backend.yaml",
        "--unit": "unit/jupyter-pai.service",
        "--data-dir": "data",
        "--files": "srv",
    }
    return [word for flag, name in names.items() for word in (flag, str(tmp_path / name))]


@pytest.mark.parametrize(
    ("changes", "url"),
    [
        ({}, "http://127.0.0.1:8750"),
        (
            {"domain": "gpu.example.org", "certificate": Path("/c.pem"), "key": Path("/k.pem")},
            "https://gpu.example.org:8750",
        ),
        ({"domain": "gpu.example.org", "proxy": "10.0.0.7"}, "https://gpu.example.org"),
        ({"runtime_image": "", "gpus": (0, 2)}, "http://127.0.0.1:8750"),
        ({"gpus": ()}, "http://127.0.0.1:8750"),
    ],
)
def test_a_backend_takes_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], url: str
) -> None:
    # Podman and root are the machine's, whatever is written.
    monkeypatch.setattr(ContainersProvider, "check", lambda _self, _settings: None)
    given = answers(data_dir=tmp_path / "data", **changes)
    config = tmp_path / "backend.yaml"
    config.write_text(configuration(given))
    settings = load(["--config", str(config)]).settings
    assert (settings.api.port, settings.gateway.port, settings.user) == (8750, 2222, "root")
    assert (settings.api.public_url or "http://127.0.0.1:8750") == url == given.url
    assert settings.engine.kind == ("containers" if given.runtime_image else "local")
    assert settings.engine.accounts.given is not bool(given.runtime_image), "tasks of users are apart either way"
    assert [node.gpu_indices for node in settings.engine.nodes] == ([] if given.gpus is None else [given.gpus])
    if given.domain:
        assert (settings.api.host, settings.gateway.public_host) == ("0.0.0.0", "gpu.example.org")
    assert bool(settings.api.proxies) is bool(given.proxy)
    assert settings.api.tls.certificate == given.certificate


def test_the_unit_keeps_tasks_and_names_its_files_whatever_they_are_called() -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(unit("/opt/a b/python", Path("/etc/pai/backend.yaml")))
    service = parser["Service"]
    assert (service["killmode"], service["delegate"], service["restart"]) == ("process", "yes", "always")
    command = ["/opt/a b/python", "-m", "pai_backend", "serve", "--config", "/etc/pai/backend.yaml"]
    assert shlex.split(service["execstart"]) == command


def test_what_is_to_be_done_next_lets_each_person_in() -> None:
    words = next_steps(ANSWERS, Path("/etc/systemd/system/jupyter-pai.service"), Path("/etc/x.yaml"), "/bin/python3")
    assert "systemctl enable --now jupyter-pai.service" in words
    assert [line.strip() for line in words.splitlines() if "pai user add" in line] == [
        "pai user add ann",
        "pai user add bob",
    ]
    assert "At a reboot systemd starts the backend again" in words
    assert "nothing starts the backend after a reboot" in next_steps(ANSWERS, None, Path("/etc/x.yaml"), "/bin/python3")


def test_it_writes_asks_nothing_that_is_given_and_says_what_to_do(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup.main([*GIVEN, *files, "--api-port", "18750", "--ssh-port", "12222"]) == 0
    written = yaml.safe_load((tmp_path / "etc" / "backend.yaml").read_text())
    assert (written["user"], written["api"]["port"]) == ("root", 18750)
    assert (tmp_path / "etc" / "backend.yaml").stat().st_mode & 0o777 == 0o600
    assert str(tmp_path / "etc" / "backend.yaml") in (tmp_path / "unit" / "jupyter-pai.service").read_text()
    assert (tmp_path / "srv").is_dir()
    said = capsys.readouterr().out
    assert "ok       ports" in said
    assert "pai user add ann" in said


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--people", "ann,../x"], "--people: '../x' is not a user name"),
        (["--gpus", "two"], "--gpus: 'two' is none of all, none, and numbers"),
        (["--api-port", "70000"], "api.port"),
        (["--api-port", "2222", "--ssh-port", "2222"], "--ssh-port: 2222 is the port of the API"),
        (["--domain", "no_host"], "--domain: 'no_host' is not a host name"),
        (["--domain", "a.example.org", "--certificate", "/c.pem"], "--key: a certificate and its key belong together"),
        (["--data-dir", "relative"], "--data-dir: relative is not an absolute path"),
        (["--what"], "command line: unrecognized arguments: --what"),
    ],
)
def test_what_cannot_be_is_one_line_and_writes_nothing(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    assert setup.main([*GIVEN, *files, *more]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_no_file_is_replaced_that_is_not_asked_for(files: list[str], tmp_path: Path) -> None:
    assert setup.main([*GIVEN, *files]) == 0
    config = tmp_path / "etc" / "backend.yaml"
    config.write_text("mine")
    assert setup.main([*GIVEN, *files]) == 2
    assert config.read_text() == "mine"
    assert setup.main([*GIVEN, *files, "--force"]) == 0
    assert config.read_text() != "mine"


def test_printing_writes_nothing(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup.main([*GIVEN, *files, "--print"]) == 0
    assert "ExecStart=" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_report_has_a_line_for_what_is_well() -> None:
    assert report([]) == "\n"
