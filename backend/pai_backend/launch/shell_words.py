"""The simple commands of a shell text, as far as they can be known without running it. Pure.

A reader for recognising programs, not a shell: quoting, comments, line continuations, redirections,
here-documents, assignments and ``$NAME`` follow POSIX (Shell Command Language §2.2-2.9); whatever only
running can tell (``$(…)``, back-quotes, unset variables, ``${x:-y}``, ``$'…'``) is marked unknown in its word
and never guessed.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping
from typing import NamedTuple, cast

UNKNOWN = "\0"
"""Stands in a word for text that only running the command can tell; no shell text contains NUL."""

MAX_TEXT = 1 << 17  # characters of a text that are read; longer ones are data that a command carries with it
MAX_EXPANDED = 1 << 16  # characters that variables may add to a text, in all of the texts within it
_PER_EXPANSION = 8  # what one of them costs besides its characters: those of nothing take time too

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_BRACED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.ASCII | re.DOTALL)
_RESERVED = frozenset(
    {"!", "{", "}", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case"}
)
_PLAIN = re.compile(r"""[^;&|()\n \t\r#<>\\'"$`]+""")  # of which each character stands for itself, wherever it is
_PLAIN_QUOTED = re.compile(r"""[^"\\$`]+""")
_SPECIAL = frozenset("?@*#!-$0123456789")


class SimpleCommand(NamedTuple):
    """One command: its words after expansion, and the environment it would see."""

    words: tuple[str, ...]
    env: Mapping[str, str]


def known(text: str) -> bool:
    """Whether nothing of this text is unknown."""
    return UNKNOWN not in text


class VariableBudget:
    """How many characters variables may still add. One for a text and all texts within it: they can double at each."""

    def __init__(self) -> None:
        self._left = MAX_EXPANDED

    def spend(self, value: str) -> str:
        """The value; unknown when it is too much."""
        self._left -= len(value) + _PER_EXPANSION
        return value if self._left >= 0 else UNKNOWN


def simple_commands(text: str, env: Mapping[str, str], budget: VariableBudget | None = None) -> Iterator[SimpleCommand]:
    """The commands of ``text`` in order, with ``env`` as the variables known beforehand.

    Assignments without a command, and ``export NAME=value``, hold for what follows. What stands behind ``MAX_TEXT``
    characters is not read; a text with a NUL yields nothing. It takes time in proportion to the text and ``env``.
    ``SimpleCommand.env`` holds until the next command is asked for.
    """
    if UNKNOWN in text:
        return
    # Nothing is copied: a text may hold thousands of variables, and as many texts within it that see them.
    variables: ChainMap[str, str] = ChainMap({}, cast(MutableMapping[str, str], env))
    reader = _Reader(text[:MAX_TEXT], variables, budget or VariableBudget())
    while (words := reader.command()) is not None:
        begin = 0
        while begin < len(words) and words[begin] in _RESERVED:
            begin += 1
        given: dict[str, str] = {}
        while begin < len(words) and (match := _ASSIGNMENT.fullmatch(words[begin])):
            given[match[1]] = match[2]
            begin += 1
        if begin == len(words):
            variables.update(given)
        elif words[begin] == "export":
            exported = filter(None, map(_ASSIGNMENT.fullmatch, words[begin + 1 :]))
            variables.update((match[1], match[2]) for match in exported)
        else:
            yield SimpleCommand(tuple(words[begin:]), ChainMap(given, *variables.maps))


class _Reader:
    """Splits into words while it expands; one ``command()`` call reads up to the next operator."""

    def __init__(self, text: str, variables: Mapping[str, str], budget: VariableBudget) -> None:
        self._text = text
        self._at = 0
        self._budget = budget
        self._variables = variables
        self._words: list[str] = []
        self._word: list[str] | None = None  # its pieces: one text would be copied for each
        self._redirect = ""
        self._heredocs: list[str] = []

    def command(self) -> list[str] | None:
        """The words up to the next operator or line end; None at the end of the text."""
        self._words = []
        while self._at < len(self._text):
            if plain := _PLAIN.match(self._text, self._at):
                self._at = plain.end()
                self._add(plain[0])
                continue
            char = self._text[self._at]
            self._at += 1
            if char in ";&|()\n":
                if char == "&" and self._text[self._at : self._at + 1] == ">":
                    continue  # "&>" is a redirection; the ">" is read next
                self._end_word()
                if char == "\n":
                    self._skip_heredocs()
                return self._words
            self._take(char)
        self._end_word()
        return self._words or None

    def _take(self, char: str) -> None:
        if char in " \t\r":
            self._end_word()
        elif char == "#" and self._word is None:
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end
        elif char in "<>":
            self._start_redirect(char)
        elif char == "\\":
            self._escaped()
        elif char == "'":
            self._add(self._until("'"))
        elif char == '"':
            self._double_quoted()
        elif char == "$":
            self._split(self._expansion(quoted=False))
        elif char == "`":
            self._until("`")
            self._add(UNKNOWN)
        else:
            self._add(char)

    def _add(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _split(self, value: str) -> None:
        """Add an unquoted expansion: white space in it separates words (field splitting, §2.6.5)."""
        fields = value.split()
        if not fields:
            return
        if value[0].isspace():
            self._end_word()
        for number, field in enumerate(fields):
            if number:
                self._end_word()
            self._add(field)
        if value[-1].isspace():
            self._end_word()

    def _end_word(self) -> None:
        if self._word is None:
            return
        word = "".join(self._word)
        if self._redirect == "<<":
            self._heredocs.append(word)
        elif not self._redirect:
            self._words.append(word)
        self._word, self._redirect = None, ""

    def _start_redirect(self, char: str) -> None:
        if self._word is not None and len(self._word) == 1 and self._word[0].isdigit():
            self._word = None  # the descriptor number of "2>file"
        self._end_word()
        while self._at < len(self._text) and self._text[self._at] in "<>&|-":
            char += self._text[self._at]
            self._at += 1
        self._redirect = "<<" if char in ("<<", "<<-") else ">"

    def _escaped(self) -> None:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        if char != "\n":  # a line continuation vanishes
            self._add(char)

    def _until(self, quote: str) -> str:
        end = self._text.find(quote, self._at)
        end = len(self._text) if end < 0 else end
        text, self._at = self._text[self._at : end], end + 1
        return text

    def _double_quoted(self) -> None:
        self._add("")
        while self._at < len(self._text):
            if plain := _PLAIN_QUOTED.match(self._text, self._at):
                self._at = plain.end()
                self._add(plain[0])
                continue
            char = self._text[self._at]
            self._at += 1
            if char == '"':
                return
            if char == "\\" and self._text[self._at : self._at + 1] in ("$", "`", '"', "\\", "\n"):
                self._escaped()
            elif char == "$":
                self._add(self._expansion(quoted=True))
            elif char == "`":
                self._until("`")
                self._add(UNKNOWN)
            else:
                self._add(char)

    def _expansion(self, *, quoted: bool) -> str:
        """What stands behind a ``$`` that was just read."""
        if match := _NAME.match(self._text, self._at) or _BRACED.match(self._text, self._at):
            self._at = match.end()
            return self._budget.spend(self._variables.get(match[match.lastindex or 0], UNKNOWN))
        char = self._text[self._at : self._at + 1]
        if char == "'" and not quoted:
            self._at += 1
            self._until("'")
            return UNKNOWN
        if char in ("(", "{"):
            self._skip_nested(char, {"(": ")", "{": "}"}[char])
            return UNKNOWN
        if char and char in _SPECIAL:
            self._at += 1
            return UNKNOWN
        return "$"

    def _skip_nested(self, opening: str, closing: str) -> None:
        depth = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char == "\\":
                self._at += 1
            elif char == "'" and opening == "(":
                self._until("'")
            depth += (char == opening) - (char == closing)
            if depth == 0:
                return

    def _skip_heredocs(self) -> None:
        for delimiter in self._heredocs:
            while self._at < len(self._text):
                line = self._until("\n")
                if line.strip("\t") == delimiter:
                    break
        self._heredocs.clear()
