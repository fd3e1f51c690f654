"""The table of verbs, and what is made from it."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jupyter_pai.cli import parser
from jupyter_pai.commands import VERBS
from jupyter_pai.magics import IN_NOTEBOOKS
from jupyter_pai.verbs import GROUPS, Verb
from tools import manual, reference

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_verb_says_what_it_does_and_takes(verb: Verb) -> None:
    assert verb.summary[0].isupper()
    assert "\n" not in verb.summary
    assert all(argument.help and not argument.help.endswith(".") for argument in verb.arguments)
    names = [name for argument in verb.arguments for name in argument.names]
    assert len(names) == len(set(names))
    assert verb.name.count(" ") == 0 or verb.name.split()[0] in GROUPS


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_shell_and_a_notebook_tell_the_same_of_a_verb(verb: Verb, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([*verb.name.split(), "--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for argument in verb.arguments:
        assert all(name in told for name in argument.names if argument.is_option)
    assert (verb.name in IN_NOTEBOOKS) is not verb.shell_only


def test_of_all_commands_a_line_makes_one_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    make = argparse.ArgumentParser.__init__

    def recorded(self: argparse.ArgumentParser, **options: Any) -> None:
        made.append(options.get("prog", ""))
        make(self, **options)

    monkeypatch.setattr(argparse.ArgumentParser, "__init__", recorded)
    assert parser().parse_args(["user", "list"]).verb == "user"
    assert [prog for prog in made if prog] == ["pai", "pai user", "pai user list"]


def test_the_page_of_verbs_is_current() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == reference.cli_page(), "run make docs"
    assert (ROOT / "docs" / "pai.1").read_text() == manual.page(), "run make docs"


def test_the_man_page_names_every_verb_and_argument() -> None:
    page = manual.page()
    plain = page.replace("\\-", "-")
    assert plain.startswith('.TH PAI 1 "" "jupyter-pai" "User Commands"\n')
    for verb in VERBS.values():
        assert f'.SS "pai {verb.name}' in plain
        assert all(f'.B "{manual.name(argument)}"\n'.replace("…", "...") in plain for argument in verb.arguments)
    assert not re.search(r"(?<!\\)-", page.partition("\n")[2])  # a bare one may be shown as a typographic hyphen
    assert "`" not in page


def test_the_man_page_is_shown_without_a_warning(tmp_path: Path) -> None:
    if shutil.which("man") is None:
        pytest.skip("man is not here")
    path = tmp_path / "pai.1"
    path.write_text(manual.page())
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    assert "pai user disable" in done.stdout
