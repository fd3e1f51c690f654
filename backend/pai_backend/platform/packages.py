"""Which installed packages make this a backend: the distribution's extra ``backend``. Clients do without them."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution, requires

INSTALL = "pip install 'jupyter-pai[backend]'"
"""Adds what serves to a client."""


def missing_packages() -> list[str]:
    """The packages of the extra that are not installed. Empty when run from bare sources."""
    try:
        stated = requires("jupyter-pai") or []
    except PackageNotFoundError:
        return []
    texts = [text for text in stated if re.search(r"""extra == ["']backend["']""", text)]
    names = [re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0] for text in texts]
    return [name for name in names if not _installed(name)]


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
