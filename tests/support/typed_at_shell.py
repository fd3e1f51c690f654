"""Type lines with Tab at an interactive shell: a process of its own, for pexpect forks, which needs one thread only.

JSON on stdin: ``command`` and its arguments, the ``start`` line, ``lines`` of what is typed and what it becomes.
"""

from __future__ import annotations

import json
import sys

import pexpect

TIMEOUT_S = 120


def main() -> None:
    """Fails with pexpect's account of the terminal where a line does not become what it should."""
    asked = json.load(sys.stdin)
    program, *arguments = asked["command"]
    child = pexpect.spawn(program, arguments, timeout=TIMEOUT_S, encoding="utf-8", dimensions=(24, 200))
    child.sendline(asked["start"] + "; echo re''ady")
    child.expect("ready")
    for typed, completed in asked["lines"]:
        child.send(f"{typed}\t")
        child.expect_exact(completed)
        child.send("\x03")
    child.close(force=True)


if __name__ == "__main__":
    main()
