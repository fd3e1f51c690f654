"""The job's own key pair: who may have the private half, and the link that gives it once.

OpenPAI put that half on an open file server. Here the link in an SSH answer carries a signed ticket that names user,
job and end, is good for one download, and asks again at that moment whether its user may still have the key.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from urllib.parse import urlencode

from pai_backend.access.broker.putty import ppk
from pai_backend.access.keys import (
    job_key,
    job_rsa_key,
    known_hosts_line,
    parse_public_key,
    pem_rsa,
    public_line,
)
from pai_backend.access.tickets import TicketOffice
from pai_backend.api.context import ApiContext
from pai_backend.api.key_wire import JobKeyQuery, KeyFormat, KeyType
from pai_backend.api.openpai.wire import Container, JobSsh, KeyPair
from pai_backend.api.services.access import AccessService
from pai_backend.api.services.jobs import JobService
from pai_backend.auth.policy import may_enter
from pai_backend.auth.users import User
from pai_backend.model.alias import task_alias
from pai_backend.model.errors import (
    Forbidden,
    InvalidParameters,
    LockedOut,
    NoJobSsh,
    NoSuchJob,
    ReadOnlyJob,
    Unauthorized,
)
from pai_backend.model.job import Job, Phase, Task
from pai_backend.model.rights import SSH_LABEL
from pai_backend.model.text import Text
from pai_backend.store.grants import Act

LINK_LIFE = timedelta(minutes=10)  # long enough to copy a line into a terminal
SIGNING_SECRET = "key-file-signing"
FOLDER = "/api/v1/ssh-keys"
_REACHABLE = (Phase.RUNNING, Phase.KEPT)


class JobKeyService:
    """OpenPAI's SSH answer, and the downloads of keys."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def ssh(self, user: User, name: str) -> JobSsh:
        """Where the tasks are entered, and a link to the key. Raises NoSuchJob, Forbidden, NoJobSsh, Unavailable."""
        job = await JobService(self._ctx).own(user, name, "log in to")
        tasks = _reachable(job)
        if not tasks:
            raise NoJobSsh(
                Text("No task of the job {id} can be reached by SSH now.", id=job.id),
                hint=Text("Ask again when it runs; `pai status` shows what it waits for."),
            )
        gateway = await AccessService(self._ctx).ssh(user, job.id)
        containers = [
            Container(
                id=task.uid,
                ssh_ip=gateway.host,
                ssh_port=gateway.port,
                known_hosts=known_hosts_line(gateway.host, gateway.port, gateway.gateway_host_key),
                ssh_user=task_alias(job.alias, job.spec, task.role, task.index),
            )
            for task in tasks
        ]
        return JobSsh(containers=tuple(containers), key_pair=await self._key_pair(user, job), gateway=gateway)

    async def private(self, user: User, name: str, query: JobKeyQuery, source: str) -> tuple[str, str]:
        """(file name, text) of a private key of the caller's job; only its owner has it, no administrator.

        Raises NoSuchJob, Forbidden, ReadOnlyJob (the job has ended), InvalidParameters (no such format of that type).
        """
        job = await JobService(self._ctx).find(user, name)
        if not may_enter(user, job):
            raise Forbidden(
                Text("Only {user} may have the key of the job {id}.", user=job.user, id=job.id),
                hint=Text("Ask for a share."),
            )
        if query.format is KeyFormat.PEM and query.type is KeyType.ED25519:
            raise InvalidParameters(
                Text("An Ed25519 key has no PEM form that old clients read."),
                hint=Text("Leave out `type`, or ask for openssh."),
            )
        is_rsa = query.format is KeyFormat.PEM or query.type is KeyType.RSA
        pem = await self._take(user, job, await self._pair(job, is_rsa), source)
        ending = {KeyFormat.PEM: ".pem", KeyFormat.PPK: ".ppk", KeyFormat.PPK2: ".ppk"}.get(query.format, "")
        return f"{job.alias}{ending}", _written(pem, query.format, job)

    async def _pair(self, job: Job, is_rsa: bool) -> str:
        """Raises ReadOnlyJob."""
        if job.state.final:
            raise ReadOnlyJob(
                Text("The job {id} has ended, and its keys with it.", id=job.id),
                hint=Text("Submit it again to enter it."),
            )
        if is_rsa:
            return await job_rsa_key(self._ctx.store, job.uid, self._ctx.rsa_stock.take)
        return await job_key(self._ctx.store, job.uid)

    async def redeem(self, ticket: str, name: str, source: str) -> str:
        """The private key that a link is about, once. Raises Forbidden for a link that is no longer valid."""
        spent = Forbidden(
            Text("This link is invalid, has expired, or was used already."),
            hint=Text("Ask for the job's SSH answer again."),
        )
        try:
            claims = await (await self._office()).redeem(ticket, _service(name))
            job = await self._ctx.store.jobs.get(claims.job)
        except (Unauthorized, NoSuchJob):
            raise spent from None
        try:
            user = await self._ctx.identity.of_digest(claims.token)
        except LockedOut:  # the answer is that for a link that was never given
            raise spent from None
        if user is None or user.name != claims.user or not may_enter(user, job) or job.state.final:
            raise spent
        return await self._take(user, job, await job_key(self._ctx.store, job.uid), source)

    async def _take(self, user: User, job: Job, pem: str, source: str) -> str:
        """Write down that the key is taken. What an application token has taken ends with that token."""
        if user.token_ends_at is not None:  # a job's key has no end that could be set to that of the token
            raise Forbidden(
                Text("A token that expires cannot take the key of a job."),
                hint=Text("Have a key of your own certified instead."),
            )
        fingerprint = parse_public_key(public_line(pem)).fingerprint
        act = Act(user.name, self._ctx.clock(), source)
        await self._ctx.store.grants.note("job-key.taken", user.name, fingerprint, act, job.uid, user.maker)
        return pem

    async def _key_pair(self, user: User, job: Job) -> KeyPair:
        ticket, _ = (await self._office()).issue(
            user.name, _service(job.alias), job.uid, token=user.token, life=LINK_LIFE
        )
        folder = f"{self._ctx.site.base_url}{FOLDER}"
        return KeyPair(
            folder_path=folder,
            public_key_file_name=f"{job.alias}.pub",
            private_key_file_name=job.alias,
            private_key_direct_download_link=f"{folder}/{job.alias}?{urlencode({'ticket': ticket})}",
        )

    async def _office(self) -> TicketOffice:
        # A key of its own: a ticket of the service proxy can never be taken for one of ours.
        key = await self._ctx.store.secrets.get(SIGNING_SECRET, secrets.token_hex(32))
        return TicketOffice(self._ctx.store.secrets, key, self._ctx.clock)


def _written(pem: str, form: KeyFormat, job: Job) -> str:
    if form is KeyFormat.PEM:
        return pem_rsa(pem)
    if form is KeyFormat.OPENSSH:
        return pem
    return ppk(pem, f"pai-job-{job.alias}", version=2 if form is KeyFormat.PPK2 else 3)


def _service(name: str) -> str:
    return f"key-file {name}"


def _reachable(job: Job) -> list[Task]:
    """Every task that has an SSH port and runs, or is kept."""
    return [
        task
        for task in job.tasks
        if task.phase in _REACHABLE and task.placement is not None and task.placement.ports.get(SSH_LABEL)
    ]
