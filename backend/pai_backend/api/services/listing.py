"""The job list: which jobs a query means, as far as its sender may see them."""

from __future__ import annotations

from pai_backend.api.context import ApiContext
from pai_backend.api.queries import ListQuery, words
from pai_backend.auth.policy import sight_of
from pai_backend.auth.users import User
from pai_backend.model.job import State
from pai_backend.store.base import JobFilter, JobSummary


class ListService:
    """Pages of the list."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def page(
        self, user: User, query: ListQuery, *, default_limit: int, owner: str = "", version: int = 2
    ) -> tuple[list[JobSummary], int]:
        """A page, and the number that match if the query asks for it; of one ``owner`` only, when given.

        Raises InvalidParameters for an unknown order.
        """
        field, _, direction = query.order.partition(",")
        limit = query.limit if query.limit is not None else default_limit
        which = JobFilter(
            sight=sight_of(user),
            usernames=(owner,) if owner else words(query.username),
            states=_states(query.states, version),
            virtual_clusters=words(query.vc),
            priorities=query.priorities,
            with_tags=words(query.tags_contain),
            without_tags=words(query.tags_not_contain),
            gpu_types=words(query.gpu_type),
            keyword=query.keyword,
            submitted_since=query.submitted_since,
            order=field,
            descending=direction != "ASC",
            offset=query.offset,
            limit=limit,
            count=query.with_total_count,
        )
        return await self._ctx.store.jobs.page(which)


def _states(asked: tuple[State, ...], version: int) -> tuple[State, ...]:
    """In REST v1 a job that is being stopped still runs."""
    return (*asked, State.STOPPING) if version == 1 and State.RUNNING in asked else asked
