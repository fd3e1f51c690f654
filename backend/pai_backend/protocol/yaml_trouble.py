"""What is wrong at a place where YAML does not go on as it should, and how to fix it.

The parser's own text is only looked at to choose between sentences of ours, never repeated: PyYAML quotes
the line, and with it what may be a secret. The character at the place says more often what is wrong.
"""

from __future__ import annotations

import re
from typing import Final

import yaml

from pai_backend.protocol.diagnose import SyntaxTrouble
from pai_backend.protocol.locate import MAX_DEPTH

LESS_DEEP: Final = "Nest less deeply; a job document needs about seven."
_RESERVED = "@`"
_UNREADABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # YAML 1.2, section 5.1, c-printable
)
_QUOTE = 'Put the text in quotes: "…", or after | on lines of its own.'
_OPENED = ("while scanning a quoted scalar", "while scanning a simple key")
"""Contexts whose beginning is the place to look at, not the place where the parser gave up."""

# A piece of the parser's problem -> our message and hint, the first that is found.
_SENTENCES: Final = (
    (
        "mapping values are not allowed",
        "a ':' and a space inside of a text, or a wrong indentation",
        "Put a text that holds ': ' in quotes; keys of one object begin in the same column.",
    ),
    ("could not find expected ':'", "no ':' after this key", "Write key, colon, space, value; or indent the line."),
    ("unexpected end of stream", "this text has no closing quote", "Close it with the quote it begins with."),
    ("unexpected document indicator", "a line --- or ... inside of a text", "Close the quotes before it."),
    (
        "unknown escape character",
        "a backslash before a character that it cannot change",
        r"Write \\ for a backslash, or use single quotes.",
    ),
    ("hexdecimal", "an escape without its hexadecimal digits", r"Write \x41, \u0041 or \U00000041."),
    ("hexadecimal", "an escape without its hexadecimal digits", r"Write \x41, \u0041 or \U00000041."),
    ("invalid Unicode character", "an escape that is not a character", "Write the character itself."),
    (
        "expected ',' or",
        "no ',' and no closing bracket after this member",
        "Write ',' between two members, and close what is open.",
    ),
    ("did not find expected key", "this line fits nothing around it", "Indent it like the keys it belongs to."),
    ("expected <block end>", "this line fits nothing around it", "Indent it like the keys it belongs to."),
    ("expected '-' indicator", "this line is not an item of the list around it", "Begin it with '- ', or indent it."),
    ("block sequence entries are not allowed", "a '- ' where no list can begin", "Put the list on lines of its own."),
    ("mapping keys are not allowed", "a '? ' where no key can begin", _QUOTE),
    ("expected node content", "a value is missing here", "Write a value, or remove what stands before it."),
    ("undefined tag handle", "a tag that is not one of YAML's own", "Remove the tag; write plain values."),
    ("expected the node content", "a value is missing here", "Write a value, or remove what stands before it."),
    ("alphabetic or numeric", "a '&' or '*' without a name", _QUOTE),
    ("indentation indicator equal to 0", "an indentation of 0 after | or >", "Use 1 to 9, or leave it out."),
    (
        "exceeded maximum nesting depth",  # libyaml 0.2.6 gives up before it says of any bracket that it was opened
        f"more than {MAX_DEPTH} levels of lists and objects",
        LESS_DEEP,
    ),
    ("comment or line break", "something after | or > on its line", "Begin the text on the next line."),
    ("expected chomping", "something after | or > on its line", "Begin the text on the next line."),
)


def syntax(text: str, start: int, end: int, error: yaml.YAMLError) -> SyntaxTrouble:
    """Why the parser of ``text[start:end]`` gave up with ``error``."""
    problem = context = ""
    at = end
    if isinstance(error, yaml.MarkedYAMLError):
        problem, context = error.problem or "", error.context or ""
        mark = error.problem_mark
        if context in _OPENED and error.context_mark is not None:
            mark = error.context_mark
        if mark is not None:
            at = min(start + mark.index, end)
    by_character = _character(text, at, end)
    if by_character is not None:
        return by_character
    for piece, message, hint in _SENTENCES:
        if piece in problem:
            return SyntaxTrouble(at, message, hint)
    if at >= end:
        return SyntaxTrouble(at, "the document ends where more is needed", "Close what is open.")
    return SyntaxTrouble(at, "YAML cannot go on here", "Check the indentation and the quotes just before it.")


def character(text: str) -> SyntaxTrouble | None:
    """The first character of ``text`` that no YAML document may hold, or None."""
    found = _UNREADABLE.search(text)
    if found is None:
        return None
    at = found.start()
    message = f"the character U+{ord(text[at]):04X}, which YAML does not allow"
    return SyntaxTrouble(at, message, 'Remove it, or write it as an escape in double quotes: "\\x1b".')


def foreign_tag(at: int) -> SyntaxTrouble:
    """A tag that is not one of YAML's own: it would make something of the value that no job document has."""
    return SyntaxTrouble(at, "a tag that is not one of YAML's own", "Remove the tag; write plain values.")


def _character(text: str, at: int, end: int) -> SyntaxTrouble | None:
    """What the character that the parser stopped at tells."""
    char = text[at] if at < end else ""
    if char == "\t":
        return SyntaxTrouble(at, "a tab in the indentation", "Indent with spaces.")
    if char and char in _RESERVED:
        return SyntaxTrouble(at, f"a text that begins with '{char}'", _QUOTE)
    if char == "%" and (at == 0 or text[at - 1] != "\n"):
        return SyntaxTrouble(at, "a text that begins with '%'", _QUOTE)
    return None
