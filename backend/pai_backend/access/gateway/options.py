"""Settings of the gateway, apart from the code so that the configuration can read them without asyncssh."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

REKEY_BYTES = 1 << 30  # keys are exchanged again after this much (RFC 4253 §9: each gigabyte or each hour)
REKEY_S = 3600

Network = IPv4Network | IPv6Network


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

    max_unauthenticated: int = 512
    """Connections that have not logged in yet; with more, the oldest of a source that has most of them is closed."""

    max_unauthenticated_per_source: int = 64
    """Of these from one IPv4 address or IPv6 /64; with more, its oldest is closed."""

    proxies: tuple[Network, ...] = ()
    """Addresses of proxies of our own, which say by the PROXY protocol for whom they connect."""

    max_auth_tries: int = 24
    """Failed attempts to authenticate, such as unknown keys, after which a connection is ended."""

    max_logins_per_user: int = 4000
    """Connections of one user that are logged in at one process."""

    max_channels: int = 1000
    """Channels (sessions and forwarded connections) that one connection has open at a time."""

    connect_timeout_s: float = 15
    """From the first channel until the task's SSH server has let the gateway in."""

    drain_s: float = 10
    """After ``stop``: how long live connections may go on before they are ended."""

    old_clients: bool = False
    """Whether algorithms are offered, too, that only old clients need, and the ECDSA host key."""

    wait_s: float = 0
    """How long the login of a job that does not run yet waits for it; 0: it is told at once."""

    start_wait_s: float = 600
    """How long a login waits for the job that it has started again."""

    task_user: str = "root"
    """User name given to the task's SSH server: the local agent takes any, a container's sshd has root."""
