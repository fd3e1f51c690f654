"""Parameters and bodies of requests; an unknown one is an error, not a shrug."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import AwareDatetime, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from pai_backend.model.base import Model
from pai_backend.model.job import Desired, State
from pai_backend.model.spec import PriorityClass
from pai_backend.protocol.own_fields import MAX_NAME
from pai_backend.protocol.schema import FormDialect
from pai_backend.scheduling.jobs.reorder import Side

DEFAULT_PAGE, DEFAULT_OPENPAI_PAGE, MAX_PAGE = 100, 5000, 50_000  # the latter two are OpenPAI's
MAX_LISTED = 10_000
MAX_WORDS = 100  # of a list in a parameter: each tag is a condition of its own, and SQLite takes 1,000 at most
MAX_SEQ = 2**53 - 1  # largest whole number that JSON readers in browsers keep exact


class Query(Model):
    """Base of URL parameters; names are camelCase in the URL."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class StreamQuery(Query):
    """What all streams take."""

    heartbeat: int | None = Field(
        default=None,
        ge=1,
        le=60,
        description="Send an empty text message after as many seconds without another one; default: none.",
    )


class Body(Model):
    """Base of JSON bodies; names are camelCase and nothing else."""

    model_config = ConfigDict(alias_generator=to_camel)


class SubmitQuery(Query):
    """How to take a document."""

    name: str | None = Field(default=None, description="Name of the job instead of the document's.")
    filename: str = Field(default="", max_length=255, description="The file's name; kept, and tells JSON from YAML.")
    replace: bool = Field(
        default=False,
        description="Take the place of the job that has the name, or holds the workspace name: it is stopped.",
    )
    address: str | None = Field(default=None, description="Workspace name instead of the document's.")
    secrets_of: str | None = Field(
        default=None, description="A job of the caller's: masked values of the document are those of that job."
    )


class DocumentQuery(Query):
    """How to show a document."""

    masked: bool = Field(default=False, description="Mask the values of secrets, for their owner, too.")


class ValidateQuery(Query):
    """How to read a document."""

    filename: str = Field(default="", max_length=255, description="The file's name; tells JSON from YAML.")
    secrets_of: str | None = Field(default=None, description="As for a submission.")


class KeepQuery(Query):
    """How a document is kept."""

    filename: str = Field(default="", max_length=255, description="The file's name; tells JSON from YAML.")


class SchemaQuery(Query):
    """Which documents the schema is of."""

    dialect: FormDialect = Field(default=FormDialect.V2, description="v1, qizhi, scm or v2.")


NO_PRIORITY = "default"
"""OpenPAI's word for a job that names no priority class."""


def words(text: str) -> tuple[str, ...]:
    """The parts of a list that is separated by commas, each once; empty ones do not count."""
    return tuple(dict.fromkeys(filter(None, text.split(","))))


