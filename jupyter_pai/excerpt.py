"""Which lines of a faulty document may be repeated beside its faults: none that may hold a secret. Pure.

What a terminal or a notebook shows is kept and passed on, so a line of ``secrets`` is not repeated. A faulty document
has no tree to find them in. So this looks at lines, and where it is wrong it hides too much: everything from a key that
begins like ``secret`` to the next key of a document's top level, and every line that names a password, a token or a
key outright.
"""

from __future__ import annotations

import re
from typing import Final

_TOP_LEVEL: Final = (
    "protocolVersion|protocol_version|name|type|version|contributor|description|prerequisites|parameters|jobRetryCount"
    "|taskRoles|deployments|defaults|extras"
)
_BEGIN = re.compile(r"""(?<![\w.$-])["']?secret\w*["']?[ \t]*:""", re.IGNORECASE)
_END = re.compile(rf"""[ \t]*["']?(?:{_TOP_LEVEL})["']?[ \t]*:""")
_NAMED = re.compile(
    r"""(?:passw(?:or)?d|passphrase|pwd|token|secret|credentials?|key)["']?[ \t]*[:=](?!=)""", re.IGNORECASE
)


def lines_to_show(source: str) -> list[str | None]:
    """The lines of a document in order, with None for each that must not be repeated in a message."""
    found: list[str | None] = []
    inside: int | None = None  # the indentation of the key that began a part with secrets
    for line in source.splitlines():
        if inside is not None and _END.match(line) and _indentation(line) <= inside:
            inside = None
        if inside is None and _BEGIN.search(line):
            inside = _indentation(line)
        found.append(line if inside is None and not _NAMED.search(line) else None)
    return found


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip(" \t"))
