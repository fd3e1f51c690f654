"""What of a directory is sent along with a job, and under which digests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from jupyter_pai.errors import ClientError
from jupyter_pai.fs import code
from pai_backend.model import code_tree


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "my project"
    for name in ("train.py", "data/big.bin", "notes.txt", "out/log"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def packed(root: Path, made: Path, **extra: bytes) -> code.Packed:
    made.mkdir(exist_ok=True)
    return code.pack(root, extra, made)


def test_paiignore_leaves_out_what_a_gitignore_would(root: Path) -> None:
    (root / ".paiignore").write_text("data/\n*.txt\n!notes.txt\n/out\n")
    (root / ".git").mkdir()
    (root / ".git" / "config").touch()
    (root / ".git").rename(root / "elsewhere")  # without a repository
    assert code.leaves(root) == [".paiignore", "elsewhere/config", "notes.txt", "train.py"]


def test_the_same_files_are_the_same_tree_and_are_read_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in root.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    monkeypatch.setattr(code, "SETTLED_S", -60)  # a time of change cannot be set
    first = packed(root, tmp_path / "1")
    assert first.name == "my-project"
    assert first.blobs[hashlib.sha256(b"train.py").hexdigest()].path == root / "train.py"
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert packed(root, tmp_path / "2").digest == first.digest
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (root / "train.py").write_text("TRAIN.PY")
    changed = packed(root, tmp_path / "3")
    assert changed.digest != first.digest
    assert len(changed.blobs.keys() - first.blobs.keys()) == 1
    assert packed(root, tmp_path / "4", **{"train.py": b"train.py"}).digest == first.digest


def test_links_stay_links_and_lead_nowhere_else(root: Path, tmp_path: Path) -> None:
    (root / "out" / "link").symlink_to(root / "data")
    tree = packed(root, tmp_path / "1")
    listed = code_tree.read(tree.list.path.read_bytes(), tree.digest)
    assert [entry.target for entry in listed if entry.path == "out/link"] == ["../data"]
    (root / "away").symlink_to("/etc")
    with pytest.raises(ClientError, match="leads outside"):
        packed(root, tmp_path / "2")


def test_too_much_is_refused_before_anything_is_sent(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_tree, "MOST_ENTRIES", 3)
    with pytest.raises(ClientError, match="are sent at most") as refused:
        packed(root, tmp_path / "1")
    assert ".paiignore" in refused.value.hint


@pytest.mark.parametrize(
    ("name", "called"), [("mnt", "code"), ("...", "code"), (".hidden", "hidden"), ("代码", "code")]
)
def test_a_tree_has_a_name_that_a_task_can_have(tmp_path: Path, name: str, called: str) -> None:
    (tmp_path / name).mkdir()
    assert code.task_name(tmp_path / name) == called