class ListQuery(Query):
    """Which jobs, in which order. Lists are separated by commas; an empty one restricts nothing."""

    state: str = Field(default="", description="States.")
    username: str = Field(default="", description="Owners.")
    vc: str = Field(default="", description="Virtual clusters.")
    tags_contain: str = Field(default="", description="Only jobs with any of these tags.")
    tags_not_contain: str = Field(default="", description="Only jobs with none of these tags.")
    job_priority: str = Field(default="", description="Priority classes; `default` is that of jobs that name none.")
    gpu_type: str = Field(
        default="", description="GPU types, as in the cluster: only jobs that ask for one of these, or hold or held it."
    )
    keyword: str = Field(
        default="", max_length=255, description="Only jobs whose name, user or virtual cluster holds this text."
    )
    submitted_since: AwareDatetime | None = Field(
        default=None, description="Only jobs that were submitted at this time or later, such as 2026-11-25T00:00:00Z."
    )
    order: str = Field(default="submissionTime,DESC", description="`field,ASC` or `field,DESC`.")
    offset: int = Field(default=0, ge=0, le=MAX_SEQ)
    limit: int | None = Field(
        default=None, ge=0, le=MAX_PAGE, description="Rows at most; 5000, or 100 in our own shape, when not given."
    )
    with_total_count: bool = Field(default=False, description="Answer `{totalCount, data}`.")

    @field_validator("username", "vc", "tags_contain", "tags_not_contain", "gpu_type")
    @classmethod
    def _lists_are_short(cls, value: str) -> str:
        if len(words(value)) > MAX_WORDS:
            raise ValueError(f"must list at most {MAX_WORDS}")
        return value

    @field_validator("gpu_type")
    @classmethod
    def _types_are_names(cls, value: str) -> str:
        if any(len(word) > MAX_NAME or not word.isprintable() for word in words(value)):
            raise ValueError(
                f"must be a list of GPU types, such as V100,A100: printable, at most {MAX_NAME} characters"
            )
        return value

    @field_validator("state")
    @classmethod
    def _states_are_known(cls, value: str) -> str:
        known = [state.value for state in State]
        if any(word not in known for word in words(value)):
            raise ValueError(f"must be a list of {', '.join(known)}")
        return value

    @field_validator("job_priority")
    @classmethod
    def _priorities_are_known(cls, value: str) -> str:
        known = [NO_PRIORITY, *PriorityClass]
        if any(word not in known for word in words(value)):
            raise ValueError(f"must be a list of {', '.join(known)}")
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
        return tuple(State(word) for word in words(self.state))

    @property
    def priorities(self) -> tuple[str | None, ...]:
        """The priority classes asked for; None is that of jobs that name none."""
        return tuple(None if word == NO_PRIORITY else word for word in words(self.job_priority))


class ExecutionType(Model):
    """The change of a job that OpenPAI knows."""

    value: Desired = Field(
        description="STOP ends the job; START runs a job that has ended again, and leaves one that goes on alone."
    )


class ReleaseQuery(Query):
    """Which of a job's kept tasks."""

    task: str | None = Field(
        default=None,
        max_length=10_000,
        description="Names of tasks, `role-index`, separated by commas; all that are kept if absent.",
    )

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names, or None for all."""
        return None if self.task is None else tuple(self.task.split(","))


class MoveBody(Model):
    """Where in the queue a waiting job shall stand; one of the three."""

    before: str | None = Field(default=None, min_length=1, max_length=600, description="The job that it shall precede.")
    after: str | None = Field(default=None, min_length=1, max_length=600, description="The job that it shall follow.")
    to: Literal["first", "last"] | None = Field(
        default=None, description="An end of the queue; for other users, of their own jobs in it."
    )

    @model_validator(mode="after")
    def _names_one_place(self) -> Self:
        if sum(each is not None for each in (self.before, self.after, self.to)) != 1:
            raise ValueError("must have one of before, after and to")
        return self

    @property
    def side(self) -> Side:
        """On which side of the other job, or at which end."""
        return Side.BEFORE if self.before is not None or self.to == "first" else Side.AFTER

    @property
    def other(self) -> str | None:
        """The other job; None for an end of the queue."""
        return self.before or self.after


class EventsQuery(Query):
    """Which part of a job's history."""

    after: int = Field(default=0, ge=0, le=MAX_SEQ, description="Only events with a greater `seq`.")
    type: Literal["", "Normal", "Warning"] = Field(
        default="", description="In OpenPAI's shape, only events of this type."
    )


class EventsStreamQuery(StreamQuery, EventsQuery):
    """Which part of a job's history to push."""


class PodsQuery(Query):
    """Which pods."""

    namespace: str | None = Field(default=None, description="OpenPAI's; has no effect here.")


class UseOverTimeQuery(Query):
    """Of which task, since when, and how finely; the latest day of all tasks when nothing is said."""

    role: str | None = Field(default=None, description="Tasks of this role alone.")
    index: int | None = Field(
        default=None, ge=0, description="The task of this index alone; of each role, without one."
    )
    seconds: int = Field(default=86_400, ge=1, le=604_800, description="How far back; at most a week.")
    points: int = Field(default=240, ge=1, le=10_080, description="At most so many samples of a task.")


