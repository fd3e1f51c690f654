"""hdfs:// and webhdfs:// against a real NameNode and DataNode: staging, reading as a user, the default file system."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pai_backend.storage.faults import Away, StorageFault
from pai_backend.storage.fetch import fetch
from pai_backend.storage.files import Files, Parts
from pai_backend.storage.remote_files import RemoteFiles
from pai_backend.storage.uris import parse
from tests.support.files_contract import FilesContract, write
from tests.support.hdfs import Hdfs
from tests.support.warm_start import run_pai

pytestmark = [pytest.mark.xdist_group("hdfs"), pytest.mark.timeout(180)]
SCHEMES = ("hdfs", "webhdfs")
LIMIT = 200_000_000
OLD = 1_000_000_000  # 2001: long before any upload


@pytest.fixture(params=SCHEMES)
def base(request: pytest.FixtureRequest, hdfs: Hdfs) -> str:
    """The file system by each of its two protocols."""
    return hdfs.uri if request.param == "hdfs" else hdfs.web_uri


@pytest.fixture
def home(hdfs: Hdfs) -> str:
    """A directory of alice's, for this test alone; bob may not look into it."""
    path = f"/user/{os.urandom(6).hex()}"
    hdfs.give(path, "alice", "700")
    return path


def put(hdfs: Hdfs, path: str, data: bytes, user: str = "alice") -> None:
    answer = hdfs.web("PUT", path, user, "CREATE", noredirect="true")
    assert answer.status_code == 200, answer.text
    import httpx

    done = httpx.put(answer.json()["Location"], content=data, timeout=60)
    assert done.status_code == 201, done.text


def stage(
    tmp_path: Path, user: str, inputs: list[str], outputs: list[str], max_bytes: int = LIMIT
) -> tuple[int, str, Path]:
    """Run the staging program as a task of that user would; its exit status, last line and working directory."""
    work, file = tmp_path / "work", tmp_path / "stage.json"
    work.mkdir(exist_ok=True)
    entries = [{"uri": uri, "name": uri.rpartition("/")[2], "max_bytes": max_bytes} for uri in inputs]
    file.write_text(json.dumps({"inputs": entries, "outputs": outputs, "work_dir": str(work), "user": user}))
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pai_backend.storage.stage", str(file)],
        env={**environment, "HADOOP_USER_NAME": user},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr.splitlines()[-1], work


def test_code_is_staged_and_the_output_directory_made_as_the_jobs_user(
    hdfs: Hdfs, base: str, home: str, tmp_path: Path
) -> None:
    put(hdfs, f"{home}/code/train.py", b"print('hello')")
    put(hdfs, f"{home}/code/pkg/data.bin", b"x" * 1_500_000)
    status, last, work = stage(tmp_path, "alice", [f"{base}{home}/code"], [f"{base}{home}/out/run 1"])
    assert status == 0, last
    assert (work / "code" / "train.py").read_bytes() == b"print('hello')"
    assert (work / "code" / "pkg" / "data.bin").stat().st_size == 1_500_000
    assert stat.S_IMODE((work / "code" / "train.py").stat().st_mode) == 0o444
    made = hdfs.status(f"{home}/out/run 1")
    assert made is not None
    assert (made["type"], made["owner"]) == ("DIRECTORY", "alice")


def test_another_users_code_is_not_staged_and_the_reason_names_user_right_and_place(
    hdfs: Hdfs, base: str, home: str, tmp_path: Path
) -> None:
    put(hdfs, f"{home}/code/train.py", b"secret")
    status, last, work = stage(tmp_path, "bob", [f"{base}{home}/code"], [])
    assert (status, os.listdir(work)) == (1, [])
    assert f"no permission for {base}{home}/code" in last
    assert "user=bob" in last
    assert f'inode="{home}"' in last


def test_another_users_directory_is_no_place_for_output(hdfs: Hdfs, base: str, home: str, tmp_path: Path) -> None:
    status, last, _ = stage(tmp_path, "bob", [], [f"{base}{home}/out"])
    assert status == 1
    assert "no permission" in last
    assert hdfs.status(f"{home}/out") is None


def test_an_output_directory_that_is_a_file_is_refused(hdfs: Hdfs, base: str, home: str, tmp_path: Path) -> None:
    put(hdfs, f"{home}/out", b"")
    status, last, _ = stage(tmp_path, "alice", [], [f"{base}{home}/out"])
    assert (status, f"{base}{home}/out is a file" in last) == (1, True)


def test_too_much_code_is_refused_before_it_is_copied(hdfs: Hdfs, base: str, home: str, tmp_path: Path) -> None:
    put(hdfs, f"{home}/code/a", b"x" * 600)
    put(hdfs, f"{home}/code/b", b"x" * 500)
    status, last, work = stage(tmp_path, "alice", [f"{base}{home}/code"], [], max_bytes=1000)
    assert (status, os.listdir(work)) == (1, [])
    assert "larger than the 1,000 bytes" in last


def test_code_that_is_not_there_is_named(base: str, home: str, tmp_path: Path) -> None:
    status, last, _ = stage(tmp_path, "alice", [f"{base}{home}/gone"], [])
    assert status == 1
    assert f"{base}{home}/gone does not exist" in last


