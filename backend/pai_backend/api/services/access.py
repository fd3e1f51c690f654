"""Ways into a job: SSH names, sign-ins to its services."""

from __future__ import annotations

from pai_backend.access.hostca import authority_line, host_ca_public_key
from pai_backend.access.keys import gateway_host_public_key, gateway_known_hosts, parse_public_key
from pai_backend.access.proxy.shared import opens
from pai_backend.api import present
from pai_backend.api.context import ApiContext, PublicAddress
from pai_backend.api.queries import TicketQuery
from pai_backend.api.services.jobs import JobService
from pai_backend.api.services.shares import find_entered, find_service
from pai_backend.api.wire import GatewayWire, SshAnswer, Ticket
from pai_backend.auth.policy import may_enter
from pai_backend.auth.users import User
from pai_backend.model.errors import Forbidden, Unavailable
from pai_backend.model.job import Job, NewEvent
from pai_backend.model.rights import EVERYTHING
from pai_backend.model.text import Text
from pai_backend.model.urls import as_asked


class AccessService:
    """Addresses."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx
        self._jobs = JobService(ctx)

    async def gateway(self) -> GatewayWire:
        """The SSH front door and its host key. Raises Unavailable while its address is not known."""
        address = self._gateway_address()
        key = await gateway_host_public_key(self._ctx.store)
        return GatewayWire(
            host=address.host, port=address.port, host_key=key, fingerprint=parse_public_key(key).fingerprint
        )

    async def ssh(self, user: User, name: str) -> SshAnswer:
        """What a strict SSH client needs for the job's tasks. Raises NoSuchJob, Unavailable."""
        job, share = await find_entered(self._ctx, user, name)
        self._ctx.rsa_stock.warm()  # who asks for the way may ask for the key next
        address = self._gateway_address()
        key = await gateway_host_public_key(self._ctx.store)
        alias = f"pai-{self._ctx.site.name}"
        lines = await gateway_known_hosts(self._ctx.store, address.host, address.port, alias)
        held = await self._ctx.store.addresses.held_by(job) if job.user == user.name else ""
        return SshAnswer(
            address=held,
            starts=job.state.final and job.spec.start_on_login and job.user == user.name,
            host=address.host,
            port=address.port,
            host_key_alias=alias,
            known_hosts=lines,
            gateway_host_key=key,
            cert_authority=authority_line(job.alias, await host_ca_public_key(self._ctx.store)),
            entries=present.ssh_entries(job, EVERYTHING if share is None else share.limits),
        )

    async def ticket(self, user: User, name: str, label: str, query: TicketQuery, host: str) -> Ticket:
        """A one-time sign-in to a service, for who asks at ``host``.

        Raises NoSuchJob, NoSuchTask, NoSuchService, Forbidden.

        The service of another user's job is for those with whom it is shared, and for administrators who say why: its
        owner is told by an event.
        """
        job, share = await find_entered(self._ctx, user, name)
        if share is not None and not opens(share.limits, label):
            raise Forbidden(
                Text("The service {label} of the job {id} is not shared with you.", label=label[:100], id=job.id)
            )
        target = find_service(job, label, query)
        as_admin = not may_enter(user, job) and not await self._ctx.proxy.is_shared(job, target, user.name)
        if as_admin:
            await enter_as_admin(self._ctx, user, job, query.reason, f"service {label}")
        base_url = as_asked(self._ctx.site.base_url, host)
        grant = await self._ctx.proxy.grant(job, target, user, base_url, as_admin=as_admin)
        return Ticket(
            url=grant.url,
            path_url=grant.path_url,
            expires_at=grant.expires_at,
            proof=grant.proof,
            is_jupyter=grant.is_jupyter,
        )

    def _gateway_address(self) -> PublicAddress:
        address = self._ctx.gateway()
        if address is None:
            raise Unavailable(
                Text("The SSH gateway is not running."), hint=Text("It starts by itself; try again in a moment.")
            )
        return address


async def enter_as_admin(ctx: ApiContext, user: User, job: Job, reason: str, way: str) -> None:
    """Write into the events of another user's job that an administrator gets a way in, and why.

    Raises Forbidden for others, for application tokens, and without a reason.
    """
    if not user.admin or user.application:
        raise Forbidden(
            Text("Only {user} may enter the job {id}.", user=job.user, id=job.id),
            hint=Text("Ask its owner to share it."),
        )
    if not reason.strip() or not reason.isprintable():
        raise Forbidden(
            Text(
                "The job {id} is {user}'s. An administrator must give a reason, which the owner sees.",
                id=job.id,
                user=job.user,
            ),
            hint=Text(
                "`pai keys certify FILE --job JOB --as-admin --reason TEXT`; for a service the parameter `reason`."
            ),
        )
    said = {"user": user.name, "way": way, "reason": reason.strip()}
    await ctx.store.events.note(job.uid, [NewEvent("job.admin-entry", said)], ctx.clock())
