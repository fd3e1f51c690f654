"""What is wrong at a place where JSON does not go on as it should, and how to fix it.

Pure functions of (text, offset), called only once something is already wrong. Messages are ours and
repeat nothing of the text but single characters, because any of it may be a secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pai_backend.model.errors import Bug
from pai_backend.model.text import Text

_WORD = re.compile(r"""[^\s,;:\[\]{}"'/]+""")
_BARE_KEY = re.compile(r'[A-Za-z_$][A-Za-z0-9_$.-]*"?')
_AFTER_VALUE = re.compile(r"[ \t]*(?:[,\]}\r\n]|//|/\*|\Z)")
_SINGLE_QUOTED = re.compile(r"'[^'\r\n]*+'")
_STRING = re.compile(r'"[^"\\\r\n]*+(?:\\[^\r\n][^"\\\r\n]*+|)*+"')
_STRING_FLAW = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(\\u?|[\x00-\x08\x0b-\x1f])')
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_NOT_FINITE = {"NaN", "Infinity", "-Infinity", "+Infinity", "nan", "inf", "-inf", "+inf"}
_LOOKALIKES = dict(
    zip("\u201c\u201d\u2018\u2019\uff02\uff0c\uff1a\uff5b\uff5d\uff3b\uff3d", '""\'\'",:{}[]', strict=True)
)


@dataclass(frozen=True)
class SyntaxTrouble:
    """One thing wrong. ``resume`` is the offset to read on from, or None when nothing after it can be trusted."""

    at: int
    message: Text
    hint: Text
    resume: int | None = None


def beginning(text: str, at: int) -> SyntaxTrouble:
    """Why the document cannot begin as it does at ``at``."""
    if at >= len(text):
        return SyntaxTrouble(at, Text("the document is empty"), Text("Write a job document, or choose another file."))
    if text[at] in '["' or _is_wordlike(text[at]):
        hint = Text('Job documents are JSON objects like { "jobName": …, "image": …, "taskRoles": [ … ] }.')
        return SyntaxTrouble(at, Text("the document does not begin with '{'"), hint)
    return unexpected(text, at, "'{'")


def value(text: str, at: int) -> SyntaxTrouble:
    """Why no value can be read at ``at`` (the first character that is no white space or comment)."""
    if at < len(text) and text[at] in ",]}":
        return SyntaxTrouble(
            at, Text("a value is missing here"), Text("Write a value, or remove the key or comma before it."), at
        )
    if at < len(text) and text[at] == '"':
        return _string(text, at)
    quoted = _SINGLE_QUOTED.match(text, at)
    if quoted:
        return SyntaxTrouble(
            at,
            Text("text in single quotes"),
            Text('JSON text is written in double quotes: "…".'),
            _resume(text, quoted.end()),
        )
    word = _WORD.match(text, at)
    if word is None or not _is_wordlike(text[at]):
        return unexpected(text, at, Text("a value"))
    return _word(word[0], at, _resume(text, word.end()))


def key(text: str, at: int) -> tuple[str, SyntaxTrouble] | None:
    """A key that is not in double quotes and what to say of it, or None when this is no key at all."""
    quoted = _SINGLE_QUOTED.match(text, at)
    found = quoted or _BARE_KEY.match(text, at)
    if found is None:
        return None
    name = found[0].strip("'\"")
    return name, SyntaxTrouble(
        at, Text("a key without double quotes"), Text('Write keys in double quotes: "key": value.'), found.end()
    )


def colon(text: str, at: int, key_end: int) -> SyntaxTrouble:
    """Why no ``:`` follows a key that ended at ``key_end``."""
    if at < len(text) and text[at] in _LOOKALIKES:
        return unexpected(text, at, "':'")
    return SyntaxTrouble(
        key_end, Text("no ':' after this key"), Text("Write key, colon, value; a quote may be missing in the key.")
    )


def separator(text: str, at: int, end: int, closer: str, opened: Text) -> SyntaxTrouble:
    """Why neither ``,`` nor ``closer`` follows a value that ended at ``end``; ``opened`` places the bracket."""
    if at >= len(text):
        return ends(text, closer, opened)
    char = text[at]
    if char in "]}":
        return SyntaxTrouble(
            at,
            Text("'{char}' where '{closer}' is needed", char=char, closer=closer),
            Text("Close the '{closer}' of {opened} first.", closer=_opener(closer), opened=opened),
        )
    after_text = text[end - 1] == '"'
    if after_text and at == end and char not in _LOOKALIKES:
        return SyntaxTrouble(
            end,
            Text("the text goes on after its closing quote"),
            Text('Write \\" for a quote inside a text, or close the text before it.'),
        )
    if char == '"' or (closer == "]" and (char in "{[-" or char.isdecimal())):
        return SyntaxTrouble(end, Text("a comma is missing here"), Text("Write ',' between two members."), at)
    return unexpected(text, at, Text("',' or '{closer}'", closer=closer))


