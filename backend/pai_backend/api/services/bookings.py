"""Reservations: all who may use a virtual cluster see its own, its managers and administrators make and remove them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pai_backend.api.booking_wire import BookingList, BookingWire, NewBooking
from pai_backend.api.context import ApiContext
from pai_backend.api.large_texts import in_turn
from pai_backend.api.services.keys import require_account
from pai_backend.auth.policy import administers, may_see
from pai_backend.auth.users import User
from pai_backend.model.booking import Booking
from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchJob, NoVirtualCluster
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.text import Text
from pai_backend.model.vc_rules import LEAST_LEFT
from pai_backend.scheduling.jobs.change import rebuilt
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.reserving import OwnedGpus, in_the_way, unowned
from pai_backend.store.bookings import new_id
from pai_backend.store.grants import Act

FURTHEST = timedelta(days=366)
"""A reservation begins at most so long from now, and lasts no longer."""
MOST = 200
"""Reservations there may be that are not over: each start looks at those of its virtual cluster."""
TRIES = 5
"""How often a reservation is looked at again because another was made at the same moment."""
MOST_NAMED = 10


class BookingService:
    """Reservations. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source

    async def bookings(self, user: User) -> BookingList:
        """Those of virtual clusters that the caller may use or administers."""
        directory = await self._ctx.store.groups.directory()
        found = [each for each in await self._ctx.store.bookings.all() if self._sees(user, each.vc)]
        shown = [await self._shown(user, each.with_members(directory)) for each in found]
        mine = tuple(vc for vc in self._ctx.virtual_clusters if self._may_change(user, vc))
        return BookingList(data=tuple(shown), may_reserve=mine)

    async def add(self, user: User, new: NewBooking) -> BookingWire:
        """Make one. Raises Forbidden, NoVirtualCluster, NoSuchUser, NoSuchGroup, InvalidParameters."""
        await self._ctx.live_rules.refresh(at_once=True)
        self._require(user, new.virtual_cluster)
        for name in new.users:
            await require_account(self._ctx, name)
        now = self._ctx.clock()
        booking = _booking(new, now)
        for _ in range(TRIES):
            before = await self._ctx.store.bookings.all()
            stops = await self._require_room(booking, before, now, end_others=new.end_others)
            made = replace(booking, stops=stops, made_at=now, made_by=user.name)
            if await self._ctx.store.bookings.add(made, [each.id for each in before], self._act(user)):
                await self._ctx.live_rules.refresh(at_once=True)
                return await self._shown(user, made.with_members(await self._ctx.store.groups.directory()))
        raise InvalidParameters(Text("Other reservations are being made."), hint=Text("Try again in a moment."))

    async def remove(self, user: User, id_: str) -> None:
        """Remove one. Raises Forbidden, and InvalidParameters for one that the caller does not see."""
        found = next((each for each in await self._ctx.store.bookings.all() if each.id == id_), None)
        if found is not None and self._sees(user, found.vc):
            self._require(user, found.vc)
            await self._ctx.store.bookings.remove(id_, self._act(user))
            await self._ctx.live_rules.refresh(at_once=True)
            return
        raise InvalidParameters(
            Text("No reservation has the id {id}.", id=repr(id_[:100])), hint=Text("`pai reserve list` shows the ids.")
        )

    # -- who ---------------------------------------------------------------------------------------------------------

    def _sees(self, user: User, vc: str) -> bool:
        return administers(user, vc) or self._ctx.rules.granted(user, vc)

    def _may_change(self, user: User, vc: str) -> bool:
        """Managers change what their virtual cluster owns; without configured cells all use the whole cluster."""
        owns = self._ctx.rules.config is not None
        return administers(user, vc) and (owns or (user.admin and not user.within))

    def _require(self, user: User, vc: str) -> None:
        known = self._ctx.virtual_clusters
        if vc not in known:
            raise NoVirtualCluster(
                Text("There is no virtual cluster {vc}.", vc=repr(vc[:100])),
                hint=Text("There are: {known}.", known=", ".join(known)),
            )
        if self._may_change(user, vc):
            return
        if administers(user, vc):
            raise Forbidden(
                Text("GPUs are reserved by administrators: without configured cells no virtual cluster owns any."),
                hint=Text("Ask an administrator."),
            )
        raise Forbidden(
            Text("GPUs of the virtual cluster {vc} are reserved by its managers and by administrators.", vc=vc),
            hint=Text("Ask one of them."),
        )

    # -- whether there is room ---------------------------------------------------------------------------------------

    async def _require_room(
        self, new: Booking, before: Sequence[Booking], now: datetime, *, end_others: bool
    ) -> frozenset[JobUid]:
        """The jobs that have to end for it. Raises InvalidParameters."""
        others = [each for each in before if each.ends > now]
        if len(others) >= MOST:
            raise InvalidParameters(
                Text("There are {most} reservations, which is the limit.", most=MOST),
                hint=Text("Remove those not needed."),
            )
        jobs = await self._ctx.store.jobs.unfinished()
        missing, stops = await in_turn(lambda: self._tried(new, others, jobs, now))
        if missing is not None:
            raise _beyond(new, missing)
        if stops and not end_others:
            names = _names(stops, jobs)
            raise InvalidParameters(
                Text("Jobs hold these GPUs that do not end before {begins}: {names}.", begins=_time(new), names=names),
                hint=Text("Choose another time, or let them be stopped then with `--end-others`."),
            )
        if stops and new.begins < now + LEAST_LEFT:
            raise InvalidParameters(
                Text("Jobs that are to be stopped need 10 minutes: {names}.", names=_names(stops, jobs)),
                hint=Text("Let the reservation begin later."),
            )
        return frozenset(stops)

    def _tried(
        self, new: Booking, others: Sequence[Booking], jobs: Sequence[Job], now: datetime
    ) -> tuple[OwnedGpus | None, tuple[JobUid, ...]]:
        """What the virtual cluster lacks for it, and which jobs are in its way; nodes are taken to be well by then."""
        rules = self._ctx.rules
        healed = [node.model_copy(update={"ready": True, "schedulable": True}) for node in self._ctx.nodes()]

        def copy(held: Sequence[Job]) -> Placer:
            return rebuilt(
                rules.config,
                healed,
                held,
                cells_for_all=rules.cells_for_all,
                rules=rules.node_rules,
                policy=rules.policy,
            )

        missing = unowned(copy(()), new, others, now)
        return missing, () if missing is not None else in_the_way(copy(jobs), new, others, now)

    # -- how it is told ----------------------------------------------------------------------------------------------

    async def _shown(self, user: User, booking: Booking) -> BookingWire:
        return BookingWire(
            id=booking.id,
            virtual_cluster=booking.vc,
            name=booking.name,
            gpus=booking.gpus,
            gpu_type=booking.gpu_type,
            one_node=booking.one_node,
            begins=booking.begins,
            ends=booking.ends,
            users=booking.users,
            groups=booking.groups,
            stops=tuple([name for uid in sorted(booking.stops) if (name := await self._job(user, uid))]),
            is_yours=self._ctx.rules.granted(user, booking.vc) and booking.admits(user.name, booking.vc),
            made_at=booking.made_at or booking.begins,
            made_by=booking.made_by,
            may_remove=self._may_change(user, booking.vc),
        )

    async def _job(self, user: User, uid: JobUid) -> str:
        """The name of a job that the caller may see; empty: it is gone, or another user's."""
        try:
            job = await self._ctx.store.jobs.get(uid)
        except NoSuchJob:
            return ""
        return job.id if may_see(user, job) else ""

    def _act(self, user: User) -> Act:
        return Act(user.name, self._ctx.clock(), self._source)


