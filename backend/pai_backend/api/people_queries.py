"""Parameters and bodies of requests about users, groups, their sign-ins and tokens."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator

from pai_backend.api.queries import Body, Query
from pai_backend.model.base import Model

NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"


class PasswordLogin(Model):
    """Name and password of a user, as JSON or as a form."""

    username: str = Field(max_length=255)
    password: SecretStr = Field(max_length=1024)
    expiration: int | None = Field(
        default=None, ge=60, le=604_800, description="Seconds; a session lasts 7 days whatever is asked, as in OpenPAI."
    )


class ProviderLogin(Model):
    """What the provider of OpenID Connect says of a user who has just signed in there."""

    id_token: SecretStr = Field(alias="idToken", min_length=1, max_length=32_768, description="The ID token.")


class SshKeyEntry(Model):
    """A public key in OpenPAI's user profile."""

    title: str = Field(default="", max_length=200)
    value: str = Field(max_length=32768, description="One line of a `.pub` file.")
    time: int | None = Field(default=None, description="Milliseconds since 1970; set by the backend.")


class ExtensionChange(Model):
    """What users may change of their profile's extension."""

    ssh_keys: tuple[SshKeyEntry, ...] | None = Field(
        default=None, alias="sshKeys", max_length=100, description="All keys from now on; others are forgotten."
    )


class NewUser(Model):
    """A user to add, in OpenPAI's words."""

    username: str = Field(
        max_length=64,
        pattern=NAME_PATTERN,
        description="Letters, digits, `_`, `.`, `-`; it names directories, too.",
    )
    password: SecretStr = Field(min_length=8, max_length=1024, description="At least 8 characters.")
    must_change_password: bool = Field(
        default=False,
        alias="mustChangePassword",
        description="Their first session is only for setting a password of their own.",
    )
    email: str = Field(default="", max_length=320)
    admin: bool = False
    again: bool = Field(default=False, description="Also when a removed user had that name: for the same person.")
    grouplist: tuple[str, ...] = Field(default=(), description="Groups that they are in.")
    virtual_cluster: tuple[str, ...] = Field(default=(), alias="virtualCluster", description="They may use these.")
    manages: tuple[str, ...] = Field(default=(), description="Virtual clusters that they manage.")

    @field_validator("username")
    @classmethod
    def _names_somebody(cls, value: str) -> str:
        if value == "me":
            raise ValueError("`me` is the caller; take another name")
        return value


class UserData(Model):
    """The new values of a user's profile."""

    username: str | None = None
    email: str | None = Field(default=None, max_length=320)
    admin: bool | None = Field(
        default=None, description="Whether they are an administrator. Only other administrators may change it."
    )
    old_password: SecretStr | None = Field(
        default=None,
        alias="oldPassword",
        max_length=1024,
        description="The present one. Users who change their own password need it.",
    )
    new_password: SecretStr | None = Field(
        default=None, alias="newPassword", min_length=8, max_length=1024, description="At least 8 characters."
    )
    must_change_password: bool | None = Field(
        default=None,
        alias="mustChangePassword",
        description="With a new password of another user: they must change it.",
    )
    grouplist: tuple[str, ...] | None = Field(
        default=None, description="Groups that they are in; `default` and `admingroup` change nothing."
    )
    virtual_cluster: tuple[str, ...] | None = Field(
        default=None, alias="virtualCluster", description="Virtual clusters that are granted to the user."
    )
    manages: tuple[str, ...] | None = Field(default=None, description="Virtual clusters that they manage.")
    disabled: bool | None = Field(default=None, description="Refuse all their requests and logins.")
    extension: ExtensionChange | None = None


class TokenQuery(Query):
    """What an application token is for."""

    name: str = Field(default="", max_length=100, description="What its user calls it.")
    scopes: str = Field(default="", max_length=100, description="read, jobs, files, ssh, admin; empty: everything.")
    lifetime_s: int | None = Field(default=None, ge=1, le=316_224_000, description="Seconds until it expires.")
    virtual_cluster: str = Field(
        default="", max_length=255, description="The one whose jobs it is for; without scopes: read, jobs and ssh."
    )


class NewUserQuery(Query):
    """How to add a user."""

    dry_run: bool = Field(default=False, description="Only check, and add no user.")


class RemoveUserQuery(Query):
    """How to remove a user."""

    transfer_to: str | None = Field(
        default=None, max_length=64, description="The user who gets workspace names, templates and drafts."
    )


class AclsChange(Body):
    """What members of a group may use."""

    admin: bool | None = Field(default=None, description="OpenPAI's. Groups do not make administrators.")
    virtual_clusters: tuple[str, ...] | None = None
    manages: tuple[str, ...] | None = Field(default=None, description="Virtual clusters that members manage.")
    storage_configs: tuple[str, ...] | None = Field(default=None, description="OpenPAI's; has no effect here.")


class GroupExtensionChange(Body):
    """The part of a group that is not its name."""

    acls: AclsChange = AclsChange()


class GroupData(Body):
    """The new values of a group."""

    groupname: str | None = None
    description: str | None = Field(default=None, max_length=1024)
    external_name: str | None = Field(default=None, max_length=256)
    members: tuple[str, ...] | None = Field(default=None, max_length=10_000, description="All users in it.")
    extension: GroupExtensionChange = GroupExtensionChange()


class NewGroup(GroupData):
    """A group to add, in OpenPAI's words."""

    groupname: str = Field(max_length=64, pattern=NAME_PATTERN, description="Letters, digits, `_`, `.`, `-`.")


class GroupChange(Body):
    """A change of a group."""

    data: GroupData
    patch: bool = Field(default=False, description="OpenPAI's; what is not given stays as it is in any case.")


class UserChange(Model):
    """A change of a user."""

    data: UserData
    patch: bool = Field(default=False, description="OpenPAI's; what is not given stays as it is in any case.")
