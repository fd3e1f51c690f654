"""Settings of the gateway, apart from the code so that the configuration can read them without asyncssh."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GatewayOptions:
    """Where the gateway listens and what it bounds. Times are seconds."""

    host: str = "127.0.0.1"
    port: int = 2222
    """0 takes any free port; ``ready`` tells which."""

    login_timeout_s: float = 30
    """From the first byte to the end of authentication."""

    keepalive_s: float = 30
    keepalive_count: int = 4
    """A silent peer is asked every ``keepalive_s`` and dropped after this many unanswered questions."""

    max_unauthenticated: int = 64
    """Connections that have not logged in yet; more are closed at once."""

    connect_timeout_s: float = 15
    """From the first channel until the task's SSH server has let the gateway in."""

    drain_s: float = 10
    """After ``stop``: how long live connections may go on before they are ended."""

    task_user: str = "root"
    """User name given to the task's SSH server: the local agent takes any, a container's sshd has root."""
