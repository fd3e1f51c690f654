"""What a task is given when it starts: environment variables, directories, and the plan for an engine.

Pure: from values to values; may import ``pai_backend.model`` and the value types of
``pai_backend.engine.base``; no clock, no file, no network. Start with ``environment``.
"""
