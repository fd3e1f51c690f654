"""Commands in running text: each is one that the parsers take, with words of the kind that stands there."""

from __future__ import annotations

import re
import shlex

import pytest

from jupyter_pai import magics
from jupyter_pai.cli import parser
from tests.docs.pages import read

CONNECT = ("addresses", "debug", "doctor", "jupyter", "kernels", "pycharm", "ssh", "terminal", "vscode", "xshell-putty")
IN_BOTH = (
    *(f"connect/{name}" for name in CONNECT),
    *("assistants", "debugging", "documents", "metrics", "notifications", "secrets", "ssh-keys"),
    *("troubleshooting", "why-waiting"),
)
PAGES = [f"docs/{folder}{name}.md" for folder in ("", "zh-CN/") for name in IN_BOTH]
MEANT = {"SERIAL": "1", "C:\\keys": "C:/keys"}
"""Words of the pages that stand for something of another kind."""

COMMAND = re.compile(r"(?<!`)`(%?pai [^`]+)`(?!`)")
NAME = re.compile(r"[a-z-]+( [a-z-]+)?")
"""A verb, or its action, that is only named."""


def commands(page: str) -> list[str]:
    return sorted({" ".join(found.split()) for found in COMMAND.findall(read(page))})


def words_of(command: str) -> list[str]:
    for word, meant in MEANT.items():
        command = command.replace(word, meant)
    return shlex.split(command)[1:]


def taken(words: list[str]) -> None:
    if not NAME.fullmatch(" ".join(words)):
        parser().parse_args(words)
        return
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([*words, "--help"])
    assert ended.value.code == 0, words


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_running_text_are_taken(page: str) -> None:
    found = commands(page)
    assert found
    for command in found:
        words = words_of(command)
        if not command.startswith("%"):
            taken(words)
        else:
            magics.parser(lambda name: name).parse_args(words)
