"""What words for files mean, what of a directory is uploaded, and what is said of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_pai.errors import ClientError
from jupyter_pai.fs.places import Elsewhere, Here, OfBackend, Place, below, place
from jupyter_pai.fs.sources import sources
from jupyter_pai.fs.words import listing, moved_line, size_text


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("pai://alice/code", OfBackend("/alice/code")),
        ("pai://alice/code/", OfBackend("/alice/code", slash=True)),
        ("pai://", OfBackend("/", slash=True)),
        ("PAI://alice", OfBackend("/alice")),
        ("$PAI_DEFAULT_FS_URI/alice/x", OfBackend("/alice/x")),
        ("${PAI_DEFAULT_FS_URI}/alice", OfBackend("/alice")),
        ("$PAI_DEFAULT_FS_URI", OfBackend("/")),
        ("hdfs://nn:8020/x", Elsewhere("hdfs://nn:8020/x")),
        ("s3://bucket/x/", Elsewhere("s3://bucket/x/", slash=True)),
        ("file:///tmp/x", Here(Path("/tmp/x"))),
        ("file://localhost/tmp/x", Here(Path("/tmp/x"))),
        ("code", Here(Path("code"))),
        ("./code/", Here(Path("code"), slash=True)),
        ("$PAI_DEFAULT_FS_URIS/x", Here(Path("$PAI_DEFAULT_FS_URIS/x"))),
    ],
)
def test_a_word_is_a_path_of_the_backend_a_storage_or_a_path_here(word: str, meaning: Place) -> None:
    assert place(word) == meaning


@pytest.mark.parametrize("word", ["", "file://elsewhere/x"])
def test_a_word_that_means_nothing_is_refused_with_a_remedy(word: str) -> None:
    with pytest.raises(ClientError) as caught:
        place(word)
    assert (caught.value.exit_code, bool(caught.value.hint)) == (2, True)


def test_a_path_below_another() -> None:
    assert below("/alice/", "a/b") == "/alice/a/b"
    assert below("s3://b/x", "a") == "s3://b/x/a"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.py", "b.pyc", "sub/c.py", "sub/raw/d.bin", ".git/config", "sub/.git/x"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "tree" / "void").mkdir()
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("exclude", "kept", "empty"),
    [
        ((), ["a.py", "b.pyc", "sub/c.py", "sub/raw/d.bin"], ["void"]),
        (("*.pyc",), ["a.py", "sub/c.py", "sub/raw/d.bin"], ["void"]),
        (("sub/raw",), ["a.py", "b.pyc", "sub/c.py"], ["void"]),
        (("raw", "void"), ["a.py", "b.pyc", "sub/c.py"], []),
        (("sub/*",), ["a.py", "b.pyc"], ["sub", "void"]),
    ],
)
def test_a_pattern_is_compared_with_names_and_with_paths(
    tree: Path, exclude: tuple[str, ...], kept: list[str], empty: list[str]
) -> None:
    found = sources(tree, exclude, lambda text: None)
    assert ([file.relative for file in found.files], list(found.empty)) == (kept, empty)


def test_what_cannot_be_uploaded_is_told(tree: Path) -> None:
    (tree / "up").symlink_to("..")
    (tree / "file").symlink_to("a.py")
    (tree / "nowhere").symlink_to("gone")
    os.mkfifo(tree / "pipe")
    said: list[str] = []
    found = sources(tree, (), said.append)
    assert "file" in [file.relative for file in found.files]
    assert sorted(said) == [
        "left out: nowhere is not a file, but a link",
        "left out: pipe is not a file",
        "left out: up is not a file, but a link",
    ]


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="gone cannot be read: No such file"):
        sources(tmp_path / "gone", (), lambda text: None)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (99_949, "99.9 kB"), (123_456, "123 kB"), (999_600, "1.0 MB"),
     (50_000_000, "50.0 MB"), (5 * 10**18, "5000 PB")],
)  # fmt: skip
def test_sizes_are_short(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_name_cannot_repaint_the_terminal() -> None:
    text = listing([{"name": "\x1b[31mred\n", "kind": "file", "size": 1, "modified": None}])
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2


def test_what_an_upload_did_is_one_line() -> None:
    from jupyter_pai.fs.moving import Transfer

    assert moved_line(Transfer("pai://a", 1, 0, 1500)) == "pai://a: 1 file, 1.5 kB"
    assert moved_line(Transfer("pai://a", 0, 3, 10)) == "pai://a: 0 files, 10 B, 3 there already"
    assert moved_line(Transfer("pai://a", None, 0, None)) == "copied to pai://a"
