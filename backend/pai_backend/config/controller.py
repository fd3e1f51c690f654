"""The keys of the controller's own port."""

from __future__ import annotations

from pydantic import Field

from pai_backend.model.base import Model


class ControllerSettings(Model):
    """The controller's own port, for Prometheus and probes."""

    metrics_host: str = Field(default="127.0.0.1", description="Address to listen on for `metrics_port`.")
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port of the controller's `/metrics`, `/healthz` and `/readyz` over HTTP, without authentication: "
        "its figures name virtual clusters and users. 0: none.",
    )
