"""How a backend is told what to be: the settings, where they come from, their reference page.

``settings`` is the data (imports pydantic only: every process loads it), ``load`` reads file, environment
and flags and is imported by the starting process alone, ``reference`` writes ``docs/configuration.md``.
"""

from pai_backend.config.settings import ProcessRole, Settings

__all__ = ["ProcessRole", "Settings"]
