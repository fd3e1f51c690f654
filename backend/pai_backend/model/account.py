"""Users, groups of users, and the virtual clusters that either may use or manages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

EVERYONE, ADMINS = "default", "admingroup"
"""OpenPAI's two groups that always exist: all users, and those who administer. Neither has members of its own."""


@dataclass(frozen=True)
class VcGrants:
    """Virtual clusters granted to a user or a group.

    ``use`` are those they may submit to, ``manages`` those whose jobs and grants they administer. A manager may use
    what they manage.
    """

    use: frozenset[str] = frozenset()
    manages: frozenset[str] = frozenset()

    @property
    def usable(self) -> frozenset[str]:
        """The virtual clusters they may submit to."""
        return self.use | self.manages


@dataclass(frozen=True)
class Account:
    """A user; one without a password hash signs in by a configured token alone."""

    name: str
    admin: bool = False
    email: str = ""
    password_hash: str = field(default="", repr=False)
    """Argon2id in the PHC string format (RFC 9106)."""
    own: VcGrants = VcGrants()
    """Granted to the user and not to one of their groups."""
    groups: tuple[str, ...] = ()
    """Groups that administrators added the user to, by name."""
    virtual_clusters: frozenset[str] | None = None
    """All that the user may submit to, by own grants and those of groups; None: every virtual cluster."""
    manages: frozenset[str] = frozenset()
    """All that the user manages, by own grants and those of groups."""
    must_change_password: bool = False
    """Whether an administrator has set the password; a session by it is only for setting another."""


@dataclass(frozen=True)
class Group:
    """A group of users. ``grants`` is None only for ``EVERYONE`` while every virtual cluster is open to everyone."""

    name: str
    description: str = ""
    external_name: str = ""
    """Its name at the provider that signs users in."""
    members: tuple[str, ...] = ()
    grants: VcGrants | None = VcGrants()


@dataclass(frozen=True)
class Directory:
    """Users that administrators have added, groups, and grants, as the database has them at one moment."""

    users: tuple[Account, ...] = ()
    groups: Mapping[str, Group] = field(default_factory=dict)
    own: Mapping[str, VcGrants] = field(default_factory=dict)
    """Grants of users, also of those whom the configuration names."""

    @property
    def everyone(self) -> Group:
        """The group of all users."""
        return self.groups.get(EVERYONE, Group(EVERYONE, "Every user.", grants=None))

    def groups_of(self, user: str) -> tuple[Group, ...]:
        """The groups that administrators added a user to, by name."""
        found = (group for group in self.groups.values() if user in group.members)
        return tuple(sorted(found, key=lambda group: group.name))

    def with_rights(self, account: Account) -> Account:
        """The account with the rights that the directory grants it.

        Grants add up: what the user, one of their groups, or everyone may use, they may use.
        """
        groups, own, open_to_all = self.groups_of(account.name), self.own.get(account.name, VcGrants()), self.everyone
        all_grants = (own, *(group.grants for group in (*groups, open_to_all) if group.grants is not None))
        return replace(
            account,
            own=own,
            groups=tuple(group.name for group in groups),
            virtual_clusters=None if open_to_all.grants is None else union(each.usable for each in all_grants),
            manages=union(each.manages for each in all_grants),
        )


class Grantee(Protocol):
    """Who may use virtual clusters: an account, or a user who has signed in."""

    @property
    def name(self) -> str:
        """The user's name."""
        ...

    @property
    def admin(self) -> bool:
        """Whether the user administers."""
        ...

    @property
    def virtual_clusters(self) -> Collection[str] | None:
        """All that the user is granted; None: every virtual cluster."""
        ...


def is_granted(vc: str, user: Grantee, settled: Mapping[str, Collection[str]]) -> bool:
    """Whether the user may use the virtual cluster. What the settings grant, ``settled``, nothing else changes."""
    if user.admin:
        return True
    granted = settled.get(user.name, user.virtual_clusters)
    return granted is None or vc in granted


def union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    """All elements of all sets."""
    return frozenset().union(*sets)
