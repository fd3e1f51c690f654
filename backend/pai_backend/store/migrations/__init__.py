"""Alembic's scripts. A published one is never changed; ``migrate`` runs them, ``env`` is alembic's way in."""
