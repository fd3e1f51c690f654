"""SSH names, sign-ins."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.key_wire import JobKeyQuery
from pai_backend.api.openpai.wire import JobSsh
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import KeyFileQuery, TicketQuery
from pai_backend.api.services.access import AccessService
from pai_backend.api.services.job_keys import JobKeyService
from pai_backend.api.wire import GatewayWire, SshAnswer, Ticket
from pai_backend.model.errors import (
    Forbidden,
    InvalidParameters,
    NoJobSsh,
    NoSuchJob,
    NoSuchService,
    NoSuchTask,
    ReadOnlyJob,
    Unavailable,
)
from pai_backend.model.scope import Scope


class _AccessHandler(ApiHandler):
    """A handler with the access service."""

    @property
    def access(self) -> AccessService:
        """The service."""
        return AccessService(self.ctx)


class SshHandler(_AccessHandler):
    """``/api/v2/jobs/{job}/ssh``."""

    scope = Scope.SSH

    @operation(
        Operation(
            "How to reach a job's tasks by SSH.",
            answer=JobSsh,
            ours=SshAnswer,
            raises=(NoSuchJob, NoJobSsh, Unavailable),
        )
    )
    async def get(self, job: str) -> SshAnswer | JobSsh:
        """Ours: gateway, names and known_hosts lines; OpenPAI's: where each task is entered, and the job's key."""
        if self.wants_ours():
            return await self.access.ssh(self.user, job)
        return await JobKeyService(self.ctx).ssh(self.user, job)


class KeyFileHandler(ApiHandler):
    """``/api/v1/ssh-keys/{name}``: a job's private key, once, for the holder of the link."""

    path_is_secret = True

    public = True

    @operation(
        Operation(
            "A job's private key, once; the link is in the job's SSH answer.",
            audit="job-key.taken",
            told_by_store=True,
            query=KeyFileQuery,
            media_type="application/x-pem-file",
            raises=(Forbidden, Unavailable),
        )
    )
    async def get(self, name: str, query: KeyFileQuery) -> None:
        """The key's file."""
        key = await JobKeyService(self.ctx).redeem(query.ticket, name, self.request.remote_ip or "")
        self.set_header("Content-Type", "application/x-pem-file")
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.write(key)


class JobKeyHandler(ApiHandler):
    """``/api/v2/jobs/{job}/key``."""

    scope = Scope.SSH

    @operation(
        Operation(
            "A private key of the job's own, for its owner.",
            audit="job-key.taken",
            told_by_store=True,
            query=JobKeyQuery,
            media_type="application/x-pem-file",
            raises=(NoSuchJob, Forbidden, ReadOnlyJob, InvalidParameters),
        )
    )
    async def get(self, job: str, query: JobKeyQuery) -> None:
        """The key's file."""
        name, text = await JobKeyService(self.ctx).private(self.user, job, query, self.request.remote_ip or "")
        self.set_header("Content-Type", "application/x-pem-file")
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.write(text)


class ServiceTicketHandler(_AccessHandler):
    """``/api/v2/jobs/{job}/services/{label}/ticket``."""

    scope = Scope.SSH

    @operation(
        Operation(
            "A one-time sign-in to a service.",
            audit="service.opened",
            query=TicketQuery,
            answer=Ticket,
            status=201,
            raises=(NoSuchJob, NoSuchTask, NoSuchService),
        )
    )
    async def post(self, job: str, label: str, query: TicketQuery) -> Ticket:
        """A new ticket."""
        self.say(label)
        return await self.access.ticket(self.user, job, label, query, self.request.host)


class GatewayHandler(_AccessHandler):
    """``/api/v2/gateway``."""

    @operation(Operation("The SSH gateway and its host key.", answer=GatewayWire, raises=(Unavailable,)))
    async def get(self) -> GatewayWire:
        """Address and key."""
        return await self.access.gateway()
