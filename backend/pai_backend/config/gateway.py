"""The keys of the SSH gateway: where it listens, and what it bounds."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Self

from pydantic import Field, model_validator

from pai_backend.model.base import Model


class GatewaySettings(Model):
    """The SSH gateway."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port to listen on; 0 means a free one from 2222 to 2421, kept over restarts.",
    )
    public_host: str | None = Field(default=None, description="Host name users give to ssh, when it is not `host`.")
    public_port: int | None = Field(
        default=None, ge=1, le=65535, description="Port users give to ssh, when it is not `port`."
    )
    login_timeout_s: float = Field(default=30, gt=0, description="Seconds in which a login must be complete.")
    keepalive_s: float = Field(default=30, gt=0, description="Seconds between keep-alive messages.")
    keepalive_count: int = Field(default=4, ge=1, description="Unanswered keep-alives after which a client is gone.")
    max_unauthenticated: int = Field(
        default=512,
        ge=1,
        description="Connections that have not logged in yet, in all. When there are more, the oldest of a "
        "source that has most of them is closed.",
    )
    max_unauthenticated_per_source: int = Field(
        default=64,
        ge=1,
        description="Of these from one IPv4 address or one /64 of IPv6. When there are more, the oldest is closed.",
    )
    proxies: tuple[IPv4Network | IPv6Network, ...] = Field(
        default=(),
        description="Addresses or networks of proxies in front of the gateway, such as `10.0.0.7` or `10.1.0.0/16`. "
        "They must send the PROXY protocol (version 1 or 2); limits and logs then are of their clients. Other "
        "connections must not send it.",
    )
    max_auth_tries: int = Field(default=24, ge=1, description="Rejected keys after which a connection is closed.")
    max_logins_per_user: int = Field(
        default=4000, ge=1, description="Connections that one user may have open at one process of the gateway."
    )
    max_channels: int = Field(
        default=1000, ge=1, description="Sessions and forwarded connections that one connection may have open."
    )
    old_clients: bool = Field(
        default=False,
        description="Whether to offer algorithms that clients of before 2018 need: NIST curves, Diffie-Hellman group "
        "14, MACs of the plaintext, and the ECDSA host key. ssh-audit warns of them.",
    )
    wait_s: float = Field(
        default=0,
        ge=0,
        le=86_400,
        description="Seconds that a login to a job that does not run yet waits for it, told how it stands; 0: it is "
        "refused with the reason.",
    )
    start_wait_s: float = Field(
        default=600,
        gt=0,
        le=86_400,
        description="Seconds that a login waits for a job that it has started again (`startOnLogin`). The job goes on "
        "when the time is up.",
    )
    drain_s: float = Field(
        default=10,
        ge=0,
        le=86_400,
        description="Seconds that open connections may last after the gateway is asked to stop.",
    )
    processes: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Processes of the gateway that share its port; with more than one, `port` must be given.",
    )

    metrics_host: str = Field(default="127.0.0.1", description="Address to listen on for `metrics_port`.")
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port of the gateway's Prometheus metrics over HTTP, without authentication; of several processes "
        "the second has the next port, and so on. 0: none.",
    )

    @model_validator(mode="after")
    def _ports_of_processes(self) -> Self:
        if self.processes > 1 and not self.port:
            raise ValueError("processes: more than one needs gateway.port, which they share")
        if self.metrics_port and self.metrics_port + self.processes - 1 > 65535:
            raise ValueError("metrics_port: there must be one below 65536 for each of gateway.processes")
        return self
