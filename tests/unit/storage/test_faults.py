"""Errors of the libraries in the words of a user: place, reason, remedy, and no secret."""

from __future__ import annotations

import errno
import sys

import pytest
from fsspec.registry import _registry

from pai_backend.storage.faults import Absent, Away, NoRoom, NotAllowed, StorageFault, explained, masked
from pai_backend.storage.filesystems import filesystem, secret_texts
from pai_backend.storage.uris import parse

PLACE = parse("webhdfs://bob:hunter22@nn:9870/a")
DENIED = 'org.apache.hadoop.security.AccessControlException: Permission denied: user=bob, access=READ, inode="/a":root'


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "x", "/a"), Absent, "does not exist"),
        (RuntimeError("java.io.FileNotFoundException: File does not exist: /a"), Absent, "does not exist"),
        (PermissionError(errno.EACCES, "x"), NotAllowed, "no permission"),
        (OSError(DENIED), NotAllowed, 'user=bob, access=READ, inode="/a"'),
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), Away, "does not answer: connection refused"),
        (OSError("Failed to find datanode, suggest to check cluster health."), Away, "no DataNode takes the data"),
        (OSError(errno.ENOSPC, "x"), NoRoom, "no room"),
        (ImportError("no module"), StorageFault, "not installed"),
        (RuntimeError("strange\nsecond line"), StorageFault, "strange"),
        (RuntimeError(), StorageFault, "RuntimeError"),
    ],
)
def test_an_error_names_place_reason_and_remedy_in_one_line(
    error: Exception, kind: type[StorageFault], words: str
) -> None:
    fault = explained(error, PLACE)
    assert type(fault) is kind
    assert words in fault.line()
    assert "webhdfs://bob:******@nn:9870/a" in fault.reason
    assert fault.remedy
    assert "\n" not in fault.line()


def test_what_a_library_quotes_of_a_secret_is_masked() -> None:
    fault = explained(ValueError("bad key s3cr3t-key at http://bob:hunter22@nn"), PLACE, ["s3cr3t", "s3cr3t-key"])
    assert "s3cr3t" not in fault.line()
    assert "hunter22" not in fault.line()
    assert "-key" not in fault.line()


def test_every_text_in_options_counts_as_a_secret() -> None:
    texts = secret_texts({"key": "aaaa", "client_kwargs": {"list": ["bbbb", {"deep": "cccc"}]}, "anon": False})
    assert sorted(texts) == ["aaaa", "bbbb", "cccc"]
    assert masked("aaaa bbbb", texts) == "****** ******"


@pytest.mark.parametrize(
    ("uri", "extra"),
    [("hdfs://nn/a", "hdfs-native"), ("s3://b/a", "fsspec[s3]"), ("nonsense://b/a", "file, hdfs, webhdfs")],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    uri: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for scheme in ("hdfs", "s3"):  # fsspec remembers what it has imported once
        monkeypatch.delitem(_registry, scheme, raising=False)
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    monkeypatch.setitem(sys.modules, "hdfs_native.fsspec", None)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(StorageFault) as caught:
        filesystem(parse(uri))
    assert extra in caught.value.line()
