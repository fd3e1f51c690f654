"""``…/pai/sweeps/…`` of the Jupyter server: submit a document as a sweep, list the jobs of one, submit it again."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

from typing_extensions import TypedDict

from jupyter_pai import sweeps
from jupyter_pai.answering import AnsweringHandler, invalid, member
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import JOBS
from pai_backend.model.text import Text

_NAME = re.compile(r"[A-Za-z0-9._~-]{1,200}")


class SweptValues(TypedDict):
    """A job of a sweep: its uid and name, and the values by which it differs from the others."""

    uid: str
    name: str
    values: dict[str, str]


class SweepShown(TypedDict):
    """The jobs of a sweep in its order. What they differ in does not change; their states are in the list of jobs."""

    name: str
    jobs: list[SweptValues]


class SubmittedSweep(TypedDict):
    """A new sweep and the number of its jobs."""

    name: str
    jobs: int


class SweepsHandler(AnsweringHandler):
    """Submits sweeps."""

    @authenticated
    @authorized("write", JOBS)
    async def post(self) -> None:
        """A job for each combination of values: ``document``, ``axes`` such as ``lr=0.1,0.01``, ``parallel``."""
        await self.answer(self._submit())

    async def _submit(self) -> SubmittedSweep:
        asked = self.asked()
        document = member(asked, "document", str, "").encode()
        parallel = member(asked, "parallel", int, None)
        if parallel is not None and parallel < 1:
            raise invalid(
                Text("{name} is less than 1.", name="parallel"),
                Text("Give a number from 1, or leave it out for no limit."),
            )
        secrets_of = member(asked, "secretsOf", str, None)
        axes = dict(_axis(text) for text in member(asked, "axes", list, []))
        if not axes:
            raise invalid(Text("The sweep has no values."), Text("Give a line such as lr=0.1,0.01."))
        # A document may have a megabyte, and there is one for each job.
        made = await asyncio.to_thread(sweeps.members, document, axes, _name(asked.get("name", "")), parallel)
        own = [replace(each, secrets_of=secrets_of) for each in made]
        return await self._submitted(own)

    async def _submitted(self, made: list[sweeps.SweepMember]) -> SubmittedSweep:
        jobs = await sweeps.submit(await self.link.client(), made, self.log.info)
        return {"name": made[0].name.rpartition("-")[0], "jobs": len(jobs)}


def _axis(text: object) -> tuple[str, tuple[str, ...]]:
    try:
        return sweeps.axis(str(text))
    except ValueError as error:
        raise invalid(f"{error}.", Text("Give a line such as lr=0.1,0.01 or seed=1..5.")) from None


def _name(text: object) -> str:
    """A name of a sweep, or an empty one. Raises ClientError."""
    if text != "" and not (isinstance(text, str) and _NAME.fullmatch(text)):
        raise invalid(Text("'{text}' is not a name for jobs.", text=text), Text("Use letters, digits, - and _."))
    return text


class SweepHandler(SweepsHandler):
    """One sweep of the user's."""

    @authenticated
    @authorized("read", JOBS)
    async def get(self, name: str) -> None:
        """List its jobs with their values."""
        await self.answer(self._shown(name))

    async def _shown(self, name: str) -> SweepShown:
        found = await sweeps.find(await self.link.client(), name)
        return {
            "name": name,
            "jobs": [{"uid": each.job["uid"], "name": each.job["name"], "values": dict(each.values)} for each in found],
        }

    @authenticated
    @authorized("write", JOBS)
    async def post(self, name: str) -> None:  # type: ignore[override]  # the route has a part more
        """Submit all its jobs again, as a sweep of the name in the body."""
        await self.answer(self._clone(name))

    async def _clone(self, name: str) -> SubmittedSweep:
        new = _name(self.asked().get("name", ""))
        if not new:
            raise invalid(Text("The new sweep has no name."), Text("Give it one."))
        jobs = await sweeps.find(await self.link.client(), name)
        return await self._submitted(list(sweeps.cloned(jobs, new)))
