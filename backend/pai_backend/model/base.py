"""The one base class of all models, so that they are frozen and closed everywhere."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """An immutable value; an unknown field is an error, not a shrug."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64")
