"""Which values are looked for, and in which spellings."""

from __future__ import annotations

import base64
import json
import shlex
from urllib.parse import quote

import pytest

from pai_backend.model.scrub import BUDGET, Scrubber, texts

VALUE = "p@ss'w\"rd\n/ü"


def stars(text: str) -> bytes:
    return b"*" * len(text.encode())


@pytest.mark.parametrize(
    "printed",
    [
        VALUE,
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        quote(VALUE, safe=""),
        quote(VALUE),
    ],
)
def test_a_value_is_covered_in_other_spellings(printed: str) -> None:
    assert Scrubber([VALUE]).whole(f"a {printed} b".encode()) == b"a " + stars(printed) + b" b"


def test_a_value_that_a_shell_has_quoted_is_covered() -> None:
    assert shlex.quote("it's secret") == """'it'"'"'s secret'"""
    traced = "+ curl -u 'it'\\''s secret'"  # as bash's xtrace prints it
    assert Scrubber(["it's secret"]).whole(traced.encode()) == b"+ curl -u '" + stars("it'\\''s secret") + b"'"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("after", ["", "x", "xy", "xyz"])
def test_a_value_inside_longer_base64_cannot_be_read_back(before: str, after: str) -> None:
    value = "correct horse battery"
    coded = base64.b64encode(f"{before}{value}{after}".encode())

    shown = Scrubber([value]).whole(b"Authorization: Basic " + coded).removeprefix(b"Authorization: Basic ")

    assert len(shown) == len(coded)
    kept = shown.replace(b"*", b"A")  # the best guess of who does not know the rest
    decoded = base64.b64decode(kept)
    assert not any(part in decoded for part in (b"correct", b"horse", b"battery"))


def test_texts_and_numbers_of_any_depth_are_values() -> None:
    assert list(texts({"a": ["x", {"b": 12345}], "c": None, "d": True, "e": 1.5})) == ["x", "12345", "1.5"]


def test_short_values_are_not_looked_for() -> None:
    assert Scrubber(["abc", "1", ""]).whole(b"abc 1 abcd") == b"abc 1 abcd"


def test_white_space_around_a_value_is_no_part_of_it() -> None:
    assert Scrubber(["  token\n"]).whole(b"[token]") == b"[*****]"


def test_a_message_keeps_its_characters() -> None:
    assert Scrubber(["geheim"]).text("ü geheim ü") == "ü ****** ü"


def test_other_spellings_are_given_up_before_values_are() -> None:
    values = [f"{number:04}" + "x" * 1000 for number in range(60)]
    scrubber = Scrubber(values)

    assert scrubber.size <= sum(map(len, values)) + BUDGET + 1
    assert scrubber.whole(values[-1].encode()) == b"*" * len(values[-1])


def test_values_are_not_shown() -> None:
    assert "hunter2" not in repr(Scrubber(["hunter2"])) + repr(Scrubber(["hunter2"]).begin())
