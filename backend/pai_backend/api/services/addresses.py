"""Workspace names of the caller's."""

from __future__ import annotations

from pai_backend.api import present
from pai_backend.api.address_wire import AddressList, AddressService, AddressWire
from pai_backend.api.context import ApiContext
from pai_backend.auth.policy import within
from pai_backend.auth.users import User
from pai_backend.model.job import Job
from pai_backend.store.addresses import Address


class AddressesService:
    """What users have reserved."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def list(self, user: User) -> AddressList:
        """The caller's names, in order; by a token of one virtual cluster those that jobs of it hold."""
        found = [(each, await self._holder(each)) for each in await self._ctx.store.addresses.of_user(user.name)]
        return AddressList(
            data=tuple(
                self._shown(address, job)
                for address, job in found
                if not user.within or (job is not None and within(user, job.virtual_cluster))
            )
        )

    async def release(self, user: User, name: str) -> None:
        """Reserve a name of the caller's no longer. Raises NoSuchAddress, ReadOnlyJob."""
        await self._ctx.store.addresses.release(user.name, name)

    async def _holder(self, address: Address) -> Job | None:
        return None if address.holder is None else await self._ctx.store.jobs.by_alias(address.alias)

    def _shown(self, address: Address, job: Job | None) -> AddressWire:
        services = () if job is None else tuple(present.services(job, self._ctx.site))
        return AddressWire(
            name=address.name,
            alias=address.alias,
            created_at=address.created_at,
            job=None if job is None else job.id,
            uid=None if job is None else job.uid,
            state=None if job is None else job.state,
            starts=job is not None and job.state.final and job.spec.start_on_login,
            services=tuple(AddressService(label=each.label, url=each.url, path_url=each.path_url) for each in services),
        )
