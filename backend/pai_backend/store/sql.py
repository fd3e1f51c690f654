"""The store on SQL: :class:`Store` puts the repositories of this room together and holds no logic of its own.

Rules (architecture §4): no call touches the network beyond the database; every controller write checks the controller's
lease epoch and the job's version in the same transaction; every change of a job appends its events with the next
``seq`` in that transaction; a port is leased at most once per machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from pai_backend.model.errors import InvalidParameters
from pai_backend.platform.disk_reserve import DiskReserve
from pai_backend.store import migrate, sealing
from pai_backend.store.accounting import Accounting
from pai_backend.store.addresses import Addresses
from pai_backend.store.announcements import Announcements
from pai_backend.store.auditing import Audit
from pai_backend.store.bookings import Bookings
from pai_backend.store.budgeting import Budgets
from pai_backend.store.configurations import Configurations
from pai_backend.store.database import Backing, Database
from pai_backend.store.deleting import Deletions
from pai_backend.store.events import Events
from pai_backend.store.explanations import Explanations
from pai_backend.store.external_users import ExternalUsers
from pai_backend.store.granting import Grants
from pai_backend.store.groups import Groups
from pai_backend.store.idle_clocks import Idling
from pai_backend.store.jobs import Jobs
from pai_backend.store.kept_documents import KeptDocuments
from pai_backend.store.keyring import KeyRing, KeySource
from pai_backend.store.keys import UserKeys
from pai_backend.store.lease import Leadership
from pai_backend.store.login_starts import LoginStarts
from pai_backend.store.noticing import Notices
from pai_backend.store.notifications import Notifications
from pai_backend.store.other_holders import OtherHolders
from pai_backend.store.ports import PortLeases
from pai_backend.store.prices import PriceList
from pai_backend.store.recovering import Recovery
from pai_backend.store.rule_clocks import RuleClocks
from pai_backend.store.run_times import RunTimes
from pai_backend.store.server_secrets import Secrets
from pai_backend.store.task_keys import TaskKeys
from pai_backend.store.tokens import Tokens
from pai_backend.store.user_secrets import UserSecrets
from pai_backend.store.vc_rules import VcRulesOfAll
from pai_backend.store.wake import Wake
from pai_backend.store.writer import Writer


class Store:
    """Everything durable, in SQLite or PostgreSQL: one repository for each subject."""

    def __init__(self, url: str, keys: KeySource, reserve: DiskReserve | None = None) -> None:
        """``url`` is a SQLAlchemy URL, with or without the driver; ``keys`` are what is stored sealed with.

        ``reserve`` is of the disk that a SQLite database is on. Raises InvalidParameters for another database.
        """
        database = self._database = Database(_backing(url, reserve))
        ring = self._ring = KeyRing(keys)
        self.changes = Wake(database)
        writer = self._writer = Writer(database, ring, committed=self.changes.bump)
        shared = database, writer, ring
        self.addresses = Addresses(*shared)
        self.announcements = Announcements(*shared)
        self.audit = Audit(*shared)
        self.bookings = Bookings(*shared)
        self.budgets = Budgets(*shared)
        self.configs = Configurations(*shared)
        self.deletion = Deletions(*shared)
        self.events = Events(*shared)
        self.explanations = Explanations(*shared)
        self.grants = Grants(*shared)
        self.groups = Groups(*shared)
        self.accounting = Accounting(*shared)
        self.other_holders = OtherHolders(*shared)
        self.external_users = ExternalUsers(*shared)
        self.idling = Idling(*shared)
        self.jobs = Jobs(*shared, reserve)
        self.kept_documents = KeptDocuments(*shared)
        self.leadership = Leadership(*shared)
        self.login_starts = LoginStarts(*shared)
        self.notices = Notices(*shared)
        self.notifications = Notifications(*shared)
        self.ports = PortLeases(*shared)
        self.prices = PriceList(*shared)
        self.recovery = Recovery(*shared)
        self.rule_clocks = RuleClocks(*shared)
        self.run_times = RunTimes(*shared)
        self.secrets = Secrets(*shared)
        self.task_keys = TaskKeys(*shared)
        self.tokens = Tokens(*shared)
        self.user_keys = UserKeys(*shared)
        self.user_secrets = UserSecrets(*shared)
        self.vc_rules = VcRulesOfAll(*shared)

    async def open(self) -> None:
        """Connect, bring the schema to head, and have the keys of all that is sealed.

        Raises Unavailable and SecretKeyError; it may be called again then.
        """
        await self._database.open()
        try:
            if await self._database.read(migrate.revision) != migrate.HEAD:
                await self._database.write(migrate.to_head, announce=False)
            await self._take_keys()
            await self.changes.mark()
        except BaseException:
            await self._database.aclose()
            raise

    async def _take_keys(self) -> None:
        """Read the keys, and make sure that no other process seals with one that is not among them."""
        used = await self._database.read(sealing.used_keys)
        await self._ring.load(used)
        if not used:
            # Of processes that made different keys at once the first marks the database, and the others are refused.
            mark = partial(sealing.mark, made=self._ring.cipher.sealed(b""))
            await self._database.write(mark, announce=False)
            await self._ring.load(await self._database.read(sealing.used_keys))

    async def aclose(self) -> None:
        """Finish the writes that wait, then close all connections. Idempotent."""
        await self._writer.aclose()
        await self.changes.aclose()
        await self._database.aclose()

    async def reseal(self, report: Callable[[int], None]) -> list[str]:
        """Read the keys again, then seal with the newest one everything that is sealed with others, while others go on.

        It may be ended and called again at any time. ``report`` is told how many rows of each batch were done.
        Returns what could not be opened, each by table and key; it stays as it is. Raises Unavailable, SecretKeyError.
        """
        await self._ring.load(await self.sealed_with())
        return await sealing.reseal_all(self._database, self._ring.cipher, report)

    async def sealed_with(self) -> frozenset[str]:
        """Identifiers of the keys that stored values are sealed with."""
        return await self._database.read(sealing.used_keys)


def _backing(text: str, reserve: DiskReserve | None) -> Backing:
    """The backing for a URL; each is imported only when it is asked for."""
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise InvalidParameters(
            "`database` is not a database URL.", hint="For example sqlite:////path/pai.sqlite or postgresql://host/pai."
        ) from error
    kind = url.get_backend_name()
    if kind == "sqlite":
        from pai_backend.store.sqlite import SqliteBacking

        return SqliteBacking(url, reserve)
    if kind in ("postgresql", "postgres"):
        from pai_backend.store.postgres import PostgresBacking

        return PostgresBacking(url)
    raise InvalidParameters(f"`database` cannot be {kind}.", hint="Use a sqlite or a postgresql URL.")
