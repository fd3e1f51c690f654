"""Run by alembic: the migrations go through the connection, and in the transaction, of the caller."""

from __future__ import annotations

from alembic import context

from pai_backend.store.people_tables import metadata

# Batch mode: SQLite alters a table only by copying it.
context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
