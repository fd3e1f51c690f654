"""The keys about a JupyterHub whose users are users here."""

from __future__ import annotations

from pydantic import Field, field_validator

from pai_backend.model.base import Model
from pai_backend.model.urls import is_http_url


class JupyterHubSettings(Model):
    """A JupyterHub that says whose its servers' tokens are."""

    api_url: str = Field(
        default="",
        description="REST API of a JupyterHub whose users are users here, such as `https://hub.example.org/hub/api`: "
        "servers of its users then come with the token that the Hub gave them (`docs/connect/jupyterhub.md`).",
    )
    service: str = Field(
        default="pai",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="Name of this backend among the Hub's services: who may come has `access:services!service=NAME`.",
    )

    take_names: bool = Field(
        default=False,
        description="Whether a user of the Hub is also that of the same name who was here before. Else only who came "
        "by the Hub first is that user.",
    )

    @field_validator("api_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value and not is_http_url(value):
            raise ValueError("must be a URL such as https://hub.example.org/hub/api")
        return value.rstrip("/")
