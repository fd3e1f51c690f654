"""``pai``, ``%pai`` and the views of notebooks in Chinese, against a real backend."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from jupyter_pai import language
from jupyter_pai.render import width
from jupyter_pai.sync import Client
from jupyter_pai.widgets.html import job_html
from tests.support.warm_start import run_pai

ENGLISH_LINE = re.compile(r"\b[a-z]{2,} [a-z]{2,} [a-z]{2,}\b")


@pytest.fixture(autouse=True)
def own_language() -> Iterator[None]:
    yield
    language.follow_jupyter("")


def submit(backend: Client, name: str, tasks: int, command: str = "sleep 600") -> None:
    role = {"name": "main", "taskNumber": tasks, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 1}
    document = {"jobName": name, "image": "none", "taskRoles": [{**role, "command": command}]}
    backend.submit(json.dumps(document).encode())


def test_jobs_and_their_reasons_are_told_in_chinese_and_json_stays_as_it_is(
    backend: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = backend.api.endpoint
    monkeypatch.setenv("PAI_URL", endpoint.url)
    monkeypatch.setenv("PAI_TOKEN", endpoint.token)

    def pai(*words: str, ends: int = 0, **variables: str) -> str:
        done = run_pai(*words, env={**os.environ, **variables})
        assert done.returncode == ends, done.stderr
        return done.stdout if ends == 0 else done.stderr

    submit(backend, "first", 1)
    for event in backend.follow_events("first"):
        if event["payload"].get("state") == "RUNNING":
            break
    submit(backend, "second", 2)
    english = {words: pai(*words) for words in (("list",), ("why", "second"), ("why", "second", "--json"))}
    assert "HELD BY" in english["why", "second"]

    monkeypatch.setenv("PAI_LANG", "zh_CN")
    why = pai("why", "second")
    assert "排第 1 位，共 1 个" in why
    assert "占用者" in why
    assert not ENGLISH_LINE.search(why), why
    asked = [json.loads(text) for text in (english["why", "second", "--json"], pai("why", "second", "--json"))]
    assert [set(each) for each in asked] == [set(asked[0])] * 2
    assert asked[0]["waiting"]["texts"] == asked[1]["waiting"]["texts"]

    rows = pai("list").splitlines()
    assert rows[0].split() == ["名称", "别名", "状态", "任务", "GPU", "提交时间", "原因"]
    waiting = next(row for row in rows if row.startswith("second"))
    said = waiting.rsplit("  ", 1)[-1]
    assert said.startswith("正在等待 2 个 GPU")
    assert not ENGLISH_LINE.search(said), said
    assert "等待" in waiting
    running = next(row for row in rows if row.startswith("first"))
    assert width(waiting[: waiting.index("等待")]) == width(running[: running.index("运行")])
    assert said in pai("show", "second")
    assert said in pai("status", "second")
    (row,) = [each for each in json.loads(pai("list", "--json")) if each["name"] == "second"]
    assert row["why"].startswith("waits for 2 GPU for 2 tasks at once: ")
    assert row["whyWording"]["template"] == "waits for {wanted}: {why}"
    assert english["list",] == pai("list", PAI_LANG="en", LC_ALL="zh_CN.UTF-8")

    assert pai("stop", "second") == "second：已要求停止\n" or "已停止" in pai("status", "second")
    assert pai("validate", "no-such-file", ends=2).startswith("pai: 无法读取 no-such-file：")
    page = job_html(backend.job("first"))
    assert ">任务<" in page
    assert "运行" in page

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "jupyter_pai")
    with capture_output() as shown:
        cell = shell.run_cell("%pai why first")
    assert cell.success, shown.stdout
    assert "它没有在等待" in repr(cell.result)


def run_with(variables: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[bytes]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PAI_", "PYTHON"))}
    command = [sys.executable, "-m", "jupyter_pai.cli", *words]
    return subprocess.run(command, env={**kept, **variables}, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("variables", "spoken"),
    [
        ({"LC_ALL": "C", "PAI_LANG": "zh_CN"}, "用法："),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PAI_LANG": "zh_CN"}, "usage:"),
        ({"PYTHONIOENCODING": "ascii", "PAI_LANG": "zh_CN"}, "usage:"),
        ({"PYTHONIOENCODING": "latin-1", "LANG": "zh_CN.UTF-8"}, "usage:"),
        ({"PYTHONIOENCODING": "gbk", "PAI_LANG": "zh_CN"}, "用法："),
    ],
)
def test_a_terminal_without_chinese_is_spoken_to_in_english(variables: dict[str, str], spoken: str) -> None:
    done = run_with(variables, "--help")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(variables.get("PYTHONIOENCODING", "utf-8")).startswith(spoken)
    refused = run_with(variables, "validate", "没有这个文件")
    assert refused.returncode == 2
    assert b"Traceback" not in refused.stderr


def test_notebooks_speak_the_language_of_jupyterlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = tmp_path / "@jupyterlab" / "translation-extension" / "plugin.jupyterlab-settings"
    plugin.parent.mkdir(parents=True)
    monkeypatch.setenv("JUPYTERLAB_SETTINGS_DIR", str(tmp_path))
    for name in ("PAI_LANG", *language.VARIABLES):
        monkeypatch.delenv(name, raising=False)
    for text, spoken in (
        ('{\n    // Translation\n    // "locale": "zh_CN"\n    "locale": "zh_CN"\n}', "zh_CN"),
        ('{\n    "locale": "default"\n}', "en"),
        ('{\n    // "locale": "zh_CN"\n    "locale": "fr_FR"\n}', "en"),
        ("not JSON", "en"),
    ):
        plugin.write_text(text, encoding="utf-8")
        InteractiveShell().run_line_magic("load_ext", "jupyter_pai")
        assert language.language() == spoken, text


@pytest.mark.parametrize("language_", ["en", "zh_CN"])
def test_help_reads_the_catalogue_in_chinese_only(language_: str) -> None:
    code = (
        "import builtins, io, pathlib\n"
        "opened = []\n"
        "was = io.open\n"
        "io.open = lambda file, *a, **k: (opened.append(str(file)), was(file, *a, **k))[1]\n"
        "from jupyter_pai.cli import parser\n"
        "parser().format_help()\n"
        "print(any('jupyter_pai.json' in each for each in opened))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PAI_LANG": language_},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == str(language_ == "zh_CN")
