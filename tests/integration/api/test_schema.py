"""The schema of job documents over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.api_site import running_api


@pytest.mark.asyncio
async def test_the_schema_of_each_dialect_is_answered(tmp_path: Path) -> None:
    async with running_api(tmp_path) as site, site.client() as alice:
        for dialect, field in (("v1", "jobName"), ("qizhi", "jobName"), ("scm", "jobName"), ("v2", "name")):
            answer = await alice.get("/api/v2/schema/job", params={"dialect": dialect})
            assert answer.status_code == 200
            assert answer.headers["Content-Type"] == "application/schema+json"
            schema = answer.json()
            assert schema["x-dialect"] == dialect
            assert field in schema["properties"]
        unknown = await alice.get("/api/v2/schema/job", params={"dialect": "yaml"})
        assert unknown.status_code == 400
