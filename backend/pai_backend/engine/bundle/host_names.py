"""DNS labels made of any text, and the names that the tasks of a job have for each other.

A text that is a label stays as it is; any other becomes a slug, ``-x`` and 20 hexadecimal digits of its SHA-256, and
nothing else ends so: different texts have different names. Source: RFC 1035 (labels, 63 characters).
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from pai_backend.model.labels import is_label_value

LABEL_MAX: Final = 63
_PLAIN = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?", re.ASCII)
_HASHED = re.compile(r".*x[0-9a-f]{20}", re.DOTALL)
_UNSAFE = re.compile(r"[^a-z0-9]+", re.ASCII)


def dns_label(text: str, longest: int = LABEL_MAX) -> str:
    """A DNS label that begins with a letter, for ``text`` alone; ``text`` itself where it is one."""
    if len(text) <= longest and _PLAIN.fullmatch(text) and not _HASHED.fullmatch(text):
        return text
    return _hashed(text, longest)


def host_name(role: str, index: int) -> str:
    """What a task's machine is called within its job, ``worker-0``; the same for every run of this slot.

    On the pod network it is the task's address: known before there is a pod, and shorter than a number would be.
    """
    tail = f"-{index}"
    return dns_label(role, LABEL_MAX - len(tail)) + tail


def _hashed(text: str, longest: int) -> str:
    digest = "x" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]
    words = _UNSAFE.sub("-", text.lower()).strip("-").lstrip("0123456789-")
    words = words[: longest - len(digest) - 1].rstrip("-")
    return f"{words}-{digest}" if words else digest


def label_value(text: str) -> str:
    """``text`` as the value of a label; where it cannot be one, a slug and a digest of it."""
    if is_label_value(text) and not _HASHED.fullmatch(text):
        return text
    return _hashed(text, LABEL_MAX)
