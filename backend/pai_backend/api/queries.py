"""Parameters and bodies of requests; an unknown one is an error, not a shrug."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from pai_backend.engine.base import LogStream
from pai_backend.model.base import Model
from pai_backend.model.job import State

MAX_PAGE = 1000
DEFAULT_LOG_BYTES = 1_048_576
MAX_LOG_BYTES = 16_777_216
MAX_SEQ = 2**53 - 1  # largest whole number that JSON readers in browsers keep exact


class Query(Model):
    """Base of URL parameters; names are camelCase in the URL."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class SubmitQuery(Query):
    """How to take a document."""

    name: str | None = Field(default=None, description="Name of the job instead of the document's.")
    filename: str = Field(default="", max_length=255, description="The file's name; kept, and tells JSON from YAML.")


class ValidateQuery(Query):
    """How to read a document."""

    filename: str = Field(default="", max_length=255, description="The file's name; tells JSON from YAML.")


class ListQuery(Query):
    """Which jobs, in which order."""

    state: str = Field(default="", description="States, separated by commas.")
    username: str | None = Field(default=None, description="Only jobs of this user.")
    vc: str | None = Field(default=None, description="Only jobs of this virtual cluster.")
    keyword: str = Field(default="", max_length=255, description="Only jobs whose name holds this text.")
    order: str = Field(default="submissionTime,DESC", description="`field,ASC` or `field,DESC`.")
    offset: int = Field(default=0, ge=0, le=MAX_SEQ)
    limit: int = Field(default=100, ge=0, le=MAX_PAGE)
    with_total_count: bool = Field(default=False, description="Answer `{totalCount, data}`.")

    @field_validator("state")
    @classmethod
    def _states_are_known(cls, value: str) -> str:
        words = [state.value for state in State]
        for word in filter(None, value.split(",")):
            if word not in words:
                raise ValueError(f"must be a list of {', '.join(words)}")
        return value

    @field_validator("order")
    @classmethod
    def _order_has_a_direction(cls, value: str) -> str:
        if value.partition(",")[2] not in ("", "ASC", "DESC"):
            raise ValueError("must be a field, or a field with ,ASC or ,DESC")
        return value

    @property
    def states(self) -> tuple[State, ...]:
        """The states asked for; none means all."""
        return tuple(State(word) for word in self.state.split(",") if word)


class ExecutionType(Model):
    """The change of a running job that OpenPAI knows."""

    value: Literal["STOP"] = Field(description="STOP ends the job.")


class EventsQuery(Query):
    """Where in a job's history to begin."""

    after: int = Field(default=0, ge=0, le=MAX_SEQ, description="Only events with a greater `seq`.")


class AllEventsQuery(Query):
    """Where in the history of all jobs to begin."""

    position: str | None = Field(default=None, max_length=200, description="As a message gave it; none is now.")


class FollowQuery(Query):
    """Which log to follow from where."""

    role: str | None = Field(default=None, description="Task role; none is the first.")
    index: int = Field(default=0, ge=0, le=MAX_SEQ)
    attempt: int | None = Field(default=None, ge=0, le=MAX_SEQ, description="Attempt of the job; none is the current.")
    stream: LogStream = LogStream.ALL
    offset: int = Field(default=0, ge=-MAX_SEQ, le=MAX_SEQ, description="First byte; negative counts from the end.")


class LogQuery(FollowQuery):
    """Which part of a log to read."""

    limit: int = Field(default=DEFAULT_LOG_BYTES, ge=0, le=MAX_LOG_BYTES, description="Bytes at most.")


class TaskQuery(Query):
    """Which task of the job."""

    role: str | None = Field(default=None, description="Task role; none is the first that has the service.")
    index: int = Field(default=0, ge=0, le=MAX_SEQ)


class NewKey(Model):
    """An SSH public key to register."""

    public_key: str = Field(max_length=32768, description="One line of a `.pub` file.")
    comment: str = Field(default="", max_length=200)

    @field_validator("comment")
    @classmethod
    def _comment_is_one_line(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("must be one line of printable text")
        return value
