"""Finds the lines that match a regular expression: run by ``line_search`` as a program, without any package.

The first line of standard input is JSON that says what is wanted, the rest is searched. Colours of a terminal are not
part of a line.
"""

import json
import re
import resource
import sys

LINE_BYTES = 65_536  # of a line that are searched: a progress bar may be one line of megabytes
SHOWN = 300
COLOUR = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


def shown(text: str, start: int) -> str:
    """The part of a line around its match."""
    first = max(0, start - SHOWN // 3)
    return ("…" if first else "") + text[first : first + SHOWN] + ("…" if len(text) > first + SHOWN else "")


def found(expression: "re.Pattern[str]", data: bytes, most: int) -> list[tuple[int, int, str]]:
    """Offset, end and text of each line that matches."""
    matches: list[tuple[int, int, str]] = []
    at = 0
    while at < len(data) and len(matches) < most:
        end = data.find(b"\n", at) + 1 or len(data)
        line = data[at : min(end, at + LINE_BYTES)].rstrip(b"\r\n")
        text = COLOUR.sub(b"", line).decode("utf-8", "replace")
        match = expression.search(text)
        if match is not None:
            matches.append((at, end, shown(text, match.start())))
        at = end
    return matches


def main() -> None:
    """Read, search, answer."""
    asked = json.loads(sys.stdin.buffer.readline())
    resource.setrlimit(resource.RLIMIT_CPU, (asked["cpuS"], asked["cpuS"]))
    resource.setrlimit(resource.RLIMIT_AS, (asked["memoryBytes"], asked["memoryBytes"]))
    try:
        expression = re.compile(asked["pattern"], re.IGNORECASE if asked["ignoreCase"] else 0)
        answer: dict[str, object] = {"matches": found(expression, sys.stdin.buffer.read(), asked["most"])}
    except (re.error, RecursionError, OverflowError) as error:
        answer = {"error": str(error)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
