"""What runs on this machine, by command line."""

from __future__ import annotations

import psutil


def command_lines_with(text: str) -> list[str]:
    """Command lines of all processes that have this text; those of zombies have none."""
    lines = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    return [line for line in lines if text in line]
