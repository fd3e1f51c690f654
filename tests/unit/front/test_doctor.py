"""The doctor's verdicts: what each program needs, as a table; facts read from odd answers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_pai.commands.connect import CLIENTS as WORDS_OF_THE_PARSER
from jupyter_pai.doctor import facts as fact
from jupyter_pai.doctor.clients import CLIENTS, verdict
from jupyter_pai.doctor.examining import report, report_text
from jupyter_pai.doctor.facts import TOOLS, Facts
from jupyter_pai.doctor.findings import WORDS, Finding
from jupyter_pai.doctor.outcome import Observations, Probe, StepOutcome
from jupyter_pai.doctor.running import OpenSshRoute, run

GIB = 1024**3
WHOLE = Facts(
    directory=PurePosixPath("/work"),
    home="/root",
    user="root",
    system="Linux",
    machine="x86_64",
    kernel=(5, 15, 0),
    glibc=(2, 31),
    libstdcxx=28,
    cores=4,
    memory_bytes=8 * GIB,
    disk_bytes=20 * GIB,
    tools=frozenset(TOOLS),
    python=(3, 10, 12),
    python_path="/usr/bin/python3",
    place="/tmp/pai-doctor.x",
    runs_programs=True,
    complete=True,
)
ALL_WORK = Observations(WHOLE, dict.fromkeys(Probe, StepOutcome(True)))
EVERYBODY = frozenset(CLIENTS)


def with_facts(**changes: object) -> Observations:
    return replace(ALL_WORK, facts=replace(WHOLE, **changes))  # type: ignore[arg-type]


def without(*probes: Probe) -> Observations:
    failed = dict.fromkeys(probes, StepOutcome(False, "Administratively prohibited."))
    return replace(ALL_WORK, outcomes={**ALL_WORK.outcomes, **failed})


def failing(seen: Observations) -> dict[str, list[str]]:
    """Programs that do not work, with the codes that keep them from it."""
    verdicts = [verdict(client, seen) for client in CLIENTS]
    return {
        each.client: [found.code for found in each.findings if found.blocking] for each in verdicts if not each.works
    }


def each(code: str, clients: Iterable[str]) -> dict[str, list[str]]:
    return {client: [code] for client in clients}


def test_a_whole_task_is_good_for_every_program() -> None:
    assert [verdict(client, ALL_WORK).findings for client in CLIENTS] == [()] * len(CLIENTS)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (without(Probe.LOGIN), each("no-login", EVERYBODY)),
        (without(Probe.SHELL), {"ssh": ["no-shell"], "putty": ["no-shell"]}),
        (without(Probe.EXACT), each("not-exact", ("ssh", "vscode", "pycharm", "jetbrains"))),
        (without(Probe.TERMINAL), each("no-terminal", ("ssh", "pycharm", "jetbrains"))),
        (without(Probe.HALF_CLOSE), {"ssh": ["no-half-close"]}),
        (without(Probe.MANY), {"pycharm": ["many"]}),
        (without(Probe.SFTP), each("no-sftp", ("sftp", "pycharm", "jetbrains"))),
        (without(Probe.SCP), {"scp": ["no-scp"]}),
        (without(Probe.SCP_LEGACY), {}),
        (without(Probe.RSYNC), {"rsync": ["rsync-failed"]}),
        (without(Probe.HELPERS), {"pycharm": ["no-helpers"]}),
        (without(Probe.TWO_CONNECTIONS), {"vscode": ["two-connections"]}),
        (without(Probe.INTO_TASK), each("no-into-task", ("vscode", "jetbrains"))),
        (without(Probe.OUT_OF_TASK), {}),
        (with_facts(kernel=(4, 15, 0)), {"vscode": ["old-kernel"]}),
        (with_facts(kernel=(4, 18)), {}),
        (with_facts(glibc=(2, 27)), {"vscode": ["old-glibc"]}),
        (with_facts(glibc=(2, 28)), {}),
        (with_facts(glibc=None, musl=True), each("musl", ("vscode", "jetbrains"))),
        (with_facts(glibc=None), each("no-glibc", ("vscode", "jetbrains"))),
        (with_facts(libstdcxx=24), {"vscode": ["old-libstdcxx"]}),
        (with_facts(libstdcxx=None), {"vscode": ["no-libstdcxx"]}),
        (with_facts(machine="riscv64"), each("wrong-system", ("vscode", "jetbrains"))),
        (with_facts(system="Darwin", machine="arm64", glibc=None, libstdcxx=None), {}),
        (with_facts(cores=1), {}),
        (with_facts(cores=None, memory_bytes=None), {}),
        (with_facts(memory_bytes=4 * GIB - 1), {"jetbrains": ["little-memory"]}),
        (with_facts(disk_bytes=5 * GIB - 1), {"jetbrains": ["little-disk"]}),
        (with_facts(disk_bytes=None), each("no-home", ("vscode", "pycharm", "jetbrains"))),
        (with_facts(tools=WHOLE.tools - {"tar"}), each("no-tool", ("vscode", "jetbrains"))),
        (with_facts(tools=WHOLE.tools - {"bash"}), {"vscode": ["no-tool"]}),
        (with_facts(tools=WHOLE.tools - {"curl"}), {}),
        (with_facts(tools=WHOLE.tools - {"curl", "wget"}), each("no-downloader", ("vscode", "jetbrains"))),
        (with_facts(tools=WHOLE.tools - {"rsync"}), {"rsync": ["no-rsync"]}),
        (with_facts(python=None), {"pycharm": ["no-python"]}),
        (with_facts(python=(3, 5, 2)), {"pycharm": ["old-python"]}),
        (with_facts(runs_programs=False), each("no-exec", ("vscode", "jetbrains"))),
        (
            with_facts(place=""),
            each("no-place", ("scp", "sftp", "rsync", "vscode", "pycharm", "jetbrains")),
        ),
    ],
)
def test_what_is_missing_fails_those_who_need_it(seen: Observations, expected: dict[str, list[str]]) -> None:
    assert failing(seen) == expected


@pytest.mark.parametrize(
    ("client", "seen", "code"),
    [
        ("scp", without(Probe.SCP_LEGACY), "no-scp-legacy"),
        ("pycharm", without(Probe.OUT_OF_TASK), "no-out-of-task"),
        ("jetbrains", with_facts(cores=1), "few-cores"),
        ("putty", without(Probe.SFTP), "no-sftp"),
    ],
)
def test_what_only_makes_it_worse_is_told_and_does_not_fail(client: str, seen: Observations, code: str) -> None:
    found = verdict(client, seen)
    assert found.works
    assert [(each.code, each.blocking) for each in found.findings] == [(code, False)]


def test_an_rsync_that_is_missing_here_does_not_fail_the_task() -> None:
    seen = replace(ALL_WORK, outcomes={**ALL_WORK.outcomes, Probe.RSYNC: StepOutcome(None, "There is none here.")})
    found = verdict("rsync", seen)
    assert found.works
    assert [each.code for each in found.findings] == ["rsync-untried"]


def test_a_step_that_could_not_be_tried_is_no_success() -> None:
    untried = Observations(WHOLE, {Probe.LOGIN: StepOutcome(True)})
    assert not any(verdict(client, untried).works for client in ("ssh", "vscode", "pycharm", "putty"))


@pytest.mark.parametrize("code", list(WORDS))
def test_every_finding_has_words_and_a_remedy_in_both_languages(code: str) -> None:
    values = {
        name: "7" for pair in WORDS[code].values() for text in pair for _, name, _, _ in Formatter().parse(text) if name
    }
    texts = Finding(code, values).texts
    assert set(texts) == {"en", "zh_CN"}
    for told in texts.values():
        assert told["what"]
        assert told["remedy"]
        assert "{" not in told["what"] + told["remedy"]
    assert re.search("[\u4e00-\u9fff]", texts["zh_CN"]["what"] + texts["zh_CN"]["remedy"])


def test_the_parser_knows_all_programs() -> None:
    assert list(WORDS_OF_THE_PARSER) == list(CLIENTS)


def test_a_report_says_what_to_change_and_what_was_left() -> None:
    seen = replace(with_facts(tools=WHOLE.tools - {"tar"}), left_behind="/tmp/pai-doctor.x")
    found = report(OpenSshRoute(Path("config"), "train"), seen, ["vscode", "sftp"])
    assert (found["alias"], found["works"], found["leftBehind"]) == ("train", False, "/tmp/pai-doctor.x")
    assert report_text(found) == (
        "does not work  VS Code, Cursor, Windsurf\n"
        "    There is no tar in the image.\n"
        "      -> Install tar in the image.\n"
        "works          sftp\n"
        "This could not be removed from the task: /tmp/pai-doctor.x"
    )
    assert "镜像里没有 tar。" in report_text(found, "zh_CN")
    assert report(OpenSshRoute(Path("config"), "train"), seen, ["sftp"])["works"]


def test_facts_are_read_whatever_else_is_printed() -> None:
    said = """Welcome!
