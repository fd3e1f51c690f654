"""What a job document chooses of its pods on Kubernetes, and what an administrator lets documents choose.

Source of the rule for names: Kubernetes documentation, "Object Names and IDs" (RFC 1123 subdomains).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from pai_backend.model.base import Model
from pai_backend.model.text import Text

_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
NAME_RULE: Final = Text("lower case letters, digits, '-' and '.', at most 253 characters")


def is_object_name(name: str) -> bool:
    """Whether an object of a cluster can have this name."""
    return bool(_OBJECT_NAME.fullmatch(name)) and len(name) <= 253


def _object_name(name: str) -> str:
    if not is_object_name(name):
        raise ValueError("must be the name of an object of the cluster: lower case letters, digits, '-' and '.'")
    return name


ObjectName = Annotated[str, AfterValidator(_object_name)]


class PodChoice(Model):
    """What a document says of its pods; empty where the administrator's settings count."""

    priority_class: str = Field(default="", description="PriorityClass of the pods.")
    runtime_class: str = Field(default="", description="RuntimeClass of the pods.")
    service_account: str = Field(default="", description="ServiceAccount of the pods; they never get its token.")
    image_pull_secrets: tuple[str, ...] = Field(
        default=(), description="Secrets of the tasks' namespace that their images may be fetched with."
    )

    @property
    def names(self) -> tuple[str, ...]:
        """All objects of the cluster that it names."""
        return tuple(name for field in FIELDS for name in self.of(field))

    def of(self, field: str) -> tuple[str, ...]:
        """The names that an attribute holds."""
        value = getattr(self, field)
        return value if isinstance(value, tuple) else (value,) if value else ()

    def written(self) -> dict[str, object]:
        """As a document says it."""
        values = {name: getattr(self, field) for field, name in FIELDS.items()}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value}


FIELDS: Final = {
    "priority_class": "priorityClass",
    "runtime_class": "runtimeClass",
    "service_account": "serviceAccount",
    "image_pull_secrets": "imagePullSecrets",
}
"""Attribute -> its name in a document."""


@dataclass(frozen=True)
class DisallowedName:
    """A name that a document may not choose, and what it may say there."""

    field: str
    index: int | None
    """Its place in a list."""
    name: str
    allowed: tuple[str, ...]


class AllowedChoices(Model):
    """What documents may choose; nothing where nothing is listed."""

    priority_classes: tuple[ObjectName, ...] = Field(default=(), description="PriorityClasses.")
    runtime_classes: tuple[ObjectName, ...] = Field(default=(), description="RuntimeClasses.")
    service_accounts: tuple[ObjectName, ...] = Field(default=(), description="ServiceAccounts.")
    image_pull_secrets: tuple[ObjectName, ...] = Field(
        default=(), description="Secrets of the tasks' namespace to fetch images with."
    )

    def beside(self, other: AllowedChoices) -> AllowedChoices:
        """What either allows."""
        return AllowedChoices.model_validate(
            {field: (*getattr(self, field), *getattr(other, field)) for field in AllowedChoices.model_fields}
        )

    def refused(self, choice: PodChoice) -> list[DisallowedName]:
        """What of a choice is not allowed."""
        lists = {
            "priority_class": self.priority_classes,
            "runtime_class": self.runtime_classes,
            "service_account": self.service_accounts,
            "image_pull_secrets": self.image_pull_secrets,
        }
        return [
            DisallowedName(name, index if field == "image_pull_secrets" else None, chosen, lists[field])
            for field, name in FIELDS.items()
            for index, chosen in enumerate(choice.of(field))
            if chosen not in lists[field]
        ]
