"""``pai`` as a process: what it prints where, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_backend import task_body
from tests.support.running_fake import RunningFake
from tests.support.warm_start import run_pai

EXAMPLES = Path(__file__).parents[3] / "examples"
TIMEOUT_S = 60


class Pai:
    """Runs the command line against a fake backend."""

    def __init__(self, fake: RunningFake, home: Path) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PAI_")}
        place = {"PAI_URL": fake.endpoint.url, "PAI_TOKEN": fake.endpoint.token, "PAI_SSH_DIR": str(home / "ssh")}
        self.environ = {**kept, **place, "HOME": str(home)}

    def start(self, *args: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "jupyter_pai.cli", *args]
        with_pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
        return subprocess.Popen(command, env=self.environ, text=True, **with_pipes)

    def __call__(self, *args: str, stdin: str = "") -> tuple[int, str, str]:
        done = run_pai(*args, env=self.environ, stdin=stdin)
        return done.returncode, done.stdout, done.stderr

    def json(self, *args: str, stdin: str = "") -> tuple[int, Any]:
        code, out, err = self(*args, "--json", stdin=stdin)
        assert err == ""
        return code, json.loads(out)


@pytest.fixture
def pai(fake: RunningFake, tmp_path: Path) -> Pai:
    return Pai(fake, tmp_path)


def test_submitting_and_listing(pai: Pai) -> None:
    code, out, _ = pai("submit", str(EXAMPLES / "scm-helloworld.json"))
    assert code == 0
    assert out.startswith("helloworld_16be675e: WAITING")
    code, rows = pai.json("list")
    assert code == 0
    assert [row["name"] for row in rows] == ["helloworld_16be675e"]


def test_the_document_goes_as_it_is_and_can_come_from_stdin(pai: Pai, fake: RunningFake) -> None:
    text = '{ "jobName" :  "from-stdin" }\n'
    assert pai("submit", "-", stdin=text)[0] == 0
    code, out, _ = pai("config", "from-stdin")
    assert (code, out) == (0, text)


def test_a_clone_has_the_document_byte_for_byte_and_the_next_name(pai: Pai) -> None:
    text = '{ "jobName" :  "train" }\n'
    assert pai("submit", "-", stdin=text)[0] == 0
    for name in ("train_2", "train_3"):
        code, job = pai.json("clone", "train")
        assert (code, job["name"]) == (0, name)
    assert pai.json("clone", "train_2")[1]["name"] == "train_4"
    assert pai.json("clone", "train", "--name", "other")[1]["name"] == "other"
    assert pai("clone", "train", "--name", "other")[0] == 2
    assert pai("config", "train_4") == (0, text, "")
    assert pai("submit", "-", stdin='{"jobName": "theirs", "key": "******"}')[0] == 0
    code, _, err = pai("clone", "theirs")
    assert (code, "masked" in err) == (2, True)


def test_a_document_in_utf16_goes_as_utf8_and_one_in_gbk_after_a_yes(
    pai: Pai, fake: RunningFake, tmp_path: Path
) -> None:
    text = '{"jobName": "encoded", "说明": "中文"}\r\n'
    for number, encoding in enumerate(("utf-16", "gbk", "utf-8-sig")):
        path = tmp_path / "job.json"
        path.write_bytes(text.encode(encoding))
        if encoding == "gbk":
            code, _, err = pai("submit", str(path))
            assert code == 2
            assert "from GBK to UTF-8? This needs confirmation" in err
            assert len(fake.backend.jobs) == number
        code, out, _ = pai("submit", str(path), "--name", f"job-{number}", "--yes")
        assert code == 0, out
        mark = "\ufeff" if encoding == "utf-8-sig" else ""
        assert list(fake.backend.sources.values())[-1] == (mark + text).encode()


def test_waiting_prints_the_final_job_and_nothing_else_as_json(pai: Pai, fake: RunningFake) -> None:
    process = pai.start("submit", "-", "--wait", "--json")
    assert process.stdin is not None
    process.stdin.write('{"jobName": "train"}')
    process.stdin.close()
    process.stdin = None
    uid = _submitted(fake)
    fake.advance(uid, "RUNNING")
    fake.write_log(uid, b"not JSON\n")
    fake.advance(uid, "SUCCEEDED")
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["state"] == "SUCCEEDED"


def test_a_failed_job_is_exit_code_1_with_log_and_verdict(pai: Pai, fake: RunningFake) -> None:
    uid = fake.add_job("train")
    fake.write_log(uid, "日志\n".encode())
    exit_ = {"status": 3, "message": "the command failed", "role": "main", "index": 0}
    fake.advance(uid, "FAILED", exit=exit_)
    code, _, err = pai("status", "train", "--watch")
    assert code == 1
    assert err.endswith("train failed in main-0 with exit status 3: the command failed\n")
    assert pai("logs", "train", "-f")[1] == "日志\n"
    assert pai("status", "train")[0] == 1


def _submitted(fake: RunningFake) -> str:
    """The uid of the first job, when it has arrived."""

    async def arrive() -> str:
        async with fake.backend.changed:
            await fake.backend.changed.wait_for(lambda: fake.backend.jobs)
        return next(iter(fake.backend.jobs))

    return fake.thread.start(arrive()).result(TIMEOUT_S)


def test_ctrl_c_leaves_the_job_running_and_says_so(pai: Pai, fake: RunningFake) -> None:
    uid = fake.add_job("train")
    process = pai.start("status", "train", "--watch")
    assert process.stderr is not None
    assert "train: WAITING" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, err
    assert "the job keeps running" in err
    assert fake.backend.jobs[uid]["state"] == "WAITING"


def test_a_refused_document_shows_its_place_and_is_exit_code_2(pai: Pai) -> None:
    code, out, err = pai("submit", "-", stdin='{\n  "jobName" 5\n}')
    assert (code, out) == (2, "")
    assert "stdin:2:13" in err
    assert '      "jobName" 5\n                ^' in err
    code, body = pai.json("submit", "-", stdin='{\n  "jobName" 5\n}')
    assert code == 2
    assert body["errors"][0]["line"] == 2


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("show", "nobody"), 2, "pai: There is no job nobody."),
        (("submit", "no-such-file.json"), 2, "pai: no-such-file.json cannot be read: No such file or directory."),
        (("open", "nobody"), 2, "pai: There is no job nobody."),
        (("fly",), 2, "invalid choice: 'fly'"),
        ((), 2, "the following arguments are required: VERB"),
    ],
)
def test_mistakes_are_exit_code_2_with_one_message(pai: Pai, args: tuple[str, ...], code: int, message: str) -> None:
    got, out, err = pai(*args)
    assert (got, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


def test_a_backend_that_is_away_is_exit_code_3(pai: Pai, fake: RunningFake) -> None:
    url = fake.endpoint.url
    fake.stop()
    code, out, err = pai("list")
    assert (code, out) == (3, "")
    assert err == (
        f"pai: The backend at {url} does not answer: Connection refused.\n"
        "  Start the private one with `pai backend start`, or check PAI_URL.\n"
    )
    code, body = pai.json("list")
    assert code == 3
    assert body["code"] == "UnavailableError"


def test_validating_needs_no_backend_and_marks_the_place(pai: Pai, fake: RunningFake) -> None:
    fake.stop()
    code, answer = pai.json("validate", str(EXAMPLES / "scm-jupyter.json"))
    assert code == 0
    assert (answer["valid"], answer["dialect"], answer["name"]) == (True, "scm", "jupyter_16be8b71")
    code, answer = pai.json("validate", "-", stdin='{"jobName": "a",\n "image" "x"}')
    assert code == 2
    assert answer["valid"] is False
    assert answer["errors"][0]["line"] == 2
    code, out, err = pai("validate", "-", stdin='{"jobName": "a",\n "image" "x"}')
    assert (code, out) == (2, "")
    assert "stdin:2:" in err


def test_stopping_is_fine_twice(pai: Pai, fake: RunningFake) -> None:
    fake.add_job("train")
    for _ in range(2):
        code, job = pai.json("stop", "train")
        assert code == 0
        assert job["state"] == "STOPPED"


def kept_roles(uid: str) -> list[dict[str, object]]:
    task = {**task_body(uid, "FAILED", "kept for debugging"), "keptUntil": "2026-11-28T12:00:00Z"}
    return [{"name": "main", "taskStatuses": [task]}]


def test_kept_tasks_are_let_go_by_name_or_all(pai: Pai, fake: RunningFake) -> None:
    for name in ("one", "two"):
        uid = fake.add_job(name)
        fake.advance(uid, "RUNNING", phase="kept for debugging", taskRoles=kept_roles(uid))
    assert pai("release", "one", "main-1")[1] == "job one: nothing to release: no such task is kept\n"
    code, answer = pai.json("release", "two")
    assert code == 0
    assert answer["tasks"] == ["main-0"]
    assert pai("release", "nothing")[0] == 2
    assert [path for method, path, _ in fake.backend.requests if method == "POST" and "release" in path] == [
        "/api/v2/jobs/one/release?task=main-1",
        "/api/v2/jobs/two/release",
        "/api/v2/jobs/nothing/release",
    ]


def test_opening_gives_a_one_time_address(pai: Pai, fake: RunningFake) -> None:
    uid = fake.add_job("train")
    # Nothing proves to be this backend at the own address.
    assert pai("open", "train", "--print")[1] == f"{fake.endpoint.url}/s/{uid}--web/.pai/signin?ticket=t1\n"


def test_ssh_config_is_shown_written_and_removed(pai: Pai, fake: RunningFake, tmp_path: Path) -> None:
    uid = fake.add_job("train")
    fake.advance(uid, "RUNNING")
    fake.add_job("waiting")
    code, out, _ = pai("ssh-config", "--dry-run")
    assert code == 0
    assert f"+Host {uid}--main-0\n" in out
    assert not (tmp_path / "ssh").exists()
    assert fake.backend.keys == []
    code, _, _ = pai("ssh-config")
    config = tmp_path / "ssh" / "pai" / "test-cluster" / "config"
    assert code == 0
    assert config.read_text().startswith(f"Host {uid}--main-0\n    HostName 127.0.0.1\n")
    assert (tmp_path / "ssh" / "config").read_text().splitlines()[1] == f"Include {config}"
    assert fake.backend.keys[0]["publicKey"].startswith("ssh-ed25519 ")
    assert pai("ssh-config")[1] == "Nothing to change.\n"
    assert pai.json("ssh-config", "--remove")[1]["applied"] is True
    assert not config.exists()


def test_jobs_that_others_share_have_names_too(pai: Pai, fake: RunningFake, tmp_path: Path) -> None:
    own, foreign = fake.add_job("own"), fake.add_job("foreign")
    for uid in (own, foreign):
        fake.advance(uid, "RUNNING")
    fake.backend.jobs[foreign]["username"] = "bob"
    fake.backend.shares = [
        {"uid": foreign, "job": "bob~foreign", "alias": foreign, "only": []},
        {"uid": own, "job": "own", "alias": own, "only": []},
        {"uid": "gone", "job": "x", "alias": "gone", "only": ["sftp"]},
    ]
    assert pai("ssh-config")[0] == 0
    text = (tmp_path / "ssh" / "pai" / "test-cluster" / "config").read_text()
    assert [line for line in text.splitlines() if line.startswith("Host ")] == sorted(
        f"Host {uid}--main-0" for uid in (own, foreign)
    )
    known = (tmp_path / "ssh" / "pai" / "test-cluster" / "known_hosts").read_text().splitlines()
    assert known == ["@cert-authority hello,hello--* ssh-ed25519 AAAAhostCA", "pai-test ssh-ed25519 AAAAkey"]


def test_ssh_names_its_command_and_refuses_a_task_that_does_not_run(
    pai: Pai, fake: RunningFake, tmp_path: Path
) -> None:
    uid = fake.add_job("train")
    code, _, err = pai("ssh", "train")
    assert code == 2
    assert "Task main-0 is WAITING" in err
    fake.advance(uid, "RUNNING")
    code, answer = pai.json("ssh", "train")
    config = tmp_path / "ssh" / "pai" / "test-cluster" / "config"
    assert (code, answer) == (0, {"command": ["ssh", "-F", str(config), f"{uid}--main-0"]})
    assert not (tmp_path / "ssh" / "config").exists()
