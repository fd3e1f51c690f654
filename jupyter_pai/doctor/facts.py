"""What a task's system is like, as a small script tells it. The reading is pure.

The script is plain POSIX shell and asks nothing of the image: what is missing there is an answer, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

TOOLS = ("bash", "curl", "git", "python3", "rsync", "scp", "tar", "wget")
"""Programs whose presence is asked for."""

SYSTEM = rf"""
LC_ALL=C; export LC_ALL
say() {{ printf '%s=%s\n' "$1" "$2"; }}
free_kb() {{ df -Pk "$1" 2>/dev/null | while read -r _ _ _ free _; do printf '%s\n' "$free"; done | tail -n 1; }}
say pwd "$(pwd)"
say home "${{HOME:-}}"
say user "$(id -un 2>/dev/null || id -u)"
say system "$(uname -s)"
say machine "$(uname -m)"
say kernel "$(uname -r)"
say glibc "$(getconf GNU_LIBC_VERSION 2>/dev/null)"
for file in /lib/ld-musl-*; do [ -e "$file" ] && say musl "$file"; done
for file in /lib/libstdc++.so.6.0.* /lib64/libstdc++.so.6.0.* /lib/*/libstdc++.so.6.0.* \
    /usr/lib/libstdc++.so.6.0.* /usr/lib64/libstdc++.so.6.0.* /usr/lib/*/libstdc++.so.6.0.*; do
    [ -e "$file" ] && say libstdcxx "${{file##*.so.6.0.}}"
done
say cores "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null)"
while read -r name kb _; do [ "$name" = MemTotal: ] && say memory_kb "$kb"; done 2>/dev/null </proc/meminfo
for file in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
    [ -r "$file" ] && read -r limit <"$file" && say memory_limit "$limit"
done
[ -n "${{HOME:-}}" ] && [ -w "$HOME" ] && say home_free_kb "$(free_kb "$HOME")"
for tool in {" ".join(TOOLS)}; do command -v "$tool" >/dev/null 2>&1 && say tool "$tool"; done
say python "$(python3 -c 'import sys; print(sys.version.split()[0])' 2>/dev/null)"
say debugger "${{PAI_DEBUG_DIR:+yes}}"
say python_path "$(command -v python3 2>/dev/null)"
say end yes
"""
"""Prints ``name=value`` lines and changes nothing."""

PLACE = r"""
for parent in "${TMPDIR:-/tmp}" /tmp "${HOME:-}" .; do
    [ -d "$parent" ] && place=$(mktemp -d "$parent/pai-doctor.XXXXXX" 2>/dev/null) || continue
    place=$(cd "$place" && pwd) || continue
    printf '#!/bin/sh\nexit 0\n' >"$place/program" 2>/dev/null && say place "$place" || { rm -rf "$place"; continue; }
    say place_free_kb "$(free_kb "$place")"
    chmod 700 "$place/program" && "$place/program" 2>/dev/null && say runs yes
    break
done
"""
"""Behind :data:`SYSTEM`: makes a directory for the probes, where a file can be written at all."""


_ROOT = PurePosixPath("/")


@dataclass(frozen=True)
class Facts:
    """A task's system. Numbers are None and texts empty where the task does not tell; ``place`` is for probes."""

    directory: PurePosixPath = _ROOT
    home: str = ""
    user: str = ""
    system: str = ""
    machine: str = ""
    kernel: tuple[int, ...] | None = None
    glibc: tuple[int, ...] | None = None
    musl: bool = False
    libstdcxx: int | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    tools: frozenset[str] = field(default_factory=frozenset)
    python: tuple[int, ...] | None = None
    python_path: str = ""
    debugger: bool = False
    place: str = ""
    place_bytes: int | None = None
    runs_programs: bool = False
    complete: bool = False


def version(text: str) -> tuple[int, ...] | None:
    """The leading numbers of a version: ``5.15.0-91-generic`` is (5, 15, 0); None when there are none."""
    found = re.match(r"\d+(?:\.\d+)*", text, re.ASCII)
    return tuple(map(int, found[0].split("."))) if found else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _kilobytes(text: str) -> int | None:
    number = _number(text)
    return None if number is None else number * 1024


def read(text: str) -> Facts:
    """Facts from what the scripts printed. Lines that they did not print change nothing."""
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            said.setdefault(name.strip(), []).append(value.strip())

    def last(name: str) -> str:
        return said.get(name, [""])[-1]

    limits = [_number(each) for each in said.get("memory_limit", [])] + [_kilobytes(last("memory_kb"))]
    revisions = [number for number in map(_number, said.get("libstdcxx", [])) if number is not None]
    directory = last("pwd")
    return Facts(
        directory=PurePosixPath(directory if directory.startswith("/") else "/"),
        home=last("home"),
        user=last("user"),
        system=last("system"),
        machine=last("machine"),
        kernel=version(last("kernel")),
        glibc=version(last("glibc").rpartition(" ")[2]),
        musl="musl" in said and not last("glibc"),
        libstdcxx=max(revisions, default=None),
        cores=_number(last("cores")),
        memory_bytes=min((limit for limit in limits if limit), default=None),
        disk_bytes=_kilobytes(last("home_free_kb")),
        tools=frozenset(said.get("tool", ())),
        python=version(last("python")),
        python_path=last("python_path"),
        debugger=last("debugger") == "yes",
        place=last("place"),
        place_bytes=_kilobytes(last("place_free_kb")),
        runs_programs=last("runs") == "yes",
        complete=last("end") == "yes",
    )
