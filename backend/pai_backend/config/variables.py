"""Settings from environment variables, by pydantic-settings."""

from __future__ import annotations

from typing import Any

import yaml
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource

from pai_backend.config.files import ConfigError
from pai_backend.config.keys import ENV_NESTED, ENV_PREFIX
from pai_backend.config.settings import Settings


class _Environment(Settings, BaseSettings):  # type: ignore[misc]  # two model_config types; both are dicts
    """The settings as pydantic-settings wants to see them, to read variables with."""


class _Source(EnvSettingsSource):
    """Variables, with lists and objects in YAML (which JSON is a part of)."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Called by the base class for lists and objects. Raises ConfigError when the text is neither."""
        try:
            return yaml.safe_load(value)
        except yaml.YAMLError:
            place = f"environment: {ENV_PREFIX}…{field_name.upper()}"
            raise ConfigError(f"{place}: the value is not valid JSON or YAML.") from None


def read_variables() -> dict[str, Any]:
    """What the environment says, nested as the settings are. Raises ConfigError."""
    source = _Source(_Environment, case_sensitive=False, env_prefix=ENV_PREFIX, env_nested_delimiter=ENV_NESTED)
    return dict(source())
