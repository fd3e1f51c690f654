"""The private backend, for real: started once, found by all, ended on demand, renewed when it is old."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jupyter_pai.embedded import Embedded, backend_environment
from jupyter_pai.errors import BackendAway, BackendStartFailed
from jupyter_pai.sync import Client
from tests.support.backend_process import until
from tests.support.living import lives

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a private backend needs POSIX")

NODES = """
cluster_name: embedded-test
engine:
  nodes:
    - {name: carol, simulated: true, gpus: {type: TITANX, count: 1}}
"""


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Embedded]:
    config = tmp_path / "backend.yaml"
    config.write_text(NODES)
    made = Embedded(tmp_path / "data", config)
    yield made
    made.stop()


def pid(private: Embedded) -> int:
    found = private.status().pid
    assert found is not None
    return found


def test_it_is_started_once_however_many_ask_at_the_same_time(private: Embedded) -> None:
    program = (
        "import sys; from pathlib import Path; from jupyter_pai.embedded import Embedded;"
        "print(Embedded(Path(sys.argv[1]), Path(sys.argv[2])).ensure().url)"
    )
    command = [sys.executable, "-c", program, str(private.data_dir), str(private.config_file)]

    def ask(_: int) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout

    with ThreadPoolExecutor(3) as askers:
        assert len(set(askers.map(ask, range(3)))) == 1
    # They have ended, and the backend has not.
    with Client(private.require()) as client:
        assert client.info()["name"] == "embedded-test"
    assert (private.data_dir / "token").stat().st_mode & 0o777 == 0o600


def test_it_ends_on_demand_and_stale_files_are_no_problem(private: Embedded) -> None:
    first = private.ensure()
    before = pid(private)
    stale = (private.data_dir / "runtime" / "api.json").read_bytes()
    assert private.stop() is True
    assert private.stop() is False
    (private.data_dir / "runtime").mkdir(exist_ok=True)
    (private.data_dir / "runtime" / "api.json").write_bytes(stale)
    assert private.find() is None
    with pytest.raises(BackendAway, match="No backend runs for"):
        private.require()
    second = private.ensure()
    assert pid(private) != before
    assert second.token == first.token


@pytest.mark.skipif(sys.platform != "linux", reason="zombies are told from others by /proc")
def test_a_supervisor_that_is_a_zombie_has_ended(private: Embedded) -> None:
    private.ensure()
    record = private.data_dir / "runtime" / "supervisor.json"
    was = record.read_bytes()
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        record.write_text(json.dumps(json.loads(was) | {"pid": ended.pid}))
        assert (private.find(), private.status().pid) == (None, None)
        record.write_bytes(was)
        assert private.find() is not None


def test_a_killed_supervisor_is_noticed_and_replaced(private: Embedded) -> None:
    private.ensure()
    killed = pid(private)
    os.kill(killed, signal.SIGKILL)
    until(lambda: not lives(killed))
    private.ensure()
    assert pid(private) != killed
    with Client(private.require()) as client:
        assert client.jobs() == []


def test_an_older_one_is_renewed_when_no_job_runs(private: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    private.ensure()
    old = pid(private)
    record = private.data_dir / "runtime" / "api.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "version": "0.0.1"}))
    active = {"totalCount": 1}
    real = Embedded._get

    def get(self: Embedded, endpoint: object, path: str) -> object:
        return active if "withTotalCount" in path else real(self, endpoint, path)  # type: ignore[arg-type]

    monkeypatch.setattr(Embedded, "_get", get)
    private.ensure()
    assert pid(private) == old
    active["totalCount"] = 0
    private.ensure()
    assert pid(private) != old


def test_a_backend_that_cannot_start_says_why_and_where_its_logs_are(tmp_path: Path) -> None:
    config = tmp_path / "backend.yaml"
    config.write_text("no_such_key: 1\n")
    broken = Embedded(tmp_path / "data", config)
    with pytest.raises(BackendStartFailed, match="no_such_key") as caught:
        broken.ensure()
    assert str(tmp_path / "data" / "log") in caught.value.hint
    assert caught.value.exit_code == 3


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendStartFailed, match="cannot be used: Not a directory"):
        Embedded(tmp_path / "file" / "data").ensure()


def test_half_a_runtime_file_is_as_good_as_none(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    for text in ("", '{"pid": ', "[]", '{"pid": "1"}', json.dumps({"pid": 2**22 + 1, "url": "http://127.0.0.1:1"})):
        (runtime / "api.json").write_text(text)
        assert Embedded(tmp_path).find() is None


def test_jupyters_secrets_do_not_reach_the_backend() -> None:
    given = {"PATH": "/bin", "JUPYTER_TOKEN": "s", "JPY_PARENT_PID": "1", "PAI_TOKEN": "s", "PAI_BACKEND_USER": "me"}
    assert backend_environment(given) == {"PATH": "/bin", "PAI_BACKEND_USER": "me"}
