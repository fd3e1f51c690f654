"""What is wrong at a place where YAML does not go on as it should, and how to fix it.

The parser's own text is only looked at to choose between sentences of ours, never repeated: PyYAML quotes
the line, and with it what may be a secret. The character at the place says more often what is wrong.
"""

from __future__ import annotations

from typing import Final

import yaml

from pai_backend.model.text import Text
from pai_backend.protocol.diagnose import SyntaxTrouble
from pai_backend.protocol.tree import MAX_DEPTH

LESS_DEEP: Final = Text("Nest less deeply; a job document needs about seven.")
_RESERVED = "@`"
_QUOTE = Text('Put the text in quotes: "…", or after | on lines of its own.')
_OPENED = ("while scanning a quoted scalar", "while scanning a simple key")
"""Contexts whose beginning is the place to look at, not the place where the parser gave up."""

# A piece of the parser's problem -> our message and hint, the first that is found.
_SENTENCES: Final = (
    (
        "mapping values are not allowed",
        Text("a ':' and a space inside of a text, or a wrong indentation"),
        Text("Put a text that holds ': ' in quotes; keys of one object begin in the same column."),
    ),
    (
        "could not find expected ':'",
        Text("no ':' after this key"),
        Text("Write key, colon, space, value; or indent the line."),
    ),
    (
        "unexpected end of stream",
        Text("this text has no closing quote"),
        Text("Close it with the quote it begins with."),
    ),
    ("unexpected document indicator", Text("a line --- or ... inside of a text"), Text("Close the quotes before it.")),
    (
        "unknown escape character",
        Text("a backslash before a character that it cannot change"),
        Text(r"Write \\ for a backslash, or use single quotes."),
    ),
    ("hexdecimal", Text("an escape without its hexadecimal digits"), Text(r"Write \x41, \u0041 or \U00000041.")),
    ("hexadecimal", Text("an escape without its hexadecimal digits"), Text(r"Write \x41, \u0041 or \U00000041.")),
    ("invalid Unicode character", Text("an escape that is not a character"), Text("Write the character itself.")),
    (
        "expected ',' or",
        Text("no ',' and no closing bracket after this member"),
        Text("Write ',' between two members, and close what is open."),
    ),
    (
        "did not find expected key",
        Text("this line fits nothing around it"),
        Text("Indent it like the keys it belongs to."),
    ),
    ("expected <block end>", Text("this line fits nothing around it"), Text("Indent it like the keys it belongs to.")),
    (
        "expected '-' indicator",
        Text("this line is not an item of the list around it"),
        Text("Begin it with '- ', or indent it."),
    ),
    (
        "block sequence entries are not allowed",
        Text("a '- ' where no list can begin"),
        Text("Put the list on lines of its own."),
    ),
    ("mapping keys are not allowed", Text("a '? ' where no key can begin"), _QUOTE),
    ("expected node content", Text("a value is missing here"), Text("Write a value, or remove what stands before it.")),
    ("undefined tag handle", Text("a tag that is not one of YAML's own"), Text("Remove the tag; write plain values.")),
    (
        "expected the node content",
        Text("a value is missing here"),
        Text("Write a value, or remove what stands before it."),
    ),
    ("alphabetic or numeric", Text("a '&' or '*' without a name"), _QUOTE),
    (
        "indentation indicator equal to 0",
        Text("an indentation of 0 after | or >"),
        Text("Use 1 to 9, or leave it out."),
    ),
    (
        "exceeded maximum nesting depth",  # libyaml 0.2.6 gives up before it says of any bracket that it was opened
        Text("more than {most} levels of lists and objects", most=MAX_DEPTH),
        LESS_DEEP,
    ),
    ("comment or line break", Text("something after | or > on its line"), Text("Begin the text on the next line.")),
    ("expected chomping", Text("something after | or > on its line"), Text("Begin the text on the next line.")),
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
        return SyntaxTrouble(at, Text("the document ends where more is needed"), Text("Close what is open."))
    return SyntaxTrouble(
        at, Text("YAML cannot go on here"), Text("Check the indentation and the quotes just before it.")
    )


def foreign_tag(at: int) -> SyntaxTrouble:
    """A tag that is not one of YAML's own: it would make something of the value that no job document has."""
    return SyntaxTrouble(at, Text("a tag that is not one of YAML's own"), Text("Remove the tag; write plain values."))


def _character(text: str, at: int, end: int) -> SyntaxTrouble | None:
    """What the character that the parser stopped at tells."""
    char = text[at] if at < end else ""
    if char == "\t":
        return SyntaxTrouble(at, Text("a tab in the indentation"), Text("Indent with spaces."))
    if char and char in _RESERVED:
        return SyntaxTrouble(at, Text("a text that begins with '{char}'", char=char), _QUOTE)
    if char == "%" and (at == 0 or text[at - 1] != "\n"):
        return SyntaxTrouble(at, Text("a text that begins with '%'"), _QUOTE)
    return None
