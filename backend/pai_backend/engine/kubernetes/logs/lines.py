"""Output with times, as a kubelet gives it with ``timestamps=true``: the output alone, from a position on.

A kubelet begins its answer, and each line, with the time at which the container's runtime took the line; a line that
was written in several parts has one. These times tell where to go on after a break, whatever the kubelet has rotated
away meanwhile, and tell output from what a kubelet says in its place when it cannot go on.
Source: k8s.io/cri-client v0.34, pkg/logs; k8s.io/kubernetes v1.34, pkg/kubelet/kuberuntime. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

STAMP_MAX: Final = 36  # bytes of a time with its space
_SECOND: Final = 19  # bytes of a time up to its seconds
WORDS_MAX: Final = 2000  # bytes that are read of what a kubelet says
MARGIN: Final = timedelta(seconds=10)
"""How far a node's clock may have been set back so that lines since then are still found by time."""

_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d)) ")
_WORDS: Final = re.compile(
    rb"(?:failed to (?:create fsnotify watcher|watch directory|reset seek in log file|read log file|open log file"
    rb"|try resolving symlinks in path)|rpc error: code = |unable to retrieve container logs for )[^\n]{0,2000}\Z"
)
"""How a kubelet begins what it says where output should go on; only in a line that has no end is there a doubt."""


@dataclass(frozen=True)
class Position:
    """A place in the output of a container: ``end`` is the offset of the next byte.

    The last line that was read, wholly or in part, has the time ``stamp`` (empty: none was), is the ``nth`` of those
    that have it one after the other, and ``inside`` of its bytes were read.
    """

    end: int = 0
    stamp: bytes = b""
    nth: int = 0
    inside: int = 0

    @property
    def since(self) -> str:
        """The time from which a kubelet must give its lines so that those after this place are among them."""
        moment = datetime.fromisoformat(self.stamp.decode("ascii")) - MARGIN
        return moment.replace(microsecond=0).isoformat().replace("+00:00", "Z")


class Lines:
    """An answer of a kubelet that is read from ``after`` on.

    ``growing``: it is one that follows. ``cut``: it was asked for from a time on, so that it may begin inside a line.
    """

    def __init__(self, after: Position, *, growing: bool = False, cut: bool = False) -> None:
        self.position = after
        self.searching = bool(after.stamp)
        self.words = b""
        self._target = after
        self.growing = growing
        self._cut = cut
        self._rest = b""  # not yet told whether it is a time, output or words
        self._begins = True  # a time may come next
        self._skip = 0  # bytes of the line found that were read before
        self._stamp, self._nth = b"", 0
        self._times: list[tuple[int, int]] = []
        self._timed = b""  # the second that the last of these is in

    def take_times(self) -> list[tuple[int, int]]:
        """When what was fed since the last call was taken by the runtime, one a second: offsets and milliseconds."""
        taken, self._times = self._times, []
        return taken

    def feed(self, chunk: bytes) -> bytes:
        """The output in this part of the answer that was not read before."""
        if self.words:
            self.words = (self.words + chunk)[:WORDS_MAX]
            return b""
        data, self._rest = self._rest + chunk, b""
        fresh: list[bytes] = []
        at = 0
        while at < len(data) and not self.words:
            at = self._head(data, at) if self._begins else self._body(data, at, fresh)
        return b"".join(fresh)

    def finish(self) -> None:
        """The answer has ended: what is in doubt are the kubelet's words."""
        if self._rest and not self.words:
            self.words = self._rest
        self._rest = b""

    def _head(self, data: bytes, at: int) -> int:
        """Read a line's time; where to go on."""
        found = _STAMP.match(data, at)
        if found is not None:
            self._nth = self._nth + 1 if found[1] == self._stamp else 1
            self._stamp, self._begins, self._cut = found[1], False, False
            self._look()
            return found.end()
        if len(data) - at < STAMP_MAX and b"\n" not in data[at:]:
            self._rest = data[at:]
        elif self._cut:
            # The end of a line that began before the time that was asked for: it was read.
            self._begins = self._cut = False
            return at
        else:
            self.words = data[at:]
        return len(data)

    def _look(self) -> None:
        if not self.searching:
            self.position = replace(self.position, stamp=self._stamp, nth=self._nth, inside=0)
            if self._stamp[:_SECOND] != self._timed:
                self._timed = self._stamp[:_SECOND]
                moment = datetime.fromisoformat(self._stamp.decode("ascii"))
                self._times.append((self.position.end, int(moment.timestamp() * 1000)))
        elif (self._stamp, self._nth) == (self._target.stamp, self._target.nth):
            self.searching, self._skip = False, self._target.inside

    def _body(self, data: bytes, at: int, fresh: list[bytes]) -> int:
        """Read a line up to its end, or as far as it has come; where to go on."""
        newline = data.find(b"\n", at)
        self._begins = newline >= 0
        end = newline + 1 if self._begins else len(data)
        piece = data[at:end]
        if self.growing and not self._begins and (doubt := _WORDS.search(piece)) is not None:
            self._rest = piece[doubt.start() :]
            piece = piece[: doubt.start()]
        if not self.searching:
            known = min(self._skip, len(piece))
            self._skip -= known
            self._take(piece[known:], fresh)
        return end

    def _take(self, piece: bytes, fresh: list[bytes]) -> None:
        if piece:
            fresh.append(piece)
            place = self.position
            self.position = replace(place, end=place.end + len(piece), inside=place.inside + len(piece))
