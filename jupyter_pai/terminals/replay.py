"""What is left out of a replayed scrollback: queries, which the user's terminal would answer into the shell. Pure.

A terminal that is sent ``ESC [ 6 n`` types its cursor's position. In a replay the program that asked is long gone, and
the shell would read the answer as a command. Bells and writes to the clipboard have happened once, too.
Source of the sequences: ctlseqs, XTerm Control Sequences.
"""

from __future__ import annotations

import re

CLEAR = b"\x1bc"
"""Resets a terminal (RIS), its own scrollback included."""

_CSI, _OSC, _DCS = rb"(?:\x1b\[|\xc2\x9b)", rb"(?:\x1b\]|\xc2\x9d)", rb"(?:\x1bP|\xc2\x90)"
_PARTS = re.compile(
    rb"(?P<osc>" + _OSC + rb"(?P<text>[^\x07\x1b]*)(?:\x07|\x1b\\)?)"
    rb"|(?P<query>"
    + _CSI + rb"[?>=]?[\d;]*c"  # device attributes
    rb"|" + _CSI + rb"\??[\d;]*n"  # status and cursor position
    rb"|" + _CSI + rb"\??[\d;]*\$p"  # modes
    rb"|" + _CSI + rb">[\d;]*q"  # name and version
    rb"|" + _CSI + rb"\?u"  # keyboard protocol
    rb"|" + _CSI + rb"[\d;]*[tx]"  # window reports, terminal parameters
    rb"|" + _DCS + rb"[$+]q[^\x1b]*(?:\x1b\\)?"  # settings, termcap
    rb"|\x1bZ|\x05|\x07)"
)  # fmt: skip
_OSC_QUERY = re.compile(rb"(?:52;|(?:4|5|1\d|21|104);.*\?)", re.DOTALL)


def without_queries(scrollback: bytes) -> bytes:
    """The same output, which no terminal answers."""
    return _PARTS.sub(_kept, scrollback)


def _kept(found: re.Match[bytes]) -> bytes:
    text = found["text"]
    return b"" if text is None or _OSC_QUERY.match(text) else found[0]