def ends(text: str, closer: str, opened: Text) -> SyntaxTrouble:
    """The text ends inside an object or a list."""
    return SyntaxTrouble(
        len(text),
        Text("the document ends before the '{closer}'", closer=closer),
        Text("Close the '{closer}' of {opened}.", closer=_opener(closer), opened=opened),
    )


def unexpected(text: str, at: int, wanted: str) -> SyntaxTrouble:
    """A character that cannot stand here at all."""
    if at >= len(text):
        return SyntaxTrouble(
            at,
            Text("the document ends where {wanted} is needed", wanted=wanted),
            Text("The end of the document may be missing."),
        )
    char = text[at]
    if text.startswith("/*", at):
        return SyntaxTrouble(at, Text("this comment has no end"), Text("Close it with */."))
    if char == "/":
        return SyntaxTrouble(
            at, Text("a '/' outside of a text"), Text("Comments are written // to the end of the line, or /* … */.")
        )
    if char == "#":
        return SyntaxTrouble(at, Text("a '#' outside of a text"), Text("Comments in JSON documents are written //."))
    if char in _LOOKALIKES:
        hint = Text("Write the plain {plain} instead of the typographic or full-width one.", plain=_LOOKALIKES[char])
        return SyntaxTrouble(
            at,
            Text("the character U+{code} where {wanted} is needed", code=format(ord(char), "04X"), wanted=wanted),
            hint,
        )
    if char.isspace() or not char.isprintable():
        hint = Text("It may look like a space; replace it with an ordinary one.")
        return SyntaxTrouble(
            at, Text("the invisible character U+{code} outside of a text", code=format(ord(char), "04X")), hint
        )
    return SyntaxTrouble(
        at,
        Text("'{char}' where {wanted} is needed", char=char, wanted=wanted),
        Text("Check the commas, quotes and brackets just before it."),
    )


def _resume(text: str, end: int) -> int | None:
    """``end``, the end of a wrongly written value, if what follows looks like the end of a value."""
    return end if _AFTER_VALUE.match(text, end) else None


def _word(word: str, at: int, resume: int | None) -> SyntaxTrouble:
    """A bare word or a malformed number."""
    if word in _PYTHON_WORDS:
        return SyntaxTrouble(
            at, Text("{word} is not JSON", word=word), Text("Write {json}.", json=_PYTHON_WORDS[word]), resume
        )
    if word in _NOT_FINITE:
        return SyntaxTrouble(
            at, Text("NaN and Infinity are not numbers of JSON"), Text("Use a finite number, or leave it out."), resume
        )
    if word[0] in "0123456789+-.":
        hint = Text("Write it like 12, -3, 0.5 or 1e3, or as text in double quotes.")
        return SyntaxTrouble(at, Text("a number that JSON does not know"), hint, resume)
    return SyntaxTrouble(at, Text("a word without quotes"), Text('Write text in double quotes: "…".'), resume)


def _string(text: str, at: int) -> SyntaxTrouble:
    """What is wrong inside the string that starts at ``at``."""
    whole = _STRING.match(text, at)
    if whole is None:
        hint = Text(r"Close it on the same line; write \n for a line break inside it.")
        return SyntaxTrouble(at, Text("a text without its closing quote on this line"), hint)
    for found in _STRING_FLAW.finditer(text, at + 1, whole.end() - 1):
        if found[1] is None:
            continue
        if found[1][0] == "\\":
            hint = Text(
                'Write \\\\ for a backslash; JSON knows \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four digits.'
            )
            return SyntaxTrouble(
                found.start(), Text("a backslash before a character that it cannot change"), hint, whole.end()
            )
        message = Text("the control character U+{code} inside a text", code=format(ord(found[1]), "04X"))
        return SyntaxTrouble(
            found.start(), message, Text(r"Write it as \u and four digits, or remove it."), whole.end()
        )
    raise Bug("a string without a flaw was not read")


def _is_wordlike(char: str) -> bool:
    return char.isalnum() or char in "_$+-."


def _opener(closer: str) -> str:
    return "{" if closer == "}" else "["
