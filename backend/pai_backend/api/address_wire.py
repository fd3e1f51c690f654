"""Workspace names on the wire."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pai_backend.api.wire import Camel
from pai_backend.model.base import Model
from pai_backend.model.job import State


class AddressService(Camel):
    """A service that answers at a workspace name."""

    label: str
    url: str
    path_url: str


class AddressWire(Camel):
    """A workspace name of the caller's, and the job that holds it now."""

    name: str
    alias: str = Field(
        description="What it is called in host names and by the gateway's other users: the name itself unless that was "
        "taken when it was reserved."
    )
    created_at: datetime
    job: str | None = Field(description="`user~name` of the job that holds it; null: none does.")
    uid: str | None
    state: State | None
    starts: bool = Field(description="Whether the holder has ended, and a login of the caller's runs it again.")
    services: tuple[AddressService, ...] = Field(description="Those of the holder, as its document names them.")


class AddressList(Model):
    """Workspace names."""

    data: tuple[AddressWire, ...]
