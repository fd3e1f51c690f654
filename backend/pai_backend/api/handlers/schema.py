"""The fields of job documents, for those who make forms."""

from __future__ import annotations

from functools import cache

from pydantic_core import to_json

from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import SchemaQuery
from pai_backend.protocol.schema import FormDialect, job_schema

MEDIA_TYPE = "application/schema+json"


class JobSchemaHandler(ApiHandler):
    """``/api/v2/schema/job``."""

    @operation(
        Operation("The fields of a dialect's documents, as JSON Schema.", query=SchemaQuery, media_type=MEDIA_TYPE)
    )
    async def get(self, query: SchemaQuery) -> None:
        """The schema."""
        self.set_header("Content-Type", MEDIA_TYPE)
        self.write(_written(query.dialect))


@cache
def _written(dialect: FormDialect) -> bytes:
    return to_json(job_schema(dialect))
