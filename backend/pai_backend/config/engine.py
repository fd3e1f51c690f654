"""The keys about accounts of the machine that local tasks run as."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from pai_backend.model.base import Model


class AccountSettings(Model):
    """Accounts of this machine that local tasks run as: of one of three kinds."""

    map: dict[str, str] = Field(
        default={}, description="The account of each user, `{alice: alice, bob: pai-bob}`: two never share one."
    )
    pool: tuple[str, ...] = Field(
        default=(), description="A pool of accounts, `[pai-1, pai-2]`. Each user gets one that is free and keeps it."
    )
    first_uid: int = Field(
        default=0, ge=0, le=4_294_000_000, description="A pool of `count` uids that no account has: the first of them."
    )
    count: int = Field(default=0, ge=0, le=100_000, description="How many uids from `first_uid` on.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.first_uid == 0) != (self.count == 0):
            raise ValueError("needs first_uid and count together")
        if sum(map(bool, (self.map, self.pool, self.count))) > 1:
            raise ValueError("takes one of map, pool, or first_uid with count")
        return self

    @property
    def given(self) -> bool:
        """Whether tasks of different users run as different accounts."""
        return bool(self.map or self.pool or self.count)

    @property
    def for_all(self) -> tuple[str, ...]:
        """Names of the pool, or uids as numbers; none with a map."""
        return self.pool or tuple(str(self.first_uid + number) for number in range(self.count))
