"""Tells of logins: the process's log and its counters at once, the job's event log by ``record``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pai_backend.access.broker.rights import Credential
from pai_backend.access.gateway import names
from pai_backend.access.gateway.counters import Counters
from pai_backend.access.gateway.folding import Fact, What
from pai_backend.access.gateway.names import EntryPoint, LoginRefused
from pai_backend.access.gateway.record import Record
from pai_backend.model.ids import JobUid

if TYPE_CHECKING:
    from pai_backend.access.gateway.login import Login

log = logging.getLogger(__name__)


class LoginReporter:
    """What one gateway process tells. Nothing that a client sent is told raw, and of keys the fingerprint only."""

    def __init__(self, record: Record, counters: Counters) -> None:
        self.record, self.counters = record, counters

    def logged_in(self, login: Login, credential: Credential) -> None:
        """A user has authenticated."""
        log.info("login name=%s user=%s key=%s from=%s", login.name, credential.user, key_of(credential), _where(login))
        self.counters.logins.labels(credential.kind.value).inc()
        self.record.used(credential, login.address)

    def entered(self, login: Login, credential: Credential, entry: EntryPoint) -> None:
        """They have reached a task."""
        words = {"task": entry.task_name, "client": login.client, "key": key_of(credential)}
        self.record.note(Fact(What.LOGIN, entry.job, credential.user, login.address, words))

    def refused(self, login: Login, credential: Credential, job: JobUid | None, refused: LoginRefused) -> None:
        """They have proved who they are, and may not or cannot go on. ``job``: whose door it was, if anybody's."""
        text = names.plain(str(refused), 400)
        log.info(
            "refused name=%s user=%s from=%s reason=%s: %s",
            *(login.name, credential.user, _where(login), refused.reason, text),
        )
        self.counters.refusals.labels(refused.reason.value).inc()
        if job is not None:
            words = {"client": login.client, "key": key_of(credential), "reason": refused.reason.value, "text": text}
            self.record.note(Fact(What.REFUSED, job, credential.user, login.address, words))

    def ended(self, login: Login, seconds: float) -> None:
        """The connection is gone."""
        activity, credential = login.activity, login.credential
        if activity is None or credential is None:
            log.info("not logged in name=%s from=%s reason=%s: %s", *_how(login))
            self.counters.strangers.labels(login.reason.value).inc()
            return
        log.info(
            "disconnect name=%s user=%s from=%s kind=%s seconds=%.1f bytes_in=%d bytes_out=%d reason=%s: %s",
            *(login.name, credential.user, _where(login), activity.kind, seconds),
            *(activity.bytes_in, activity.bytes_out, login.reason, login.reason_text),
        )
        self.counters.ended(activity.kind, login.reason, activity.bytes_in, activity.bytes_out)
        figures = {"seconds": seconds, "bytes_in": activity.bytes_in, "bytes_out": activity.bytes_out}
        for entry in login.visited:
            words = {"task": entry.task_name, "client": login.client, "key": key_of(credential)}
            words |= {"kind": activity.kind.value, "reason": login.reason.value}
            self.record.note(Fact(What.END, entry.job, credential.user, login.address, words, figures))


def key_of(credential: Credential) -> str:
    """What stands for a credential in logs and events: a fingerprint, or a certificate's serial."""
    return credential.fingerprint if credential.serial is None else f"certificate {credential.serial}"


def _where(login: Login) -> str:
    return f"{login.address}:{login.port} client={login.client!r}"


def _how(login: Login) -> tuple[str, str, str, str]:
    return login.name, _where(login), login.reason.value, login.reason_text
