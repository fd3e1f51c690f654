"""How many files and sockets this process may have open. Every connection is one."""

from __future__ import annotations

import resource

MOST = 65_536
"""More are never needed; some kernels allow a thousand million, and programs that close all take hours then."""

_FIRST = resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_limit() -> int:
    """Raise the soft limit as far as this process may; what it is now.

    It is 1,024 by habit, for programs that use select(2), so tasks get back the one that this process began with.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):  # macOS allows less than it says
        return soft
    return wanted


def first_limit() -> int:
    """The soft limit that this process was started with."""
    return _FIRST
