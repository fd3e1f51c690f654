"""Steps of the ledger against each other, where a crash or a race may put them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from pydantic import SecretStr

from pai_backend.engine.base import EngineError, StartRefused, TaskPlan, TaskState
from pai_backend.engine.local import layout
from pai_backend.engine.local.builder import build_task, build_tombstone
from pai_backend.engine.local.layout import take_lock
from pai_backend.engine.local.ledger import TaskDirectories, read_exit
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement
from pai_backend.model.plan import PeerAccess, SshPlan, StagedInput
from tests.support.local_engine import PYTHON

UID = TaskUid("j0-0-0-0")


@pytest.fixture
def ledger(tmp_path: Path) -> TaskDirectories:
    made = TaskDirectories(tmp_path, 1000)
    made.prepare_folders()
    return made


def plan() -> TaskPlan:
    placement = Placement(node="n", address="127.0.0.1", machine="m")
    return TaskPlan(
        uid=UID, job_name="j", user="u", role="r", index=0, image="i", command="true", env={}, placement=placement
    )


def test_a_directory_half_built_by_a_killed_start_is_removed_and_never_seen(ledger: TaskDirectories) -> None:
    half = ledger.live(UID).parent / f".new-{UID}-0123abcd"
    half.mkdir()
    assert ledger.uids() == set()
    ledger.clear_abandoned()
    assert not half.exists()


def test_whoever_names_the_directory_first_wins(ledger: TaskDirectories) -> None:
    assert build_tombstone(ledger.live(UID), reason="stopped", message="m", causer="user")
    build_task(ledger.live(UID), plan(), 1000, PYTHON)
    assert not (ledger.live(UID) / layout.LAUNCH).exists()
    assert not build_tombstone(ledger.live(UID), reason="vanished", message="m", causer="platform")
    ended = read_exit(ledger.live(UID))
    assert ended is not None
    assert ended.reason == "stopped"
    assert os.listdir(ledger.live(UID).parent) == [UID]


def test_a_start_that_loses_against_a_stop_is_no_error(
    ledger: TaskDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop comes between the look for the directory and its making."""
    find = ledger.find

    def find_then_stop(uid: TaskUid) -> Path | None:
        monkeypatch.setattr(ledger, "find", find)
        ledger.stop(uid, 1)
        return None

    monkeypatch.setattr(ledger, "find", find_then_stop)
    assert ledger.start(plan())
    ended = read_exit(ledger.live(UID))
    assert ended is not None
    assert ended.reason == "stopped"


def test_a_stop_while_a_shim_is_starting_leaves_the_exit_to_the_shim(ledger: TaskDirectories) -> None:
    build_task(ledger.live(UID), plan(), 1000, PYTHON)
    shim = take_lock(ledger.live(UID) / layout.LOCK)
    assert shim is not None
    ledger.stop(UID, 1.5)
    assert (ledger.live(UID) / layout.STOP).read_text() == "1500"
    assert read_exit(ledger.live(UID)) is None
    os.close(shim)
    ledger.stop(UID, 1.5)
    ended = read_exit(ledger.live(UID))
    assert ended is not None
    assert ended.reason == "stopped"


def test_a_task_is_not_lost_while_somebody_holds_its_lock(ledger: TaskDirectories) -> None:
    """A shim between its lock and its FIFO, or one being killed at this moment."""
    build_task(ledger.live(UID), plan(), 1000, PYTHON)
    (ledger.live(UID) / layout.STARTED).write_text('{"pid": 1, "at": 1.5}')
    shim = take_lock(ledger.live(UID) / layout.LOCK)
    assert shim is not None
    seen = ledger.look(UID)
    assert seen is not None
    assert seen.state is TaskState.RUNNING
    os.close(shim)
    seen = ledger.look(UID)
    assert seen is not None
    assert seen.exit is not None
    assert (seen.state, seen.exit.reason) == (TaskState.EXITED, "lost")


def test_a_start_record_emptied_by_a_machine_crash_never_runs_the_task_again(ledger: TaskDirectories) -> None:
    build_task(ledger.live(UID), plan(), 1000, PYTHON)
    (ledger.live(UID) / layout.STARTED).touch()
    ledger.start(plan())
    assert ledger.reap() == set()
    seen = ledger.settle_unstarted(UID)
    assert seen is not None
    assert seen.exit is not None
    assert seen.exit.reason == "start-failed"


def test_the_secrets_of_a_plan_are_in_files_of_their_own_and_go_when_it_is_forgotten(ledger: TaskDirectories) -> None:
    peers = PeerAccess(key=SecretStr("hush-peers"), host_ca="ssh-ed25519 AAAA")
    ssh = SshPlan(port=22, host_key=SecretStr("hush-key"), authorized_keys=(), peers=peers)
    inputs = (StagedInput(uri="webhdfs://u:hush-pass@h/", name="code", max_bytes=1),)
    update = {"env": {"TOKEN": "hush-env"}, "command": "echo hush-command", "ssh": ssh, "inputs": inputs}
    update |= {"task_record": "hush-record"}
    secret = plan().model_copy(update=update)
    build_task(ledger.live(UID), secret, 1000, PYTHON)
    read = {path.name: path.read_bytes() for path in ledger.live(UID).iterdir() if path.is_file()}
    holding = {name for name, text in read.items() if b"hush" in text}
    assert holding == set(layout.SECRET_FILES) - {layout.COMMAND}
    assert json.loads(read[layout.PLAN]).keys().isdisjoint({"env", "command", "job_info"})
    assert {(ledger.live(UID) / name).stat().st_mode & 0o777 for name in holding} == {0o600}
    (ledger.live(UID) / layout.COMMAND).write_bytes(b"hush")  # a shim was killed while it made it
    ledger.stop(UID, 0)
    ledger.forget(UID)
    assert not {*holding, layout.COMMAND} & set(os.listdir(ledger.root / layout.DONE / UID))
    assert "hush" not in repr(secret)


@pytest.mark.parametrize(
    "update",
    [
        {"env": {"A": "hush\0"}},
        {"env": {"A=B": "hush"}},
        {"env": {"": "hush"}},
        {"env": {"A": "hush" * 40_000}},
        {"command": "hush\0"},
    ],
)
def test_what_no_process_can_be_given_is_refused_without_its_value(
    ledger: TaskDirectories, update: dict[str, object]
) -> None:
    with pytest.raises(StartRefused) as refused:
        ledger.start(plan().model_copy(update=update))
    assert "hush" not in str(refused.value)
    assert ledger.find(UID) is None


@pytest.mark.parametrize("uid", ["", "..", "a/b", ".hidden", "a b", "x" * 129, "é"])
def test_uids_that_are_no_file_names_are_refused(ledger: TaskDirectories, uid: str) -> None:
    with pytest.raises(StartRefused):
        ledger.start(plan().model_copy(update={"uid": uid}))
    with pytest.raises(EngineError):
        ledger.stop(TaskUid(uid), 1)
    assert ledger.find(TaskUid(uid)) is None


def test_a_record_that_was_tampered_with_is_an_error_in_words(ledger: TaskDirectories) -> None:
    ledger.stop(UID, 0)
    (ledger.live(UID) / layout.EXIT).write_text("nonsense")
    for act in (lambda: ledger.stop(UID, 0), lambda: ledger.forget(UID)):
        with pytest.raises(EngineError, match=r"is not JSON; remove exit\.json"):
            act()


def test_a_root_that_is_gone_is_an_error_in_words(ledger: TaskDirectories, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    tmp_path.write_text("a file is in the way")
    with pytest.raises(EngineError, match="could not be started"):
        ledger.start(plan())
