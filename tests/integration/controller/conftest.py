"""All tests here run on SQLite and on PostgreSQL."""

from tests.support.postgres import postgres_server
from tests.support.stores import database_url, other_store, store

__all__ = ["database_url", "other_store", "postgres_server", "store"]
