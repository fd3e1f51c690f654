"""Use a program at a terminal: a process of its own, for pexpect forks, which needs one thread only.

JSON on stdin: ``command`` and its arguments, and ``steps``: texts to type and texts to expect, in turn; the last is
expected. Writes what it saw, and the exit status in a last line.
"""

from __future__ import annotations

import json
import sys

import pexpect

TIMEOUT_S = 120


def main() -> None:
    """Fails with pexpect's account of the terminal where a text does not come."""
    asked = json.load(sys.stdin)
    program, *arguments = asked["command"]
    rows, columns = asked.get("size", (24, 80))
    child = pexpect.spawn(program, arguments, timeout=TIMEOUT_S, encoding="utf-8", dimensions=(rows, columns))
    child.logfile_read = sys.stdout
    for expected, typed in asked["steps"]:
        child.expect_exact(expected)
        if isinstance(typed, list):
            child.setwinsize(*typed)
        else:
            child.send(typed)
    child.expect(pexpect.EOF)
    child.close()
    print(f"\nstatus={child.exitstatus}")


if __name__ == "__main__":
    main()
