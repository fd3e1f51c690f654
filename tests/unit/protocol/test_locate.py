"""The JSON reader: what it takes, where it says things are, and that no text is dear to read."""

from __future__ import annotations

import json
import re

import pytest

from pai_backend.protocol.locate import Located, locate
from pai_backend.protocol.tree import MAX_DEPTH, Node, Positions, path_text


def read(text: str) -> object:
    located = locate(text)
    assert located.root is not None, located.flaws
    assert not located.flaws
    return located.root.plain()


def place(located: Located, *path: str | int) -> tuple[int, int]:
    node = located.root
    for step in path:
        assert node is not None
        if isinstance(node.value, dict):
            node = node.value[str(step)]
        elif isinstance(node.value, list):
            node = node.value[int(step)]
    assert isinstance(node, Node)
    return located.positions.line_column(node.at)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": []},
        {"": ""},
        {"a": [1, -1, 0, 1.5, -0.25, 1e-7, True, False, None, "x", {"b": [[]]}]},
        {"text": 'quote " backslash \\ slash / newline \n tab \t nul-free é 作业 😀'},
        {"a/*b*/": "//no comment", "c": "/* nor this */"},
        {"largest": 2**63 - 1, "smallest": -(2**63 - 1)},
    ],
)
@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_reads_as_the_standard_library_reads_it(value: object, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert read(text) == json.loads(text) == value


@pytest.mark.parametrize("text", ["8192.0", "8.192e3", "8192", "81920e-1"])
def test_a_number_without_a_fraction_is_an_integer(text: str) -> None:
    value = read(f'{{"n": {text}}}')
    assert value == {"n": 8192}
    assert isinstance(value, dict)
    assert isinstance(value["n"], int)


def test_comments_and_a_byte_order_mark_are_passed_over() -> None:
    text = (
        '\ufeff// first\r\n{ /* a */ "a" /**/ : /***/ 1 // end\r , // more\n'
        ' /* "b": 2, */ "c": [ /* none */ ] } // last'
    )
    assert read(text) == {"a": 1, "c": []}


@pytest.mark.parametrize("text", ['{"a": [1, 2,],}', '{"a": [1, 2 , /* none */ ], // end\n}'])
def test_a_comma_after_the_last_member_is_passed_over_and_noted(text: str) -> None:
    located = locate(text)
    assert located.root is not None
    assert located.root.plain() == {"a": [1, 2]}
    assert not located.flaws
    assert [slip.path for slip in located.slips] == [("a",), ()]
    assert all(text[slip.at] == "," for slip in located.slips)


@pytest.mark.parametrize("text", ["{,}", '{"a": [,]}', '{"a": 1,,}', '{"a": [1,,]}'])
def test_a_comma_without_a_member_before_it_is_a_flaw(text: str) -> None:
    assert locate(text).flaws


def test_a_tab_inside_a_text_is_taken() -> None:
    assert read('{"a":\t"x\ty"}') == {"a": "x\ty"}


def test_every_value_knows_its_line_and_column() -> None:
    located = locate('\ufeff{"a": 1,\n  "b": [true,\r\n    {"ключ": "作业", "d": "\\n"}],\r "e": -1.5}')
    assert place(located) == (1, 1)
    assert place(located, "a") == (1, 7)
    assert place(located, "b") == (2, 8)
    assert place(located, "b", 0) == (2, 9)
    assert place(located, "b", 1) == (3, 5)
    assert place(located, "b", 1, "ключ") == (3, 14)
    assert place(located, "b", 1, "d") == (3, 25)
    assert place(located, "e") == (4, 7)


def test_depth_up_to_the_limit_is_read() -> None:
    inner = MAX_DEPTH - 1
    assert read('{"a":' + "[" * inner + "]" * inner + "}")
    assert locate('{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}").root is None


def test_reading_goes_on_after_faults_that_can_be_mended() -> None:
    located = locate('{a: 1 "b": True, \'c\': 08, "d": [1 2,], "d": 0, "e": "\\x", }')
    assert located.root is not None
    assert [flaw.message for flaw in located.flaws] == [
        "a key without double quotes",
        "a comma is missing here",
        "True is not JSON",
        "a key without double quotes",
        "a number that JSON does not know",
        "a comma is missing here",
        "this key is already given at line 1, column 27",
        "a backslash before a character that it cannot change",
    ]
    assert [located.positions.line_column(slip.at) for slip in located.slips] == [(1, 36), (1, 57)]


def test_positions_at_the_end_of_the_text() -> None:
    assert Positions("").line_column(0) == (1, 1)
    assert Positions("a\n").line_column(2) == (2, 1)
    assert Positions("a\r\nb").line_column(4) == (2, 2)


def test_paths_quote_what_is_no_plain_name() -> None:
    assert path_text(("taskRoles", 0, "my key", 'a"b')) == '$.taskRoles[0]["my key"]["a\\"b"]'
    assert path_text(("k" * 100,)) == f'$["{"k" * 39}…"]'
    assert path_text(("a\nb",)) == '$["a\ufffdb"]'


@pytest.mark.parametrize(
    "text", ["\r\n" * 9_000, "a\r" * 9_000, "\n" * 17_000, "x" * 20_000 + "\r\n" * 3, "\ufeff\r\n"]
)
def test_positions_are_right_around_the_blocks_that_are_counted(text: str) -> None:
    positions = Positions(text)
    ends = [found.end() for found in re.finditer(r"\r\n?|\n", text)]
    for at in (len(text), *(at for at in range(16_380, 16_390) if at <= len(text)), 0, 1, 2):
        before = [end for end in ends if end <= at]
        start = before[-1] if before else int(text.startswith("\ufeff"))
        assert positions.line_column(at) == (len(before) + 1, max(at - start, 0) + 1)
