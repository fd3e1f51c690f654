"""Templates and drafts on the wire."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from pai_backend.api.wire import Camel
from pai_backend.model.base import Model


class Origin(StrEnum):
    """Whose a template is."""

    SHIPPED = "shipped"
    SITE = "site"
    OWN = "own"


class TemplateWords(Camel):
    """How a template is introduced in one language."""

    title: str
    about: str


class TemplateWire(Camel):
    """A job document to begin with."""

    name: str
    origin: Origin
    filename: str
    words: dict[str, TemplateWords] = Field(description="By language, `en` at least.")


class TemplateList(Model):
    """Templates; an own one hides the site's of its name, and the site's a shipped one."""

    data: tuple[TemplateWire, ...]


class DraftWire(Camel):
    """A document that is being written."""

    name: str
    filename: str
    changed_at: datetime


class DraftList(Model):
    """Drafts, the newest first."""

    data: tuple[DraftWire, ...]
