"""What of a git repository is sent along with a job."""

from __future__ import annotations

import subprocess
from pathlib import Path

from jupyter_pai.fs import code
from tests.support.lacking import needs


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, timeout=60)


def test_git_leaves_out_what_it_ignores_and_paiignore_what_it_tracks(tmp_path: Path) -> None:
    needs("git")
    root = tmp_path
    for name in ("train.py", "data/big.bin", "notes.txt", "out/log"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    git(root, "init", "--quiet")
    (root / ".gitignore").write_text("out/\n")
    (root / "inner").mkdir()
    git(root / "inner", "init", "--quiet")
    (root / "inner" / "a.py").touch()
    git(root, "add", "notes.txt", "data", "train.py")
    (root / "train.py").unlink()
    (root / ".paiignore").write_text("data\n")
    assert code.leaves(root) == [".gitignore", ".paiignore", "inner/a.py", "notes.txt"]
    assert code.leaves(root / "out") == ["log"], "a directory that git ignores as a whole is meant all the same"