class UsageQuery(Query):
    """Of which time, and by what hours are told apart; the last 30 days when nothing is said."""

    by: str = Field(default="user,vc,type", max_length=100, description="Of user, group, vc, type, day, job, quota.")
    since: AwareDatetime | None = Field(default=None, description="A moment such as 2026-11-01T00:00:00Z.")
    until: AwareDatetime | None = Field(default=None, description="The same; now, without one.")
    daily: bool = Field(default=False, description="Whether each row has its hours of each day, too; not by day.")


class UseNowQuery(Query):
    """How much of the past to tell of each task."""

    points: int = Field(default=0, ge=0, le=60, description="So many samples of the last hour for a small curve.")


class ClusterQuery(Query):
    """What to tell about virtual clusters."""

    nodes: str | None = Field(default=None, description="Return nodes instead.")


class ReadyQuery(Query):
    """Ready for what."""

    check: str | None = Field(
        default=None,
        description="Only this check, such as `database`: an API that answers is of use while the controller is away.",
    )


class StoragesQuery(Query):
    """Which storages."""

    default: str | None = Field(default=None, description="Only those that jobs get without asking: none are.")


class SkuQuery(Query):
    """Of which virtual cluster."""

    vc: str | None = Field(default=None, description="Only what this virtual cluster can use.")


class TagBody(Model):
    """A tag."""

    value: str = Field(min_length=1, max_length=64, description="The tag: printable text without a comma.")

    @field_validator("value")
    @classmethod
    def _can_stand_in_a_list(cls, value: str) -> str:
        if "," in value or not value.isprintable():
            raise ValueError("must be printable text without a comma")
        return value


class AllEventsQuery(StreamQuery):
    """Where in the history of all jobs to begin."""

    position: str | None = Field(default=None, max_length=200, description="As in a message; default: now.")


class FileQuery(Query):
    """Which part of a file, or which page of a directory."""

    offset: int = Field(default=0, ge=0, le=MAX_SEQ, description="First byte of a file.")
    length: int | None = Field(default=None, ge=0, le=MAX_SEQ, description="Bytes of a file at most.")
    after: str = Field(default="", max_length=255, description="Only names after this one, of a directory.")
    limit: int = Field(default=1000, ge=1, le=MAX_LISTED, description="Entries at most, of a directory.")


class UploadQuery(Query):
    """Where in a file the bytes of a request belong."""

    offset: int = Field(default=0, ge=0, le=MAX_SEQ, description="Byte of the file that the body begins at.")
    size: int | None = Field(
        default=None, ge=0, le=MAX_SEQ, description="Bytes of the whole file; default: it ends with this request."
    )
    sha256: str = Field(
        default="", pattern=r"^([0-9a-f]{64})?$", description="Of the whole file; checked when it is complete."
    )
    replace: bool = Field(default=True, description="False: 409 where a file has that name already.")


class RemoveQuery(Query):
    """How to remove."""

    recursive: bool = Field(default=False, description="A directory with all that is in it.")


class NewPath(Model):
    """What to make at a path."""

    source: str | None = Field(
        default=None, max_length=4096, description="File or directory to copy; default: make an empty directory."
    )


class TaskQuery(Query):
    """Which task of the job."""

    role: str | None = Field(default=None, description="Task role; default: the first that has the service.")
    index: int = Field(default=0, ge=0, le=MAX_SEQ)


class TicketQuery(TaskQuery):
    """Which service to sign in to, and for an administrator why."""

    reason: str = Field(
        default="", max_length=300, description="Why an administrator enters another user's job; the owner sees it."
    )


class KeyFileQuery(Query):
    """The proof that the caller may fetch a key."""

    ticket: str = Field(max_length=2000, description="From the link; valid once.")
