"""Which program needs what of a task, and whether this task has it. Pure: a verdict is a function of observations.

Numbers come from the programs' own documentation and are named beside each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jupyter_pai.doctor.findings import Finding
from jupyter_pai.doctor.outcome import Observations, Probe

GIB = 1024**3

VSCODE_KERNEL, VSCODE_GLIBC, VSCODE_LIBSTDCXX = (4, 18), (2, 28), 25
"""Source: VS Code, "Remote Development with Linux": kernel >= 4.18, glibc >= 2.28, libstdc++ >= 3.4.25."""

JETBRAINS_CORES, JETBRAINS_MEMORY_BYTES, JETBRAINS_DISK_BYTES = 2, 4 * GIB, 5 * GIB
"""Source: JetBrains, "Remote development: system requirements": 2 cores, 4 GB of memory, 5 GB of disk, glibc."""

PYCHARM_PYTHON = (3, 6)
"""Source: JetBrains, "PyCharm: Python support": the oldest Python whose debugger still comes with PyCharm."""

MACHINES = frozenset({"x86_64", "amd64", "aarch64", "arm64"})

Rule = Callable[[Observations], Iterator[Finding]]

_CODES = {
    Probe.LOGIN: "no-login",
    Probe.SHELL: "no-shell",
    Probe.EXACT: "not-exact",
    Probe.TERMINAL: "no-terminal",
    Probe.HALF_CLOSE: "no-half-close",
    Probe.MANY: "many",
    Probe.SFTP: "no-sftp",
    Probe.SCP: "no-scp",
    Probe.SCP_LEGACY: "no-scp-legacy",
    Probe.RSYNC: "rsync-failed",
    Probe.HELPERS: "no-helpers",
    Probe.TWO_CONNECTIONS: "two-connections",
    Probe.INTO_TASK: "no-into-task",
    Probe.OUT_OF_TASK: "no-out-of-task",
}


@dataclass(frozen=True)
class ClientVerdict:
    """Whether a program will work; findings that block come first."""

    client: str
    name: str
    works: bool
    findings: tuple[Finding, ...]


def _step(seen: Observations, probe: Probe, *, needed: bool) -> Iterator[Finding]:
    outcome = seen.outcome(probe)
    if outcome.worked is False:
        yield Finding(_CODES[probe], {"detail": outcome.detail}, blocking=needed)
    elif outcome.worked is None:
        yield Finding("untried", {"detail": outcome.detail}, blocking=needed)


def _steps(seen: Observations, *probes: Probe) -> Iterator[Finding]:
    for probe in probes:
        yield from _step(seen, probe, needed=True)


def _writes(seen: Observations) -> Iterator[Finding]:
    """A place to write is asked for once, not once for each step that could not be tried without it."""
    if not seen.facts.place:
        yield Finding("no-place")


def _bytes(count: int) -> str:
    return f"{count / GIB:.1f} GiB"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _libc(seen: Observations, oldest: tuple[int, ...] | None) -> Iterator[Finding]:
    facts = seen.facts
    if facts.musl:
        yield Finding("musl")
    elif facts.glibc is None:
        yield Finding("no-glibc")
    elif oldest is not None and facts.glibc < oldest:
        yield Finding("old-glibc", {"found": _dotted(facts.glibc), "needed": _dotted(oldest)})


def _machine(seen: Observations) -> Iterator[Finding]:
    facts = seen.facts
    if facts.system not in ("Linux", "Darwin") or facts.machine not in MACHINES:
        yield Finding("wrong-system", {"system": facts.system, "machine": facts.machine})


def _tools(seen: Observations, *tools: str) -> Iterator[Finding]:
    for tool in tools:
        if tool not in seen.facts.tools:
            yield Finding("no-tool", {"tool": tool})


def _downloader(seen: Observations) -> Iterator[Finding]:
    if not seen.facts.tools & {"curl", "wget"}:
        yield Finding("no-downloader")


def _runs(seen: Observations) -> Iterator[Finding]:
    facts = seen.facts
    if facts.place and not facts.runs_programs:
        yield Finding("no-exec", {"place": facts.place.rpartition("/")[0] or "/"})


def _home(seen: Observations, disk_bytes: int | None) -> Iterator[Finding]:
    facts = seen.facts
    if facts.disk_bytes is None:
        yield Finding("no-home", {"home": facts.home})
    elif disk_bytes is not None and facts.disk_bytes < disk_bytes:
        yield Finding("little-disk", {"found": _bytes(facts.disk_bytes), "needed": _bytes(disk_bytes)})


def _ssh(seen: Observations) -> Iterator[Finding]:
    yield from _steps(seen, Probe.SHELL, Probe.EXACT, Probe.TERMINAL, Probe.HALF_CLOSE)


def _scp(seen: Observations) -> Iterator[Finding]:
    yield from _writes(seen)
    if seen.facts.place:
        yield from _step(seen, Probe.SCP, needed=True)
        yield from _step(seen, Probe.SCP_LEGACY, needed=False)


def _sftp(seen: Observations) -> Iterator[Finding]:
    yield from _writes(seen)
    if seen.facts.place:
        yield from _step(seen, Probe.SFTP, needed=True)


def _rsync(seen: Observations) -> Iterator[Finding]:
    yield from _writes(seen)
    if "rsync" not in seen.facts.tools:
        yield Finding("no-rsync")
    elif seen.facts.place:
        outcome = seen.outcome(Probe.RSYNC)
        if outcome.worked is None:
            yield Finding("rsync-untried", blocking=False)
            yield from _steps(seen, Probe.HALF_CLOSE)
        yield from (found for found in _step(seen, Probe.RSYNC, needed=True) if found.code != "untried")


def _vscode(seen: Observations) -> Iterator[Finding]:
    facts = seen.facts
    yield from _steps(seen, Probe.EXACT, Probe.INTO_TASK)
    yield from _writes(seen)
    if facts.place:
        yield from _step(seen, Probe.TWO_CONNECTIONS, needed=True)
    yield from _machine(seen)
    yield from _tools(seen, "bash", "tar")
    yield from _downloader(seen)
    yield from _runs(seen)
    yield from _home(seen, None)
    if facts.system != "Linux":
        return
    yield from _libc(seen, VSCODE_GLIBC)
    if facts.kernel is not None and facts.kernel < VSCODE_KERNEL:
        yield Finding("old-kernel", {"found": _dotted(facts.kernel), "needed": _dotted(VSCODE_KERNEL)})
    if facts.libstdcxx is None:
        yield Finding("no-libstdcxx")
    elif facts.libstdcxx < VSCODE_LIBSTDCXX:
        yield Finding("old-libstdcxx", {"found": str(facts.libstdcxx), "needed": str(VSCODE_LIBSTDCXX)})


def _pycharm(seen: Observations) -> Iterator[Finding]:
    facts = seen.facts
    yield from _steps(seen, Probe.EXACT, Probe.TERMINAL, Probe.MANY)
    yield from _sftp(seen)
    if facts.python is None:
        yield Finding("no-python")
    elif facts.python < PYCHARM_PYTHON:
        yield Finding("old-python", {"found": _dotted(facts.python), "needed": _dotted(PYCHARM_PYTHON)})
    if facts.place:
        yield from _step(seen, Probe.HELPERS, needed=True)
    yield from _home(seen, None)
    yield from _step(seen, Probe.OUT_OF_TASK, needed=False)
    yield from _step(seen, Probe.INTO_TASK, needed=False)


def _jetbrains(seen: Observations) -> Iterator[Finding]:
    facts = seen.facts
    yield from _steps(seen, Probe.EXACT, Probe.TERMINAL, Probe.INTO_TASK)
    yield from _sftp(seen)
    yield from _machine(seen)
    if facts.system == "Linux":
        yield from _libc(seen, None)
    yield from _tools(seen, "tar")
    yield from _downloader(seen)
    yield from _runs(seen)
    yield from _home(seen, JETBRAINS_DISK_BYTES)
    if facts.memory_bytes is not None and facts.memory_bytes < JETBRAINS_MEMORY_BYTES:
        found, needed = _bytes(facts.memory_bytes), _bytes(JETBRAINS_MEMORY_BYTES)
        yield Finding("little-memory", {"found": found, "needed": needed})
    if facts.cores is not None and facts.cores < JETBRAINS_CORES:
        values = {"found": str(facts.cores), "needed": str(JETBRAINS_CORES)}
        yield Finding("few-cores", values, blocking=False)


def _putty(seen: Observations) -> Iterator[Finding]:
    yield from _steps(seen, Probe.SHELL)
    for found in _sftp(seen):
        yield Finding(found.code, found.values, blocking=False)


CLIENTS: dict[str, tuple[str, Rule]] = {
    "ssh": ("OpenSSH", _ssh),
    "scp": ("scp", _scp),
    "sftp": ("sftp", _sftp),
    "rsync": ("rsync", _rsync),
    "vscode": ("VS Code, Cursor, Windsurf", _vscode),
    "pycharm": ("PyCharm (interpreter, deployment, debugger)", _pycharm),
    "jetbrains": ("JetBrains Gateway, Toolbox", _jetbrains),
    "putty": ("PuTTY, xshell, WinSCP", _putty),
}
"""Programs by the word that asks for them, with the name that is shown."""


def verdict(client: str, seen: Observations) -> ClientVerdict:
    """Whether one program will work. Where login is not possible, nothing else is said."""
    name, rule = CLIENTS[client]
    login = (seen.cause,) if seen.cause is not None else tuple(_step(seen, Probe.LOGIN, needed=True))
    findings = login or tuple(sorted(rule(seen), key=lambda found: not found.blocking))
    return ClientVerdict(client, name, not any(found.blocking for found in findings), findings)
