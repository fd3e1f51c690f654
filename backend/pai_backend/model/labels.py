"""Labels and taints of nodes, and which of them tasks select or tolerate: Kubernetes' words and rules.

Source: Kubernetes documentation, "Labels and Selectors", "Assigning Pods to Nodes" (nodeSelector) and "Taints and
Tolerations".
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from pai_backend.model.base import Model
from pai_backend.model.text import Text

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
LONGEST_DOMAIN: Final = 253
"""Characters before the slash of a label's key."""
KEY_RULE: Final = Text(
    "must be 1 to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, and may have a domain and "
    "a slash before them, e.g. example.org/rack"
)
VALUE_RULE: Final = Text(
    "must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, or empty"
)


def is_label_key(text: str) -> bool:
    """Whether Kubernetes takes this as the key of a label or taint."""
    domain, slash, name = text.rpartition("/")
    right_domain = not slash or (len(domain) <= LONGEST_DOMAIN and _DOMAIN.fullmatch(domain) is not None)
    return right_domain and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether Kubernetes takes this as the value of a label or taint."""
    return not text or _NAME.fullmatch(text) is not None


def _labels(given: dict[str, str]) -> dict[str, str]:
    for key, value in given.items():
        if not is_label_key(key):
            raise ValueError(Text("has an invalid label key: {key} {rule}", key=repr(key[:80]), rule=KEY_RULE))
        if not is_label_value(value):
            raise ValueError(Text("has an invalid label value: that of {key} {rule}", key=key, rule=VALUE_RULE))
    return given


def _key(text: str) -> str:
    if not is_label_key(text):
        raise ValueError(KEY_RULE)
    return text


def _value(text: str) -> str:
    if not is_label_value(text):
        raise ValueError(VALUE_RULE)
    return text


Labels = Annotated[dict[str, str], AfterValidator(_labels)]
"""Label key -> value."""


class Effect(StrEnum):
    """What a taint does to tasks that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    """None is started there; those that run go on."""
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    """The node is taken last."""
    NO_EXECUTE = "NoExecute"
    """None is started there, and an engine that carries evictions out ends those that run."""


class Taint(Model):
    """A mark of a node that keeps tasks away."""

    key: Annotated[str, AfterValidator(_key)]
    value: Annotated[str, AfterValidator(_value)] = ""
    effect: Effect

    def __str__(self) -> str:
        """As ``kubectl taint`` writes it: ``key=value:effect``."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Operator(StrEnum):
    """How a toleration compares."""

    EQUAL = "Equal"
    EXISTS = "Exists"


class Toleration(Model):
    """Taints that a task tolerates. Source: Kubernetes, "Taints and Tolerations"; its defaults and its checks."""

    key: str = Field(default="", description="Empty for all keys, with the operator Exists.")
    operator: Operator = Operator.EQUAL
    value: Annotated[str, AfterValidator(_value)] = ""
    effect: Effect | None = Field(default=None, description="None for all effects.")
    toleration_seconds: int | None = Field(
        default=None,
        validation_alias=AliasChoices("toleration_seconds", "tolerationSeconds"),
        description="With NoExecute: seconds after which the task is ended all the same; none for never.",
    )

    @model_validator(mode="after")
    def _as_kubernetes_asks(self) -> Self:
        if self.key and not is_label_key(self.key):
            raise ValueError(Text("key {rule}", rule=KEY_RULE))
        if not self.key and self.operator is not Operator.EXISTS:
            raise ValueError("without a key needs the operator Exists")
        if self.operator is Operator.EXISTS and self.value:
            raise ValueError("must have no value with the operator Exists")
        if self.toleration_seconds is not None and self.effect is not Effect.NO_EXECUTE:
            raise ValueError("may have tolerationSeconds with the effect NoExecute only")
        return self

    def tolerates(self, taint: Taint) -> bool:
        """Whether the taint keeps no task with this toleration away.

        An empty key matches all keys and values, no effect matches all effects; otherwise both must be the same, and
        the value too unless the operator is Exists.
        """
        if self.effect not in (None, taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator is Operator.EXISTS or self.value == taint.value


class NodeRule(Model):
    """Which nodes an administrator lets tasks of a kind use."""

    node_selector: Labels = Field(
        default={},
        validation_alias=AliasChoices("node_selector", "nodeSelector"),
        description="Labels that a node must have.",
    )
    tolerations: tuple[Toleration, ...] = Field(default=(), description="Taints of nodes that are tolerated.")

    def untolerated(self, taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
        """Those of the taints that no toleration matches, of whatever effect."""
        return tuple(taint for taint in taints if not any(each.tolerates(taint) for each in self.tolerations))
