"""Runtime files, kept ports, rotated logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pai_backend.platform.listening import bind, bind_kept, keep_port, kept_port
from pai_backend.platform.runtime_files import read_json, runtime_file, write_json
from pai_backend.testing.free_ports import free_port


def test_a_runtime_file_is_for_its_owner_and_gone_after_the_block(tmp_path: Path) -> None:
    path = tmp_path / "runtime" / "api.json"
    with runtime_file(path, {"pid": os.getpid()}):
        assert path.stat().st_mode & 0o777 == 0o600
        assert read_json(path) == {"pid": os.getpid()}
        assert [entry.name for entry in path.parent.iterdir()] == ["api.json"]
    assert not path.exists()


def test_a_runtime_file_that_another_process_has_replaced_stays(tmp_path: Path) -> None:
    path = tmp_path / "api.json"
    with runtime_file(path, {"pid": os.getpid()}):
        write_json(path, {"pid": 1})
    assert read_json(path) == {"pid": 1}


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_broken_runtime_file_says_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "api.json"
    path.write_text(text)
    assert read_json(path) is None


def test_a_chosen_port_is_kept_and_another_taken_only_when_it_is_in_use(tmp_path: Path) -> None:
    kept = tmp_path / "api.port"
    first = bind_kept("127.0.0.1", 0, kept)
    port = first.getsockname()[1]
    assert kept_port(kept) == port
    second = bind_kept("127.0.0.1", 0, kept)
    assert second.getsockname()[1] != port
    first.close()
    second.close()
    keep_port(kept, port := free_port())
    third = bind_kept("127.0.0.1", 0, kept)
    assert third.getsockname()[1] == port
    third.close()


def test_a_configured_port_in_use_is_an_error(tmp_path: Path) -> None:
    with bind("127.0.0.1", 0) as taken, pytest.raises(OSError, match="in use"):
        bind_kept("127.0.0.1", taken.getsockname()[1], tmp_path / "api.port")


def test_a_log_is_rotated_with_last_words_of_the_interpreter_in_it(tmp_path: Path) -> None:
    path = tmp_path / "log" / "core.log"
    code = f"""
import logging, os, pathlib
from pai_backend.platform import logs
path = pathlib.Path({str(path)!r})
logs.redirect(path)
logs.configure("info", path, 65536)
for number in range(6000):
    logging.getLogger("x" + str(number // 500)).info("line %06d %s", number, "." * 50)
os.write(2, b"last words")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    names = sorted(entry.name for entry in path.parent.iterdir())
    assert names == ["core.log", "core.log.1", "core.log.2", "core.log.3"]
    assert all(entry.stat().st_size <= 65536 + 200 for entry in path.parent.iterdir())
    assert path.read_text().endswith("last words")
    assert "line 005999" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_runtime_files_are_json_in_one_line(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": 1})
    text = (tmp_path / "x.json").read_text()
    assert json.loads(text) == {"a": 1}
    assert text.count("\n") == 1
