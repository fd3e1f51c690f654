"""Lists of code trees: the same bytes for the same files, and nothing that leads out of the directory."""

from __future__ import annotations

import hashlib
import json

import pytest

from pai_backend.model import code_tree
from pai_backend.model.code_tree import CodeEntry

DIGEST = hashlib.sha256(b"x").hexdigest()


def entry(path: str, **more: object) -> dict[str, object]:
    return {"path": path, "size": 1, "sha256": DIGEST, "executable": False, **more}


def test_a_list_is_read_as_it_was_written_and_does_not_depend_on_the_order() -> None:
    entries = (
        CodeEntry("a/run.sh", 1, DIGEST, executable=True),
        CodeEntry("a/up", target="../b"),
        CodeEntry("b", 1, DIGEST),
    )
    data, digest = code_tree.written(entries)
    assert code_tree.read(data, digest) == entries
    assert code_tree.written(reversed(entries)) == (data, digest)
    assert code_tree.split_name(f"my.code.{digest}.tree") == ("my.code", digest)
    assert code_tree.split_name("code.tree") is None


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([entry("../x")], "not a path"),
        ([entry("/etc/x")], "not a path"),
        ([entry("a//b")], "not a path"),
        ([entry("a\0b")], "not a path"),
        ([entry("")], "not a path"),
        ([entry("a"), entry("a")], "twice"),
        ([entry("a"), entry("a/b")], "has a file in it"),
        ([{"path": "a", "link": "b"}, entry("b"), entry("a/c")], "has a file in it"),
        ([{"path": "a", "link": "../x"}], "leads out"),
        ([{"path": "d/a", "link": "../../x"}], "leads out"),
        ([{"path": "a", "link": "/etc"}], "leads out"),
        ([{"path": "d/a", "link": "b/../../.."}], "leads out"),
        ([entry("a", sha256="../../etc/passwd")], "not a list"),
        ([entry("a", size=-1)], "not a list"),
        ([entry("a", size=True)], "not a list"),
        (["a"], "not a list"),
        ({"a": 1}, "not a list"),
        ([entry(f"{number}") for number in range(code_tree.MOST_ENTRIES + 1)], "more than"),
    ],
)
def test_a_list_that_leads_out_or_is_damaged_is_refused(rows: object, reason: str) -> None:
    data = json.dumps({"entries": rows}).encode()
    with pytest.raises(ValueError, match=reason):
        code_tree.read(data, hashlib.sha256(data).hexdigest())


def test_a_list_is_only_what_its_name_says() -> None:
    data, digest = code_tree.written([CodeEntry("a", 1, DIGEST)])
    with pytest.raises(ValueError, match="not what its name says"):
        code_tree.read(data + b" ", digest)