pwd=/work=dir
home=/root
user=ada
system=Linux
machine=x86_64
kernel=5.15.0-91-generic
glibc=glibc 2.31
musl=/lib/ld-musl-x86_64.so.1
libstdcxx=28
libstdcxx=30
libstdcxx=30-gdb.py
cores=2
memory_kb=16384
memory_limit=max
memory_limit=9223372036854771712
home_free_kb=5
tool=tar
tool=bash
python=3.11.2
python_path=/usr/bin/python3
end=yes
place=/tmp/pai-doctor.Ab
place_free_kb=
runs=yes
"""
    assert fact.read(said) == Facts(
        directory=PurePosixPath("/work=dir"),
        home="/root",
        user="ada",
        system="Linux",
        machine="x86_64",
        kernel=(5, 15, 0),
        glibc=(2, 31),
        musl=False,
        libstdcxx=30,
        cores=2,
        memory_bytes=16384 * 1024,
        disk_bytes=5 * 1024,
        tools=frozenset({"tar", "bash"}),
        python=(3, 11, 2),
        python_path="/usr/bin/python3",
        place="/tmp/pai-doctor.Ab",
        runs_programs=True,
        complete=True,
    )


@given(st.text(max_size=300))
def test_no_answer_breaks_the_reading(text: str) -> None:
    assert fact.read(text).directory.is_absolute()
    fact.version(text)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_script_tells_of_this_machine(tmp_path: Path, shell: str) -> None:
    done = subprocess.run(
        [shell],
        input=fact.SYSTEM + fact.PLACE,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin:/sbin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
    )
    assert done.stderr == ""
    facts = fact.read(done.stdout)
    assert facts.complete
    assert facts.directory == PurePosixPath(tmp_path.resolve())
    assert {"bash", "tar"} <= facts.tools
    assert facts.disk_bytes
    assert facts.runs_programs
    assert Path(facts.place).parent == tmp_path.resolve()


def test_without_a_place_to_write_none_is_told(tmp_path: Path) -> None:
    """Every parent is tried; where none takes a file, nothing is left of the tries."""
    program = tmp_path / "mktemp"
    program.write_text("#!/bin/sh\necho full >&2\nexit 1\n")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(["sh"], input=fact.SYSTEM + fact.PLACE, capture_output=True, text=True, timeout=60, env=env)
    facts = fact.read(done.stdout)
    assert (facts.place, facts.runs_programs, facts.complete) == ("", False, True)


def test_a_program_that_hangs_is_ended_with_those_it_started(tmp_path: Path) -> None:
    fifo = tmp_path / "alive"
    subprocess.run(["mkfifo", str(fifo)], check=True)
    ran = run(["bash", "-c", f"(exec 3<>{fifo}; sleep 600) & wait"], limit_s=0.3)
    assert ran.code is None
    assert "took longer than" in ran.complaint
    assert (
        run(["no-such-program-here"]).complaint == "no-such-program-here cannot be run here: No such file or directory"
    )