def test_a_lost_datanode_is_a_reason_and_its_return_a_remedy(hdfs: Hdfs, home: str, tmp_path: Path) -> None:
    put(hdfs, f"{home}/code/train.py", b"print('hello')")
    codes = [f"{base}{home}/code" for base in (hdfs.uri, hdfs.web_uri)]
    hdfs.kill_data_node()
    try:
        for code in codes:
            status, last, work = stage(tmp_path, "alice", [code], [])
            assert (status, os.listdir(work)) == (1, [])
            assert f"{code} does not answer" in last
    finally:
        hdfs.start_data_node()
    for code in codes:
        status, last, work = stage(tmp_path, "alice", [code], [])
        assert status == 0, last
        assert (work / "code" / "train.py").read_bytes() == b"print('hello')"
        (work / "code").rename(work / code.partition(":")[0])


@pytest.mark.asyncio
async def test_the_backend_reads_a_users_file_as_that_user(hdfs: Hdfs, base: str, home: str) -> None:
    put(hdfs, f"{home}/auth", b"registry\nalice\nhunter22\n")
    place = parse(f"{base}{home}/auth")
    assert await fetch(place, "alice", 4096, {}, 60) == b"registry\nalice\nhunter22\n"
    with pytest.raises(StorageFault, match="no permission") as caught:
        await fetch(place, "bob", 4096, {}, 60)
    assert "hunter22" not in caught.value.line()
    assert not isinstance(caught.value, Away)


class Cluster:
    """The root as the NameNode has it."""

    def __init__(self, hdfs: Hdfs, root: str) -> None:
        self.hdfs, self.root = hdfs, root

    def put(self, path: Parts, data: bytes) -> None:
        put(self.hdfs, "/".join((self.root, *path)), data, self.hdfs.superuser)

    def get(self, path: Parts) -> bytes | None:
        place = "/".join((self.root, *path))
        return self.hdfs.read(place) if self.hdfs.status(place) else None


@pytest.fixture(scope="module")
def root() -> str:
    return f"/pai-{os.urandom(4).hex()}"


@pytest.fixture
def behind(hdfs: Hdfs, root: str) -> Cluster:
    return Cluster(hdfs, root)


@pytest.fixture
def files(base: str, root: str, tmp_path: Path) -> Files:
    return RemoteFiles(parse(f"{base}{root}"), {}, tmp_path / "spool")


class TestTheDefaultFileSystem(FilesContract):
    """On HDFS, by both protocols."""

    @pytest.mark.parametrize("base", ["webhdfs"], indirect=True)  # hdfs:// tries for 15 s before it gives up
    def test_an_upload_waits_for_a_datanode_and_is_not_lost(
        self, hdfs: Hdfs, files: Files, behind: Cluster, top: Parts
    ) -> None:
        behind.put((*top, "f"), b"old")
        hdfs.kill_data_node()
        try:
            with pytest.raises(StorageFault):
                write(files, (*top, "f"), b"new")
            assert files.kept((*top, "f")) == 3
            with pytest.raises(Away):
                files.read((*top, "f")).read(10)
        finally:
            hdfs.start_data_node()
        write(files, (*top, "f"), b"", offset=3)
        assert behind.get((*top, "f")) == b"new"
        assert [info.name for info in files.listing(top, "", 10)] == ["f"]


def pai(user: str, work: Path, *words: str) -> tuple[int, str, str]:
    """Run ``pai`` as that user of HDFS. No backend is near: these places are reached without one."""
    base = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    env = {**base, "HADOOP_USER_NAME": user, "PAI_URL": "http://127.0.0.1:1", "PAI_TOKEN": "none"}
    done = run_pai(*words, cwd=work, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text("g")
    (folder / "train.py").write_text("print('hello')")
    os.utime(folder / "train.py", (OLD, OLD))
    return folder


def test_the_command_line_reaches_hdfs_without_a_backend(hdfs: Hdfs, base: str, home: str, code: Path) -> None:
    uri = f"{base}{home}/code"
    assert pai("alice", code.parent, "upload", "code", uri) == (0, f"{uri}: 1 file, 14 B\n", "")
    made = hdfs.status(f"{home}/code/train.py")
    assert made is not None
    assert made["owner"] == "alice"
    assert hdfs.status(f"{home}/code/.git") is None
    again = pai("alice", code.parent, "upload", "code", uri)
    assert again == (0, f"{uri}: 0 files, 14 B, 1 there already\n", "")
    listed = json.loads(pai("alice", code.parent, "fs", "ls", uri, "--json")[1])
    assert [(entry["name"], entry["size"]) for entry in listed] == [("train.py", 14)]
    assert pai("alice", code.parent, "fs", "rm", "-r", uri)[0] == 0
    assert hdfs.status(f"{home}/code") is None


@pytest.mark.parametrize("base", ["hdfs"], indirect=True)
def test_files_of_hdfs_are_copied_and_printed_for_those_who_may(
    hdfs: Hdfs, base: str, home: str, tmp_path: Path
) -> None:
    put(hdfs, f"{home}/code/train.py", b"print('hello')")
    uri = f"{base}{home}"
    assert pai("alice", tmp_path, "fs", "cat", f"{uri}/code/train.py") == (0, "print('hello')", "")
    assert pai("alice", tmp_path, "fs", "cp", f"{uri}/code", f"{uri}/copy")[0] == 0
    assert hdfs.read(f"{home}/copy/train.py") == b"print('hello')"
    assert pai("alice", tmp_path, "fs", "cp", f"{uri}/copy", "back")[0] == 0
    assert (tmp_path / "back" / "train.py").read_text() == "print('hello')"
    for words in (("fs", "ls", uri), ("upload", "back", f"{uri}/bobs")):
        code, _, said = pai("bob", tmp_path, *words)
        assert (code, "no permission" in said.lower()) == (2, True)
    assert hdfs.status(f"{home}/bobs") is None
