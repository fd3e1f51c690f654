"""The keys about a provider of OpenID Connect that signs users in."""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from pai_backend.model.base import Model
from pai_backend.model.urls import is_http_url


class OidcSettings(Model):
    """A provider of OpenID Connect that signs users in (`docs/oidc.md`)."""

    issuer: str = Field(
        default="",
        description="Issuer of a provider whose users `pai login` signs in, such as "
        "`https://keycloak.example.org/realms/lab`: as its discovery document says it.",
    )
    client_id: str = Field(
        default="",
        description="Id of the public client by which the provider knows `pai login`. It has no secret, and may "
        "redirect to `http://127.0.0.1/` with any port.",
    )
    scopes: tuple[str, ...] = Field(default=("openid", "profile"), description="What is asked for; `openid` is needed.")
    name_claim: str = Field(
        default="preferred_username",
        min_length=1,
        description="Claim that holds the user's name here. Users must not be able to change it at the provider.",
    )
    groups_claim: str = Field(
        default="",
        description="Claim that holds the user's groups, such as `groups`, or `realm_access.roles` for one inside "
        "another. At each sign-in the user becomes a member of the groups whose `externalName` is among them, and of "
        "no other such group.",
    )
    admin_group: str = Field(
        default="",
        description="Who has this group at the provider administers from the next sign-in on; others do not.",
    )
    take_names: bool = Field(
        default=False,
        description="Whether a user of the provider is also that of the same name who was here before. Else only who "
        "came by the provider first is that user.",
    )
    session_s: int = Field(
        default=43_200,
        ge=60,
        le=604_800,
        description="Seconds until one who signed in at the provider must do so again.",
    )

    @field_validator("issuer")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value and not is_http_url(value):
            raise ValueError("must be a URL such as https://keycloak.example.org/realms/lab")
        return value

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if bool(self.issuer) != bool(self.client_id):
            raise ValueError("needs issuer and client_id together")
        if self.admin_group and not self.groups_claim:
            raise ValueError("needs groups_claim for admin_group")
        if "openid" not in self.scopes:
            raise ValueError("needs the scope openid")
        return self