def _booking(new: NewBooking, now: datetime) -> Booking:
    """The reservation that is asked for. Raises InvalidParameters for its time."""
    begins = now if new.begins is None else max(new.begins, now)
    if new.ends <= now:
        raise InvalidParameters(Text("The reservation is over already."), hint=Text("Give a later end."))
    if begins > now + FURTHEST or new.ends - begins > FURTHEST:
        raise InvalidParameters(
            Text("A reservation begins within a year, and lasts a year at most."), hint=Text("Give other times.")
        )
    return Booking(
        new_id(),
        new.virtual_cluster,
        new.name,
        new.gpus,
        begins,
        new.ends,
        gpu_type=new.gpu_type,
        one_node=new.one_node,
        users=tuple(dict.fromkeys(new.users)),
        groups=tuple(dict.fromkeys(new.groups)),
    )


def _beyond(new: Booking, owned: OwnedGpus) -> InvalidParameters:
    numbers = {"vc": new.vc, "owned": owned.gpus, "gpus": new.gpus}
    kind = Text("{type} GPUs", type=new.gpu_type) if new.gpu_type else Text("GPUs of one kind")
    if owned.others:
        names = ", ".join(f"{each.name} ({each.gpus})" for each in owned.others[:MOST_NAMED])
        message = Text(
            "The virtual cluster {vc} owns {owned} {kind}, and has no room for {gpus} more beside what is reserved at "
            "that time: {names}.",
            **numbers,
            kind=kind,
            names=names,
        )
    elif new.one_node and owned.gpus >= new.gpus:
        message = Text("The virtual cluster {vc} does not own {gpus} {kind} in one node.", **numbers, kind=kind)
    else:
        message = Text("The virtual cluster {vc} owns {owned} {kind}, and not {gpus}.", **numbers, kind=kind)
    return InvalidParameters(message, hint=Text("Ask for fewer GPUs, or choose another time."))


def _names(uids: Sequence[JobUid], jobs: Sequence[Job]) -> str:
    known = {job.uid: job.id for job in jobs}
    more = f" (+{len(uids) - MOST_NAMED})" if len(uids) > MOST_NAMED else ""
    return ", ".join(known[uid] for uid in uids[:MOST_NAMED]) + more


def _time(booking: Booking) -> str:
    return f"{booking.begins:%Y-%m-%d %H:%M} UTC"
