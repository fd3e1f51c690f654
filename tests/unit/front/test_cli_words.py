"""Options and words of ``pai`` stand in any order."""

from __future__ import annotations

import pytest

from jupyter_pai import cli
from jupyter_pai.verbs import parse


def command_of(*words: str) -> dict[str, object]:
    """What the verb that these words call is given."""
    return vars(parse(cli.parser(), words))


@pytest.mark.parametrize(
    ("words", "role", "command"),
    [
        (["job", "--", "nvidia-smi", "-l"], None, ["nvidia-smi", "-l"]),
        (["job", "--role", "worker", "--", "nvidia-smi", "--role", "x"], "worker", ["nvidia-smi", "--role", "x"]),
        (["--role", "worker", "job", "--", "nvidia-smi"], "worker", ["nvidia-smi"]),
        (["job", "--role", "worker", "--", "ls", "--", "a"], "worker", ["ls", "--", "a"]),
        (["job", "--role", "worker", "hostname"], "worker", ["hostname"]),
        (["job", "hostname", "--role", "worker"], "worker", ["hostname"]),
        (["job", "--role", "worker"], "worker", []),
    ],
)
def test_a_command_for_a_task_in_any_order(words: list[str], role: str | None, command: list[str]) -> None:
    seen = command_of("ssh", *words)
    assert (seen["job"], seen["role"], seen["command"]) == ("job", role, command)


def test_words_that_may_be_left_out_come_behind_options_too() -> None:
    assert command_of("release", "job", "--json", "worker-0", "worker-1")["task"] == [
        "worker-0",
        "worker-1",
    ]


def test_a_word_that_begins_with_a_dash_stands_behind_two_dashes() -> None:
    assert command_of("validate", "--", "-x.json")["file"] == "-x.json"


@pytest.mark.parametrize("words", [["ssh"], ["ssh", "job", "-t"], ["ssh", "--", "job"], ["nothing"], ["release"]])
def test_what_is_no_command_line_is_still_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert "usage: pai" in capsys.readouterr().err
