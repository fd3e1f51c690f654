"""Options and words of ``pai`` stand in any order."""

from __future__ import annotations

import pytest

from jupyter_pai import cli


def command_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, object]:
    """What the verb that these words call is given."""
    seen: dict[str, object] = {}

    def run(args: object, _out: object) -> int:
        seen.update(vars(args))
        return 0

    for verb in ("ssh", "release", "open_", "cluster"):
        for module in (cli.ssh, cli.jobs, cli.cluster):
            if hasattr(module, verb):
                monkeypatch.setattr(module, verb, run)
    assert cli.main(list(words)) == 0
    return seen


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
def test_a_command_for_a_task_in_any_order(
    monkeypatch: pytest.MonkeyPatch, words: list[str], role: str | None, command: list[str]
) -> None:
    seen = command_of(monkeypatch, "ssh", *words)
    assert (seen["job"], seen["role"], seen["command"]) == ("job", role, command)


def test_words_that_may_be_left_out_come_behind_options_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command_of(monkeypatch, "release", "job", "--json", "worker-0", "worker-1")["task"] == [
        "worker-0",
        "worker-1",
    ]


def test_a_word_that_begins_with_a_dash_stands_behind_two_dashes() -> None:
    assert cli._parsed(["validate", "--", "-x.json"]).file == "-x.json"


@pytest.mark.parametrize("words", [["ssh"], ["ssh", "job", "-t"], ["ssh", "--", "job"], ["nothing"], ["release"]])
def test_what_is_no_command_line_is_still_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert "usage: pai" in capsys.readouterr().err
