"""Keys, certificates and shares."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.key_wire import (
    AuthorityWire,
    CertificateList,
    IssuedCertificate,
    KeyList,
    KeyWire,
    Lockouts,
    MadeLink,
    NewCertificate,
    NewKey,
    NewLink,
    NewShare,
    ShareList,
    ShareQuery,
    ShareWire,
)
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.certificates import CertificateService
from pai_backend.api.services.keys import KeyService
from pai_backend.api.services.shares import ShareService
from pai_backend.model.errors import (
    Forbidden,
    InvalidParameters,
    NoSuchCertificate,
    NoSuchGroup,
    NoSuchJob,
    NoSuchKey,
    NoSuchService,
    NoSuchShare,
    NoSuchTask,
    NoSuchUser,
    ReadOnlyJob,
)
from pai_backend.model.scope import Scope


class _KeyHandler(ApiHandler):
    """A handler with the services of the broker; each knows where the request came from."""

    scope = Scope.SSH

    @property
    def source(self) -> str:
        """The address of the other end of the connection."""
        return self.request.remote_ip or ""

    @property
    def keys(self) -> KeyService:
        """Registered keys, lockouts."""
        return KeyService(self.ctx, self.source)

    @property
    def certificates(self) -> CertificateService:
        """Certificates."""
        return CertificateService(self.ctx, self.source)

    @property
    def shares(self) -> ShareService:
        """Shares."""
        return ShareService(self.ctx, self.source)


class KeysHandler(_KeyHandler):
    """``/api/v2/keys``."""

    @operation(Operation("The caller's SSH public keys.", answer=KeyList))
    async def get(self) -> KeyList:
        """The keys."""
        return await self.keys.keys(self.user)

    @operation(
        Operation(
            "Register an SSH public key, or give a registered one other terms.",
            audit="key.registered",
            told_by_store=True,
            body=NewKey,
            answer=KeyWire,
            status=201,
            raises=(InvalidParameters, NoSuchJob),
        )
    )
    async def post(self, new: NewKey) -> KeyWire:
        """The key as it was understood."""
        return await self.keys.add(self.user, new)


class OneKeyHandler(_KeyHandler):
    """``/api/v2/keys/{fingerprint}``."""

    @operation(
        Operation("Forget an SSH public key.", audit="key.removed", told_by_store=True, status=204, raises=(NoSuchKey,))
    )
    async def delete(self, fingerprint: str) -> None:
        """Nothing is answered."""
        await self.keys.remove(self.user, fingerprint)


class CertificatesHandler(_KeyHandler):
    """``/api/v2/certificates``."""

    @operation(Operation("The caller's SSH certificates that are accepted now.", answer=CertificateList))
    async def get(self) -> CertificateList:
        """The certificates."""
        return await self.certificates.list(self.user)

    @operation(
        Operation(
            "Have an SSH public key certified for a time.",
            audit="certificate.issued",
            told_by_store=True,
            body=NewCertificate,
            answer=IssuedCertificate,
            status=201,
            raises=(InvalidParameters, NoSuchJob, Forbidden),
        )
    )
    async def post(self, new: NewCertificate) -> IssuedCertificate:
        """The new certificate."""
        return await self.certificates.issue(self.user, new)


class OneCertificateHandler(_KeyHandler):
    """``/api/v2/certificates/{serial}``."""

    @operation(
        Operation(
            "Revoke an SSH certificate.",
            audit="certificate.revoked",
            told_by_store=True,
            status=204,
            raises=(NoSuchCertificate,),
        )
    )
    async def delete(self, serial: str) -> None:
        """Nothing is answered."""
        await self.certificates.revoke(self.user, int(serial))


class AuthorityHandler(_KeyHandler):
    """``/api/v2/certificates/authority``."""

    @operation(Operation("The keys whose SSH certificates of users are accepted.", answer=AuthorityWire))
    async def get(self) -> AuthorityWire:
        """The keys."""
        return await self.certificates.authority(self.user)

    @operation(
        Operation(
            "Certify users with a new key from now on.",
            audit="ca.rotated",
            told_by_store=True,
            answer=AuthorityWire,
            status=201,
            raises=(Forbidden,),
        )
    )
    async def post(self) -> AuthorityWire:
        """The keys after that."""
        return await self.certificates.rotate(self.user)


class JobSharesHandler(_KeyHandler):
    """``/api/v2/jobs/{job}/shares``."""

    @operation(Operation("With whom a job is shared.", answer=ShareList, raises=(NoSuchJob,)))
    async def get(self, job: str) -> ShareList:
        """The shares."""
        return await self.shares.of_job(self.user, job)

    @operation(
        Operation(
            "Let another user, or a group, enter a job.",
            audit="share.given",
            told_by_store=True,
            body=NewShare,
            answer=ShareWire,
            status=201,
            raises=(InvalidParameters, NoSuchJob, NoSuchUser, NoSuchGroup, NoSuchService, ReadOnlyJob),
        )
    )
    async def post(self, job: str, new: NewShare) -> ShareWire:
        """The share."""
        return await self.shares.give(self.user, job, new)


class JobLinksHandler(_KeyHandler):
    """``/api/v2/jobs/{job}/links``."""

    @operation(
        Operation(
            "Make a link for reading one service of a job.",
            audit="share.given",
            told_by_store=True,
            body=NewLink,
            answer=MadeLink,
            status=201,
            raises=(InvalidParameters, NoSuchJob, NoSuchTask, NoSuchService, Forbidden, ReadOnlyJob),
        )
    )
    async def post(self, job: str, new: NewLink) -> MadeLink:
        """The link."""
        return await self.shares.link(self.user, job, new)


class OneJobShareHandler(_KeyHandler):
    """``/api/v2/jobs/{job}/shares/{user}``."""

    @operation(
        Operation(
            "End a share of a job, or a link.",
            audit="share.ended",
            told_by_store=True,
            status=204,
            raises=(NoSuchJob, NoSuchShare),
        )
    )
    async def delete(self, job: str, user: str) -> None:
        """Nothing is answered."""
        await self.shares.end(self.user, job, user)


class SharesHandler(_KeyHandler):
    """``/api/v2/shares``: a list of jobs, which `pai list` shows."""

    scope = Scope.READ

    @operation(
        Operation(
            "Jobs of others that the caller may enter, or of the caller's that others may.",
            query=ShareQuery,
            answer=ShareList,
        )
    )
    async def get(self, query: ShareQuery) -> ShareList:
        """The shares."""
        return await self.shares.list(self.user, query)


class SshLockoutsHandler(_KeyHandler):
    """``/api/v2/lockouts``."""

    scope = Scope.ADMIN

    @operation(Operation("Users who are locked out.", answer=Lockouts, raises=(Forbidden,)))
    async def get(self) -> Lockouts:
        """Their names."""
        return await self.keys.lockouts(self.user)


class OneSshLockoutHandler(_KeyHandler):
    """``/api/v2/lockouts/{user}``."""

    scope = Scope.ADMIN

    @operation(
        Operation(
            "Refuse all requests and logins of a user, known or gone.",
            audit="user.locked-out",
            told_by_store=True,
            status=204,
            raises=(Forbidden, InvalidParameters),
        )
    )
    async def put(self, user: str) -> None:
        """Nothing is answered."""
        await self.keys.lock_out(self.user, user)

    @operation(
        Operation(
            "End the lock-out of a user.", audit="user.let-in", told_by_store=True, status=204, raises=(Forbidden,)
        )
    )
    async def delete(self, user: str) -> None:
        """Nothing is answered."""
        await self.keys.let_in(self.user, user)
