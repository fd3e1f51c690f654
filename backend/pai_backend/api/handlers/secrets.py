"""Secrets that users keep for their documents."""

from __future__ import annotations

from pai_backend.api.base import ALL_VERBS, ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.secret_wire import NewSecret, SecretList
from pai_backend.api.services.secrets import SecretService
from pai_backend.model.errors import InvalidParameters, NoSuchSecret
from pai_backend.model.user_secret import LONGEST


class SecretsHandler(ApiHandler):
    """``/api/v2/secrets``."""

    users_own = ALL_VERBS

    @operation(Operation("The names of the caller's secrets; no request reads a value.", answer=SecretList))
    async def get(self) -> SecretList:
        """By name."""
        return await SecretService(self.ctx).list(self.user)


class OneSecretHandler(ApiHandler):
    """``/api/v2/secrets/{secret}``."""

    users_own = ALL_VERBS

    def body_limit(self) -> int:
        """Room for a value of which JSON escapes every character: six bytes for each."""
        return 6 * LONGEST + 1024

    @property
    def _secrets(self) -> SecretService:
        return SecretService(self.ctx, self.request.remote_ip or "")

    @operation(
        Operation(
            "Keep a secret, instead of an earlier one of the caller's of this name.",
            body=NewSecret,
            status=204,
            raises=(InvalidParameters,),
            audit="secret.set",
            told_by_store=True,
        )
    )
    async def put(self, secret: str, new: NewSecret) -> None:
        """Nothing is answered."""
        await self._secrets.set(self.user, secret, new.value.get_secret_value())

    @operation(
        Operation(
            "Remove a secret. Jobs that were submitted with it keep its value.",
            status=204,
            raises=(NoSuchSecret,),
            audit="secret.removed",
            told_by_store=True,
        )
    )
    async def delete(self, secret: str) -> None:
        """Nothing is answered."""
        await self._secrets.remove(self.user, secret)
