"""The rules of a virtual cluster that its managers set while the backend runs. Pure values.

What the settings limit under ``queue`` goes before: a rule counts where they set nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import translate
from functools import lru_cache

from pydantic import Field

from pai_backend.model.base import Model
from pai_backend.model.spec import JobSpec, PriorityClass
from pai_backend.model.text import Text

MOST_LISTED = 100
"""GPU types or patterns of images that one rule holds at most."""
LONGEST_S = 365 * 86_400
SHORTEST_IDLE_S = 600
"""The shortest time of the idle rule: less than that is a pause between two epochs."""
LONGEST_IDLE_S = 86_400
"""The longest one: the controller holds the samples of twice that time for each job that it holds for."""
_HUB = "docker.io"
LEAST_LEFT = timedelta(minutes=10)
"""A shortened longest run ends no attempt sooner than this after the change."""


class VcRules(Model):
    """What jobs of one virtual cluster may do; null is no rule. An empty list allows nothing."""

    most_gpus_per_user: int | None = Field(default=None, ge=0, description="GPUs of each user that run at once.")
    most_jobs_per_user: int | None = Field(default=None, ge=0, description="Jobs of each user that run at once.")
    longest_run_s: int | None = Field(
        default=None, ge=1, le=LONGEST_S, description="Seconds for which an attempt of a job may run."
    )
    gpu_types: tuple[str, ...] | None = Field(
        default=None,
        description="The types (skuType, gpuType) of GPUs that jobs may use; a task with GPUs then has to name one, "
        "unless it names a pinned cell.",
    )
    images: tuple[str, ...] | None = Field(
        default=None, description="Patterns of images that tasks may run in, such as `registry.example.com/*`."
    )
    priorities: tuple[PriorityClass, ...] | None = Field(default=None, description="The priority classes of jobs.")
    idle_below_percent: float | None = Field(
        default=None, gt=0, le=100, description="A job whose GPUs work less than this on average is underused."
    )
    idle_for_s: int | None = Field(
        default=None, ge=SHORTEST_IDLE_S, le=LONGEST_IDLE_S, description="Seconds over which that is averaged."
    )
    idle_stops: bool = Field(default=True, description="An underused job is stopped; false: its owner is only warned.")


@dataclass(frozen=True)
class KeptRules:
    """Rules as they are stored. ``longest_run_at``: when that of runs was last changed; None: it never was."""

    rules: VcRules
    changed_at: datetime
    changed_by: str
    longest_run_at: datetime | None = None


@dataclass(frozen=True)
class LongestRun:
    """For how long an attempt may run; ``since`` when that is the rule, None: before any attempt began."""

    after: timedelta
    since: datetime | None = None

    def end(self, began: datetime) -> datetime:
        """When an attempt that began then has to end."""
        end = began + self.after
        return end if self.since is None or began >= self.since else max(end, self.since + LEAST_LEFT)


@dataclass(frozen=True)
class Breach:
    """What a job asks for and its virtual cluster does not allow. ``role``: of that task role; empty: of the job."""

    rule: str
    """Name of the field of :class:`VcRules`."""
    role: str
    message: Text
    hint: Text


def breaches(spec: JobSpec, rules: VcRules) -> list[Breach]:
    """Everything of a job that its virtual cluster does not allow."""
    found, vc = [], spec.virtual_cluster
    wanted = spec.scheduling.priority_class or PriorityClass.TEST
    if rules.priorities is not None and wanted not in rules.priorities:
        message = Text("virtual cluster {vc} does not allow the priority class {wanted}", vc=vc, wanted=wanted.value)
        found.append(Breach("priorities", "", message, _one_of(Text("the priority class"), rules.priorities)))
    for role in spec.task_roles:
        kind = role.sku_type or spec.gpu_type or ""
        takes_cells = (role.resources.gpus or role.sku_type) and not role.pinned_cell_id
        if rules.gpu_types is not None and takes_cells and kind not in rules.gpu_types:
            said = Text("the GPU type {kind}", kind=kind) if kind else Text("GPUs of a type that the job does not name")
            message = Text(
                "virtual cluster {vc} does not allow {said} (task role {role})", vc=vc, said=said, role=role.name
            )
            found.append(Breach("gpu_types", role.name, message, _one_of(Text("the GPU type"), rules.gpu_types)))
        image = spec.image_of(role)
        if rules.images is not None and not any(matches(image, pattern) for pattern in rules.images):
            said = Text("the image {image}", image=image)
            message = Text(
                "virtual cluster {vc} does not allow {said} (task role {role})", vc=vc, said=said, role=role.name
            )
            found.append(Breach("images", role.name, message, _one_of(Text("an image that matches"), rules.images)))
    return found


def _one_of(what: Text, allowed: Sequence[str]) -> Text:
    if not allowed:
        return Text("Ask a manager of the virtual cluster, or use another one: this one allows none.")
    return Text("Choose {what}: {allowed}; or use another virtual cluster.", what=what, allowed=" or ".join(allowed))


def full_reference(image: str) -> str:
    """An image with its registry, its repository, and its digest or else its tag, as Docker completes a short name.

    ``python`` is ``docker.io/library/python:latest``. Registry and repository are in lower case; a tag keeps its case,
    and is left out beside a digest, which decides alone what is pulled.
    Source: github.com/distribution/reference, ParseNormalizedNamed and TagNameOnly.
    """
    name, at, digest = image.strip().partition("@")
    first, slash, rest = name.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        first, rest = _HUB, name
    path, _, tag = rest.partition(":")
    repository = _repository(first, path)
    return f"{repository}@{digest}" if at else f"{repository}:{tag or 'latest'}"


def matches(image: str, pattern: str) -> bool:
    """Whether an image is one of a pattern, which is completed as the image is, but for tag and digest.

    ``*`` stands for any text, slashes included, ``?`` for one character, ``[…]`` for one of those; ``*`` alone is every
    image. What stands before the first slash is a registry when it has one of these signs, a dot or a colon. A pattern
    without tag and digest is every image of its repositories.
    """
    reference = full_reference(image)
    expression, is_whole = _expression(pattern)
    if is_whole:
        return bool(expression.fullmatch(reference))
    name = reference.partition("@")[0]
    head, _, last = name.rpartition("/")
    return bool(expression.fullmatch(f"{head}/{last.partition(':')[0]}"))


def _repository(registry: str, path: str) -> str:
    registry = registry.lower()
    if registry == "index.docker.io":
        registry = _HUB
    return f"{registry}/{'library/' if registry == _HUB and '/' not in path else ''}{path.lower()}"


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> tuple[re.Pattern[str], bool]:
    """What a pattern means, and whether it says something of tag or digest."""
    pattern = pattern.strip()
    if pattern == "*":
        return re.compile(".*", re.DOTALL), False
    name, at, digest = pattern.partition("@")
    first, slash, rest = name.partition("/")
    if not slash or not (any(sign in first for sign in ".:*?[") or first == "localhost"):
        first, rest = _HUB, name
    path, colon, tag = rest.partition(":")
    everything = first.lower() == _HUB and path == "*"
    repository = f"{_HUB}/*" if everything else _repository(first, path)
    return re.compile(translate(f"{repository}{colon}{tag}{at}{digest}")), bool(colon or at)
