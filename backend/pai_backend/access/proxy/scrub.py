"""Taking a Jupyter server's token out of the pages it sends, while they stream. Pure.

Jupyter writes its token into its own pages: ``"token": "…"`` in the page configuration (JupyterLab, Notebook 7)
and ``data-jupyter-api-token="…"`` (classic pages); tried with notebook 7.6 and jupyterlab 4.6. The proxy signs
the user in, so the browser needs none. The emptied places are padded with blanks: lengths stay as announced.
"""

from __future__ import annotations

import json
import re
from urllib.parse import quote

LONG_TOKEN = 16  # characters; such a token is no ordinary text, so every occurrence is the token


class TokenScrubber:
    """Removes one token from a stream of bytes; what might be the beginning of it is held back until it is clear."""

    def __init__(self, token: str) -> None:
        self._swaps = dict(_swaps(token))
        longest_first = sorted(self._swaps, key=len, reverse=True)
        self._needles = re.compile(b"|".join(map(re.escape, longest_first)))
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """The next bytes of the page that may be passed on."""
        data, clear = self._held + data, []
        while True:
            hold = len(data) - max(_overlap(data, needle) for needle in self._swaps)
            found = self._needles.search(data)
            if found is None or found.start() >= hold:  # a find in what is held may be part of a longer one
                break
            clear += [data[: found.start()], self._swaps[found[0]]]
            data = data[found.end() :]
        self._held = data[hold:]
        return b"".join([*clear, data[:hold]])

    def flush(self) -> bytes:
        """What was held back, at the end of the page."""
        rest, self._held = self._held, b""
        return self._needles.sub(lambda found: self._swaps[found[0]], rest)


def _swaps(token: str) -> list[tuple[bytes, bytes]]:
    plain = json.dumps(token)
    # As jinja2's tojson filter writes text into a page.
    page = plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("'", "\\u0027")
    needles = [f'"token":{gap}{text}' for text in {plain: 0, page: 0} for gap in (" ", "")]
    swaps = [(needle, needle[: needle.index(":") + 1] + '""') for needle in needles]
    swaps.append((f'data-jupyter-api-token="{quote(token)}"', 'data-jupyter-api-token=""'))
    if len(token) >= LONG_TOKEN:
        swaps.append((token, ""))
    return [(needle.encode(), blank.ljust(len(needle)).encode()) for needle, blank in swaps]


def _overlap(data: bytes, needle: bytes) -> int:
    """How many bytes at the end of ``data`` could begin ``needle``."""
    for size in range(min(len(needle) - 1, len(data)), 0, -1):
        if data.endswith(needle[:size]):
            return size
    return 0
