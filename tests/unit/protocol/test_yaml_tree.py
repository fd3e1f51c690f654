"""YAML with places: scalars of YAML 1.2, the tree of a text, aliases and merges; with and without libyaml."""

from __future__ import annotations

import pytest

from pai_backend.protocol import yaml_tree
from pai_backend.protocol.document import Stream, locate_yaml
from pai_backend.protocol.tree import Node
from pai_backend.protocol.yaml_scalars import spelling


@pytest.fixture(params=["libyaml", "pure"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything here holds for both parsers."""
    monkeypatch.setattr(
        yaml_tree, "parser", {"libyaml": yaml_tree._libyaml, "pure": yaml_tree._pure_python}[request.param]
    )
    return str(request.param)


def read(text: str) -> Stream:
    found = locate_yaml(text)
    assert found.flaws == []
    assert found.root is not None
    return found


def plain(text: str) -> object:
    root = read(text).root
    assert root is not None
    return root.plain()


def flaws(text: str) -> list[tuple[str, tuple[int, int]]]:
    found = locate_yaml(text)
    return [(flaw.message, found.positions.line_column(flaw.at)) for flaw in found.flaws]


# Source: YAML 1.2, section 10.3.2.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("NULL", None),
        ("nUll", "nUll"),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("on", "on"),
        ("n", "n"),
        ("0", 0),
        ("-12", -12),
        ("+12", 12),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0o8", "0o8"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("1e3", 1000),
        ("-1.5E-1", -0.15),
        ("8192.0", 8192),
        ("1e", "1e"),
        (".", "."),
        ("2001-12-14", "2001-12-14"),
        ("9007199254740993", 9007199254740993),
        ("9223372036854775807", 9223372036854775807),
        ("=", "="),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 12", 12),
        ("!!bool true", True),
        ("!!null ''", None),
        ("|\n  12\n", "12\n"),
        (">-\n  a\n  b\n", "a b"),
        ("a\n b", "a b"),
        ('"\\u00e9\\t\\x41"', "é\tA"),
        ("中文 # comment", "中文"),
        ("a#b", "a#b"),
    ],
)
def test_scalars(text: str, value: object) -> None:
    assert plain(f"- {text}") == [value]


def test_a_one_line_scalar_does_not_become_another_kind() -> None:
    assert type(plain("[true, 1]")[0]) is bool  # type: ignore[index]
    assert type(plain("[1, true]")[0]) is int  # type: ignore[index]


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan", "1e999", "9" * 5000, "0x" + "f" * 200])
def test_numbers_that_nothing_could_keep_are_refused(text: str) -> None:
    ((_, place),) = flaws(f"a: {text}")
    assert place == (1, 4)


def test_keys_and_values_have_their_places() -> None:
    text = "\ufeff# first\nkey: 'value'\r\n列表:\r  - &x {a: b}\n  - *x\nquoted key  : |\n  text\n"
    found = read(text)
    assert found.root is not None
    members = found.root.value
    assert isinstance(members, dict)
    at = found.positions.line_column
    assert {key: (at(node.key_at), at(node.at)) for key, node in members.items()} == {
        "key": ((2, 1), (2, 6)),
        "列表": ((3, 1), (4, 3)),
        "quoted key": ((6, 1), (6, 15)),
    }
    items = members["列表"].value
    assert isinstance(items, list)
    assert [at(item.at) for item in items] == [(4, 5), (4, 5)]


def test_keys_are_texts_whatever_they_look_like() -> None:
    assert plain("{1: a, true: b, ~: c, on: d, 'e': f, ? g : h}") == {
        "1": "a",
        "true": "b",
        "~": "c",
        "on": "d",
        "e": "f",
        "g": "h",
    }


def test_aliases_and_merges() -> None:
    text = """\
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
one: {<<: *base, b: 0}
two: {<<: [*more, *base], d: *base}
three: {"<<": text}
&key k: 1
*key : 2
"""
    text = text.replace("&key k: 1\n*key : 2\n", "list: [&key k]\n*key : 2\n")
    assert plain(text) == {
        "base": {"a": 1, "b": 2},
        "more": {"b": 3, "c": 4},
        "one": {"b": 0, "a": 1},
        "two": {"d": {"a": 1, "b": 2}, "b": 3, "c": 4, "a": 1},
        "three": {"<<": "text"},
        "list": ["k"],
        "k": 2,
    }


def test_an_anchor_may_be_given_again() -> None:
    assert plain("[&a 1, *a, &a 2, *a]") == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("a: 1\nb: 2\na: 3\n", "this key is already given at line 1, column 1", (3, 1)),
        ("{a: 1, 'a': 2}", "this key is already given at line 1, column 2", (1, 8)),
        ("&a [*a]", "an alias inside of what it stands for", (1, 5)),
        ("a: *b", "an alias without an anchor before it", (1, 4)),
        ("[&a [x], {*a : y}]", "a key that is not text", (1, 11)),
        ("{<<: [1]}", "this cannot be merged", (1, 6)),
        ("? {a: b}\n: c", "a key that is a list or an object", (1, 3)),
        ("a: !x b", "a tag that is not one of YAML's own", (1, 4)),
        ("!x a: b", "a tag that is not one of YAML's own", (1, 1)),
        ("a: !x [b]", "a tag that is not one of YAML's own", (1, 4)),
        ("a: !<tag:x.org,2000:y> b", "a tag that is not one of YAML's own", (1, 4)),
        ("a: !!set {b}", "a tag that is not one of YAML's own", (1, 4)),
        ("a: !!int x", "the value is not what its tag says", (1, 4)),
        ("a: !!bool 1", "the value is not what its tag says", (1, 4)),
        ('"a\\0": b', "the text contains the character \\u0000", (1, 1)),
        ('a: "\\0"', "the text contains the character \\u0000", (1, 4)),
        ("a: \x85\x1b", "the character U+001B, which YAML does not allow", (1, 5)),
        ("{a: 1} b", "the document goes on after its end", (1, 8)),
        ("a: 1\n...\nb: 1\n---\nc: 1\n", "none of the 3 documents is a job", (1, 1)),
    ],
)
def test_what_is_refused(text: str, message: str, place: tuple[int, int]) -> None:
    assert flaws(text) == [(message, place)]


def test_several_flaws_of_values_are_all_listed() -> None:
    assert [place for _, place in flaws("a: .nan\nb: !x 1\na: 2\n")] == [(1, 4), (2, 4), (3, 1)]


def test_reading_ends_after_a_hundred_flaws() -> None:
    assert len(flaws("- !x a\n" * 5000)) == 100


@pytest.mark.parametrize(
    ("text", "at", "written"),
    [
        ("1.10", 0, "1.10"),
        ("a: +5 # x", 3, "+5"),
        ("[&x 0x1F, 2]", 1, "0x1F"),
        ("!!int 007", 0, "007"),
        ("1e-5]", 0, "1e-5"),
    ],
)
def test_a_number_is_spelled_as_it_is_written(text: str, at: int, written: str) -> None:
    assert spelling(text, at) == written


def test_nodes_that_aliases_share_are_the_same_value() -> None:
    root = read("[&a {b: c}, *a]").root
    assert root is not None
    assert isinstance(root.value, list)
    first, second = root.value
    assert isinstance(first, Node)
    assert first.value is second.value
