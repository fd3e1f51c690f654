"""The language of the command line: how it is chosen, and that all its texts have their Chinese."""

from __future__ import annotations

import argparse
import ast
import copy
import json
import pickle
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jupyter_pai import language
from jupyter_pai.backend_words import said
from jupyter_pai.cli import main, parser
from jupyter_pai.commands import VERBS
from jupyter_pai.errors import ClientError
from jupyter_pai.help_text import complaint, wrapped
from jupyter_pai.language import tr
from jupyter_pai.render import error_text, table, width
from pai_backend.lifecycle import exits
from pai_backend.model.job import Causer, TaskExit
from pai_backend.model.text import Text
from pai_backend.model.wording import wording_of
from tests.support import said_texts

ENGLISH_WORDS = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
OPTION = re.compile(r"(?<!\w)--[a-z][a-z-]+")
NOT_TRANSLATED = {
    "notebooks/execute.py": "runs in the task, whose log is in English",
}
"""Modules where a sentence of English may reach a user as it is, and why."""


@pytest.fixture(autouse=True)
def no_language(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("PAI_LANG", *language.VARIABLES):
        monkeypatch.delenv(name, raising=False)
    yield
    language.follow_jupyter("")
    language.keep_to_english(False)


@pytest.mark.parametrize(
    ("environ", "spoken"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh_CN"),
        ({"LANG": "zh_TW.UTF-8"}, "zh_CN"),
        ({"LC_MESSAGES": "zh_CN.GBK", "LANG": "de_DE.UTF-8"}, "zh_CN"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh_CN"),
        ({"PAI_LANG": "zh_CN", "LC_ALL": "C"}, "zh_CN"),
        ({"PAI_LANG": "zh-Hans"}, "zh_CN"),
        ({"PAI_LANG": "ZH"}, "zh_CN"),
        ({"PAI_LANG": "en", "LC_ALL": "zh_CN.UTF-8"}, "en"),
        ({"PAI_LANG": "klingon", "LC_ALL": "zh_CN.UTF-8"}, "en"),
        ({"PAI_LANG": "zhx", "LC_ALL": "zh_CN.UTF-8"}, "en"),
        ({"PAI_LANG": "  ", "LC_ALL": "zh_CN.UTF-8"}, "zh_CN"),
    ],
)
def test_the_variables_choose_the_language(
    environ: dict[str, str], spoken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert language.language() == spoken


def test_jupyter_chooses_it_in_notebooks_unless_the_variable_does(monkeypatch: pytest.MonkeyPatch) -> None:
    language.follow_jupyter("zh_CN")
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    assert language.language() == "zh_CN"
    monkeypatch.setenv("PAI_LANG", "en")
    assert language.language() == "en"


def test_values_stand_where_the_text_names_them_and_other_braces_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tr("Removed {id}.", id="{id}") == "Removed {id}."
    assert tr("a {b} {", c=1) == "a {b} {"
    monkeypatch.setenv("PAI_LANG", "zh")
    assert tr("Removed {id}.", id="k{}1") == "已移除 k{}1。"
    assert tr("No such text {id}.", id=1) == "No such text 1."


def test_an_error_is_english_for_programs_and_chinese_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_LANG", "zh_CN")
    error = ClientError(
        Text("A context cannot be called {name}: {why}.", name="x", why=Text("that is the private backend")),
        hint="Give another name by --context.",
    )
    assert error.body()["message"] == "A context cannot be called x: that is the private backend."
    assert json.loads(json.dumps(error.body())) == error.body()
    assert error_text(error) == "上下文不能叫 x：这是私有后端。\n  请用 --context 给出其他名称。"
    assert tr(str(ValueError(error.message))) == "上下文不能叫 x：这是私有后端。"
    for same in (pickle.loads(pickle.dumps(error.message)), copy.deepcopy(error.message)):
        assert (same, tr(same)) == (error.message, tr(error.message))


def test_chinese_columns_are_aligned_and_its_lines_are_not_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_LANG", "zh_CN")
    lines = table(("NAME", "STATE", "TASKS"), [("a", tr("RUNNING"), 1), ("训练作业", "FAILED", 20)]).splitlines()
    assert lines[0].split() == ["名称", "状态", "任务"]
    assert len({width(line[: line.rindex(last)]) for line, last in zip(lines, ("任务", "1", "20"), strict=True)}) == 1
    text = tr("Run a command as a job, and show what it writes") + "，`pai config` 会显示（见上文）。" * 5
    shown = list(wrapped(text, 40))
    assert max(map(width, shown)) <= 42  # a mark that may not begin a line stands behind it
    assert "".join(shown).replace(" ", "") == text.replace(" ", "")
    assert not any(line[0] in "，。）" for line in shown)


def test_mistakes_on_the_command_line_are_told_in_chinese(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAI_LANG", "zh_CN")

    def told(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        return capsys.readouterr().err

    assert told("logs").startswith("用法：pai logs [-h]")
    assert "缺少以下参数：job" in told("logs")
    assert "参数 --stream：无效的选择：'x'（可选" in told("logs", "j", "--stream", "x")
    assert "参数 --index：无效的 int 值：'x'" in told("logs", "j", "--index", "x")
    assert "参数 --limit：应有一个值" in told("list", "--limit")
    assert "无法识别的参数：--no-such" in told("list", "--no-such")
    assert "不是时长" in told("keys", "add", "f", "--for", "x")
    assert "必须给出 --before --after --first --last 中的一个参数" in told("move", "j")


def test_all_help_is_chinese_and_names_the_same_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def helped(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            parser().parse_args([*words, "--help"])
        assert ended.value.code == 0
        return capsys.readouterr().out

    for name in VERBS:
        english = helped(*name.split())
        monkeypatch.setenv("PAI_LANG", "zh_CN")
        chinese = helped(*name.split())
        monkeypatch.delenv("PAI_LANG")
        assert chinese.startswith("用法：")
        told = re.sub(r"`[^`]*`|\bpai [a-z -]+|Model Context Protocol|OpenID Connect|--on waited", "", chinese)
        assert not ENGLISH_WORDS.search(told.split("\n\n", 1)[1]), name
        assert OPTION.findall(english.split("\n\n")[0]) == OPTION.findall(chinese.split("\n\n")[0]), name


def test_every_complaint_of_argparse_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_LANG", "zh_CN")
    made = argparse.ArgumentParser(prog="p", exit_on_error=False)
    made.add_argument("--number", type=int)
    with pytest.raises(argparse.ArgumentError) as wrong:
        made.parse_args(["--number", "x"])
    assert complaint(str(wrong.value)) == "参数 --number：无效的 int 值：'x'"


@pytest.mark.parametrize("rule", exits.RULES, ids=lambda rule: rule.of.phrase)
def test_remedies_are_chinese(rule: exits.Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_LANG", "zh_CN")
    assert tr(rule.of.remedy) != rule.of.remedy or not rule.of.remedy


def test_an_end_as_the_backend_tells_it_is_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    message = exits.explained(TaskExit(code=3, causer=Causer.USER, at=datetime.now(UTC))).message
    assert message == "the command reports failure (exited with status 3)"
    wording = wording_of(message)
    assert wording is not None
    body = json.loads(json.dumps({"message": message, "wording": wording.model_dump()}))
    assert said(body) == message
    monkeypatch.setenv("PAI_LANG", "zh_CN")
    assert said(body) == "命令报告失败（退出状态 3）"
    assert said({**body, "wording": None}) == message, "of a backend of before"
    assert said({**body, "message": "another"}) == "another"


@pytest.mark.parametrize("path", said_texts.sources(), ids=lambda path: str(path.relative_to(said_texts.ROOT)))
def test_no_sentence_reaches_a_user_untranslated(path: Path) -> None:
    """Arguments of what prints, asks or refuses hold no English of two words outside ``tr`` and ``Text``.

    A literal alone is fine in an error, which is translated where it is shown.
    """
    name = str(path.relative_to(said_texts.ROOT))
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            for part in said_texts.shown(node):
                found += list(_bare(part, is_error=said_texts.called(node) in said_texts.ERRORS))
    assert found == [] or name in NOT_TRANSLATED, f"{name}: {found}"


def _bare(node: ast.AST, *, is_error: bool) -> Iterator[str]:
    """English of two words in an expression, outside what translates it."""
    if said_texts.called(node) in (*said_texts.MARKS, "table"):
        return
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        if ENGLISH_WORDS.search(text):
            yield text
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if not is_error and ENGLISH_WORDS.search(node.value):
            yield node.value
        return
    for each in ast.iter_child_nodes(node):
        yield from _bare(each, is_error=is_error)
