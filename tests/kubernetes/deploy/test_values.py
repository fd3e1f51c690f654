"""The values of the chart: each is documented with its default, and none is taken that means nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.deploy.helm import CHART, NEEDED, Helm

PAGE = Path(__file__).resolve().parents[3] / "docs" / "install-kubernetes.md"
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]*)` \| (.+) \|$")
WHOLE = ("resources", "config")  # objects of somebody else's making


def leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value and key not in WHOLE:
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def schema_leaves(schema: Mapping[str, Any], root: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, inner in schema["properties"].items():
        found = root["definitions"][inner["$ref"].rsplit("/", 1)[1]] if "$ref" in inner else inner
        if "properties" in found and key not in WHOLE:
            yield from schema_leaves(found, root, f"{above}{key}.")
        else:
            yield f"{above}{key}"


def documented() -> dict[str, str]:
    _, _, table = PAGE.read_text().partition("\n## Values\n")
    rows = [ROW.match(line) for line in table.splitlines()]
    return {row[1]: row[2] for row in rows if row is not None}


def test_every_value_is_documented_with_its_default() -> None:
    values = dict(leaves(yaml.safe_load((CHART / "values.yaml").read_text())))
    told = documented()
    assert set(told) == set(values)
    plain = {name: value if isinstance(value, str) else json.loads(json.dumps(value)) for name, value in values.items()}
    assert {name: yaml.safe_load(text) for name, text in told.items()} == plain


def test_the_schema_knows_every_value_and_no_other() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = dict(leaves(yaml.safe_load((CHART / "values.yaml").read_text())))
    assert set(schema_leaves(schema, schema)) - {"global"} == set(values)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"api": {"replica": 3}}, "additional properties 'replica' not allowed"),
        ({"config": {"database": "postgresql://pai:hunter2@db/pai"}}, "at '/config/database': false schema"),
        ({"config": {"api": {"tokens": []}}}, "at '/config/api/tokens': false schema"),
        ({"gateway": {"publicPort": 70000}}, "at '/gateway/publicPort'"),
        ({"tasks": {"per": "job"}}, "at '/tasks/per'"),
        ({"runtimeImage": ""}, "at '/runtimeImage'"),
        ({"config": {"gateway": {"drain_s": 15}}}, "terminationGracePeriodSeconds is less than config.gateway.drain_s"),
        ({"ingress": {"enabled": True}}, "ingress.host is needed"),
        ({"ingress": {"enabled": True, "host": "pai.example.com"}}, "api.serviceDomain is needed"),
        ({"front": {"image": "envoy:1.40"}}, "api.serviceDomain is needed for front.image"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
async def test_values_that_mean_nothing_are_refused_by_their_place(
    helm: Helm, values: dict[str, Any], complaint: str
) -> None:
    ended = await helm.template({**NEEDED, **values})
    assert ended.code != 0
    assert complaint in ended.err
    assert "hunter2" not in ended.err
