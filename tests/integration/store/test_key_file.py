"""The key file: one for all who start at once, whole or not there, for its owner only."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pai_backend.store.cipher import Cipher
from pai_backend.store.keyring import KeyFile, SecretKeyError

MAKE = """
import sys
from pathlib import Path
from pai_backend.store.keyring import KeyFile
sys.stdout.write("ready\\n"); sys.stdout.flush()
sys.stdin.readline()
for name in sys.argv[1:]:
    sys.stdout.write(KeyFile(Path(name)).make()[0] + "\\n"); sys.stdout.flush()
"""


def makers(count: int, *paths: Path) -> list[subprocess.Popen[str]]:
    """Processes that make key files once they are told to."""
    command = [sys.executable, "-c", MAKE, *map(str, paths)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    return started


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_processes_that_start_at_once_get_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secret.key"
    started = makers(6, path)
    for process in started:
        begin(process)
    told = {process.communicate(timeout=60)[0] for process in started}

    assert told == {KeyFile(path).read()[0] + "\n"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["secret.key"]


def test_a_kill_at_any_instant_leaves_a_whole_key_or_none(tmp_path: Path) -> None:
    for attempt in range(8):
        paths = [tmp_path / f"{attempt}-{number}" for number in range(3000)]
        (process,) = makers(1, *paths)
        begin(process)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * attempt)  # when it is killed is what differs, nothing is waited for
        os.kill(process.pid, signal.SIGKILL)
        with process:
            # Not communicate(): it does not see what the line above has read ahead.
            told = process.stdout.read().splitlines()

        made = [path for path in paths if path.exists()]
        assert len(told) <= len(made) <= len(told) + 2
        for path in made:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert Cipher(KeyFile(path).read())
            assert KeyFile(path).make() == KeyFile(path).read()


def test_a_new_key_comes_first_and_the_others_stay(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "secret.key")
    (first,) = file.make()
    with file.alone():
        second = file.add()

    assert second[1:] == (first,)
    assert file.read() == second
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def test_only_one_rotates_at_a_time(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "secret.key")
    with file.alone(), pytest.raises(SecretKeyError, match="another process"), KeyFile(file.path).alone():
        raise AssertionError("two at once")
    with file.alone():
        pass


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = KeyFile(tmp_path / "secret.key")
    (key,) = file.make()
    file.path.chmod(0o644)

    assert file.read() == (key,)

    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert str(file.path) in caplog.text
    assert key not in caplog.text


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "holds no key"), (b"# only words\n\n", "holds no key"), (b"\xff\xfe", "not a Fernet key")],
)
def test_a_file_without_keys_names_itself_and_the_remedy(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(content)
    path.chmod(0o600)

    with pytest.raises(SecretKeyError, match=reason) as refusal:
        _load(path)

    assert str(path) in str(refusal.value)
    assert "restore it" in str(refusal.value)
    assert path.read_bytes() == content


def _load(path: Path) -> None:
    import asyncio

    from pai_backend.store.keyring import KeyRing

    asyncio.run(KeyRing(KeyFile(path)).load(frozenset()))


def test_a_directory_in_the_files_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(SecretKeyError, match="directory"):
        KeyFile(tmp_path).read()
