"""How places are written, read and shown."""

from __future__ import annotations

import pytest

from pai_backend.storage.faults import StorageFault
from pai_backend.storage.uris import parse


@pytest.mark.parametrize(
    ("text", "uri", "name"),
    [
        ("/data/code", "/data/code", "code"),
        ("/data/code/", "/data/code", "code"),
        ("//data//code/../x", "/data/x", "x"),
        ("file:///data/code", "/data/code", "code"),
        ("file:////data", "/data", "data"),
        ("file://localhost/data", "/data", "data"),
        ("hdfs://nn:8020/user/a b", "hdfs://nn:8020/user/a b", "a b"),
        ("HDFS://nn/x/", "hdfs://nn/x/", "x"),
        ("hdfs://nn", "hdfs://nn/", ""),
        ("memory://a/b", "memory://a/b", "b"),
    ],
)
def test_a_place_is_an_absolute_path_or_a_uri(text: str, uri: str, name: str) -> None:
    place = parse(text)
    assert (place.uri, place.name) == (uri, name)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("code", "neither an absolute path nor a URI"),
        ("./code", "neither an absolute path nor a URI"),
        ("$PAI_DEFAULT_FS_URI/code", "neither an absolute path nor a URI"),
        ("zip::file:///x.zip", "neither an absolute path nor a URI"),
        ("file://other/data", "another machine"),
        ("hdfs://nn/a\nb", "control character"),
        ("/a\0b", "control character"),
    ],
)
def test_what_names_no_place_is_refused_with_a_remedy(text: str, reason: str) -> None:
    with pytest.raises(StorageFault, match=reason) as caught:
        parse(text)
    assert caught.value.remedy


@pytest.mark.parametrize("text", ["webhdfs://bob:hunter22@nn:9870/a", "s3://k:hunter22@b/a?sig=hunter22"])
def test_a_password_is_given_to_the_library_and_shown_to_nobody(text: str) -> None:
    place = parse(text)
    assert "hunter22" in place.uri
    assert "hunter22" not in place.shown + repr(place)
    assert "******" in place.shown


def test_a_malformed_uri_with_a_password_is_not_quoted() -> None:
    with pytest.raises(StorageFault) as caught:
        parse("bob:hunter22@nn/a")
    assert "hunter22" not in caught.value.line()


@pytest.mark.parametrize(
    ("base", "relative", "uri"),
    [
        ("/", "a/b", "/a/b"),
        ("/data", "", "/data"),
        ("hdfs://nn/", "a", "hdfs://nn/a"),
        ("hdfs://nn/root/", "a/b", "hdfs://nn/root/a/b"),
        ("memory://m", "a", "memory://m/a"),
    ],
)
def test_a_place_below_another(base: str, relative: str, uri: str) -> None:
    assert parse(base).below(relative).uri == uri
