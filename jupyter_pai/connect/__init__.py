"""Files that let ordinary SSH programs reach tasks.

``ssh_config`` and ``include`` are pure text builders; ``files`` writes what they say; ``keys`` makes
the user's key. Nothing here talks to the backend.
"""
