"""Protocol steps of SSH programs, done once each against a task. Each says whether it worked, and what it saw.

A probe changes nothing in the task outside of the directory that :mod:`facts` made for it.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyter_pai.doctor.facts import Facts
from jupyter_pai.doctor.forwarding import two_connections
from jupyter_pai.doctor.outcome import Probe, StepOutcome
from jupyter_pai.doctor.running import OpenSshRoute, ProgramExit, run

BULK_BYTES = 256 * 1024
"""More than a channel's window of OpenSSH's clients (2 MiB is their most, 64 KiB many others')."""

HELPERS = 20
"""Files of a helper upload; PyCharm brings some hundred, whose number changes only the time."""


@dataclass(frozen=True)
class Bench:
    """Where a probe works: the way to the task, what is known of it, and a directory on this machine."""

    way: OpenSshRoute
    facts: Facts
    here: Path


def _judged(worked: bool, ran: ProgramExit) -> StepOutcome:
    return StepOutcome(worked, "" if worked else ran.complaint)


def shell(bench: Bench) -> StepOutcome:
    """A login shell on a terminal, as a person uses it."""
    ran = run(bench.way.ssh("-tt", bench.way.alias), b"expr 40 + 2\nexit 7\n")
    return _judged(re.search(rb"[\r\n]42\r\n", ran.out) is not None and ran.code == 7, ran)


def exact(bench: Bench) -> StepOutcome:
    """A command without a terminal: its bytes exactly, both outputs apart, its exit status."""
    ran = bench.way.execute(r"printf 'a\000b\r\n'; printf 'err' >&2; exit 3")
    if ran.code == 3 and ran.out != b"a\0b\r\n":
        return StepOutcome(False, f"it printed {ran.out[:80]!r}")
    return _judged(ran.code == 3 and b"err" in ran.err, ran)


def terminal(bench: Bench) -> StepOutcome:
    """A command on a terminal, as JetBrains' programs ask what the system is."""
    ran = run(bench.way.ssh("-tt", bench.way.alias, "test -t 0 && test -t 1 && uname -s"))
    return _judged(ran.code == 0 and bench.facts.system.encode() in ran.out, ran)


def half_close(bench: Bench) -> StepOutcome:
    """Bytes in until their end, then bytes out until theirs: what ``git``, ``rsync`` and pipes of ``tar`` do."""
    data = secrets.token_bytes(BULK_BYTES)
    ran = bench.way.execute("cat", data)
    return _judged(ran.code == 0 and ran.out == data, ran)


def many(bench: Bench) -> StepOutcome:
    """Several commands one right after the other, each with a terminal of its own (PyCharm's interpreter)."""
    for number in range(3):
        ran = run(bench.way.ssh("-tt", bench.way.alias, f"exit {number}"))
        if ran.code != number:
            return _judged(False, ran)
    return StepOutcome(True)


def _file(bench: Bench, name: str) -> tuple[Path, bytes]:
    data = secrets.token_bytes(BULK_BYTES)
    path = bench.here / name
    path.write_bytes(data)
    return path, data


def sftp(bench: Bench) -> StepOutcome:
    """Put, rename, list, get and remove a file by SFTP."""
    path, data = _file(bench, "sftp")
    back, there = bench.here / "sftp.back", f"{bench.facts.place}/sftp"
    batch = (
        f'put "{path}" "{there}.part"\nrename "{there}.part" "{there}"\nls -l "{there}"\n'
        f'get "{there}" "{back}"\nrm "{there}"\n'
    )
    ran = run(bench.way.program("sftp", "-b", "-", bench.way.alias), batch.encode())
    return _judged(ran.code == 0 and back.read_bytes() == data, ran)


def _copied(bench: Bench, name: str, *options: str) -> StepOutcome:
    path, data = _file(bench, name)
    back, there = bench.here / f"{name}.back", f"{bench.way.alias}:{bench.facts.place}/{name}"
    ran = run(bench.way.program("scp", *options, str(path), there))
    if ran.code == 0:
        ran = run(bench.way.program("scp", *options, there, str(back)))
    return _judged(ran.code == 0 and back.read_bytes() == data, ran)


def scp(bench: Bench) -> StepOutcome:
    """Copy there and back by today's ``scp``, which speaks SFTP."""
    return _copied(bench, "scp")


def scp_legacy(bench: Bench) -> StepOutcome:
    """Copy there and back by the old protocol, which older clients speak; it needs ``scp`` in the task."""
    return _copied(bench, "scp-legacy", "-O")


def rsync(bench: Bench) -> StepOutcome:
    """A directory there by ``rsync``, where both sides have it."""
    if shutil.which("rsync") is None:
        return StepOutcome(None, "There is no rsync on this machine.")
    source = bench.here / "rsync"
    source.mkdir()
    (source / "file").write_bytes(b"synchronised")
    remote_shell = " ".join(f"'{word}'" for word in bench.way.ssh())
    there = f"{bench.way.alias}:{bench.facts.place}/rsync/"
    ran = run(["rsync", "-a", "-e", remote_shell, f"{source}/", there])
    seen = bench.way.execute(f'cat "{bench.facts.place}/rsync/file"')
    return _judged(ran.code == 0 and seen.out == b"synchronised", ran if ran.code else seen)


def helpers(bench: Bench) -> StepOutcome:
    """Many small files by SFTP, and one of them run there: how PyCharm brings its helpers."""
    source = bench.here / "helpers"
    source.mkdir()
    for number in range(HELPERS):
        (source / f"part_{number}.py").write_text(f"VALUE = {number}\n")
    (source / "main.py").write_text(f"import part_{HELPERS - 1}\nprint(part_{HELPERS - 1}.VALUE + 1)\n")
    batch = f'put -r "{source}" "{bench.facts.place}"\n'
    ran = run(bench.way.program("sftp", "-b", "-", bench.way.alias), batch.encode())
    if ran.code == 0 and "python3" in bench.facts.tools:
        ran = bench.way.execute(f'python3 -B "{bench.facts.place}/helpers/main.py"')
        return _judged(ran.out.strip() == str(HELPERS).encode(), ran)
    return _judged(ran.code == 0, ran)


def forwarding(bench: Bench) -> Mapping[Probe, StepOutcome]:
    """VS Code's two connections, and ports in both directions."""
    return two_connections(bench.way, bench.facts.place)


SINGLE: Mapping[Probe, Callable[[Bench], StepOutcome]] = {
    Probe.SHELL: shell,
    Probe.EXACT: exact,
    Probe.TERMINAL: terminal,
    Probe.HALF_CLOSE: half_close,
    Probe.MANY: many,
    Probe.SFTP: sftp,
    Probe.SCP: scp,
    Probe.SCP_LEGACY: scp_legacy,
    Probe.RSYNC: rsync,
    Probe.HELPERS: helpers,
}
"""Probes with one outcome each; :func:`forwarding` has the others."""

NEED_PLACE = frozenset({Probe.SFTP, Probe.SCP, Probe.SCP_LEGACY, Probe.RSYNC, Probe.HELPERS})
"""Probes that write a file in the task."""
