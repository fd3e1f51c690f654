"""Laws of meaning for v2: a job written down reads as that job, in YAML of any style and in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.model.spec import Completion, PortSpec, Resources
from pai_backend.model.tags import SCOPES, fill
from pai_backend.protocol import read_document
from tests.mutants import tags as mutants

IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,11}", fullmatch=True)
WORDS = st.sampled_from(
    ["on", "no", "null", "~", "true", "0o7", "1e3", "007", "- a", "a: b", "#", "'", '"', "<<", "*a", "%"]
)
LINES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)
TEXTS = (LINES | WORDS).filter(lambda text: text.strip() != "" and "<%" not in text)
COUNTS = st.none() | st.integers(-1, 9)


@st.composite
def roles(draw: st.DrawFn) -> dict[str, Any]:
    role: dict[str, Any] = {
        "dockerImage": draw(st.sampled_from(["one", "two"])),
        "resourcePerInstance": {
            "cpu": draw(st.integers(0, 512)),
            "memoryMB": draw(st.integers(1, 10**6)),
            "gpu": draw(st.integers(0, 16)),
            "ports": draw(st.dictionaries(IDENTIFIERS, st.integers(1, 9), max_size=3)),
        },
        "commands": draw(st.lists(TEXTS, min_size=1, max_size=4)),
    }
    for name, values in {
        "instances": st.integers(1, 50),
        "taskRetryCount": st.integers(-2, 9),
        "completion": st.fixed_dictionaries(
            {}, optional={"minFailedInstances": COUNTS, "minSucceededInstances": COUNTS}
        ),
        "extraContainerOptions": st.fixed_dictionaries(
            {}, optional={"shmMB": st.integers(0, 9), "infiniband": st.booleans()}
        ),
    }.items():
        if draw(st.booleans()):
            role[name] = draw(values)
    return role


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "protocolVersion": draw(st.sampled_from([2, "2"])),
        "name": draw(st.from_regex(r"[a-zA-Z0-9_-]{1,20}", fullmatch=True)),
        "type": "job",
        "description": draw(TEXTS),
        "prerequisites": [
            {"name": "one", "type": "dockerimage", "uri": "first"},
            {"name": "two", "type": "dockerimage", "uri": "second"},
        ],
        "secrets": draw(st.dictionaries(IDENTIFIERS, TEXTS, max_size=2)),
        "jobRetryCount": draw(st.integers(-2, 9)),
        "taskRoles": draw(
            st.dictionaries(IDENTIFIERS | st.sampled_from(["on", "no", "y"]), roles(), min_size=1, max_size=4)
        ),
        "extras": {
            "kept": draw(st.recursive(st.none() | st.booleans() | st.integers() | TEXTS, st.lists, max_leaves=5))
        },
    }


class Quoting(yaml.SafeDumper):
    """Writes every text in quotes: PyYAML leaves some plain that are no texts in YAML 1.2."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def laid_out(job: dict[str, Any], draw: Any) -> str:
    style = draw(st.sampled_from(["block", "flow", "mixed", "json"]))
    if style == "json":
        return json.dumps(job, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    text = yaml.dump(
        job,
        Dumper=Quoting,
        default_flow_style={"block": False, "flow": True, "mixed": None}[style],
        allow_unicode=draw(st.booleans()),
        width=draw(st.sampled_from([20, 10_000])),
        explicit_start=style != "block" or draw(st.booleans()),
        sort_keys=False,
    )
    return str(text).replace("\n", "\r\n") if draw(st.booleans()) else str(text)


def count(given: int | None, default: int) -> int | None:
    """Source: upstream's server: null and 0 are the default, -1 is off."""
    return None if given == -1 else given or default


@settings(deadline=None)
@given(jobs(), st.data())
def test_a_job_reads_as_it_was_written_in_any_style(job: dict[str, Any], data: st.DataObject) -> None:
    document = read_document(laid_out(job, data.draw))
    spec = document.spec
    assert (spec.name, spec.description, spec.retry_count) == (job["name"], job["description"], job["jobRetryCount"])
    assert spec.extras == job["extras"]
    assert document.secrets == job["secrets"]
    assert [role.name for role in spec.task_roles] == list(job["taskRoles"])
    for role in spec.task_roles:
        written = job["taskRoles"][role.name]
        needs, options = written["resourcePerInstance"], written.get("extraContainerOptions", {})
        rule = written.get("completion", {})
        assert role.instances == written.get("instances", 1)
        assert role.task_retry_count == written.get("taskRetryCount", 0)
        assert role.command == "\n".join(line.strip() for line in written["commands"])
        assert spec.image_of(role) == {"one": "first", "two": "second"}[written["dockerImage"]]
        assert role.infiniband == options.get("infiniband", False)
        assert role.resources == Resources(
            cpus=needs["cpu"], memory_mb=needs["memoryMB"], gpus=needs["gpu"], shm_mb=options.get("shmMB", 512)
        )
        assert role.completion == Completion(
            min_failed=count(rule.get("minFailedInstances"), 1),
            min_succeeded=count(rule.get("minSucceededInstances"), role.instances),
        )
        declared = tuple(PortSpec(label=label, count=number) for label, number in needs["ports"].items())
        assert tuple(port for port in role.ports if not port.implicit) == declared
        assert {"http", "ssh"} <= {port.label for port in role.ports}


Fill = Callable[[str, str, Mapping[str, Any]], str]


def check_filling(filling: Fill, scopes: list[str], value: str, between: str) -> None:
    """Filling one scope leaves the tags of the others, and puts values in as they are, once."""
    text = between.join(f"<% ${scope}.x %>" for scope in scopes)
    for scope in SCOPES:
        expected = between.join(value if other == scope else f"<% ${other}.x %>" for other in scopes)
        assert filling(text, scope, {"x": value}) == expected


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(SCOPES), max_size=5),
    st.text(max_size=20) | st.sampled_from(SCOPES).map(lambda scope: f"<% ${scope}.x %>"),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<>"), max_size=20),
)
def test_filling_one_scope_leaves_the_others_and_puts_values_in_as_they_are(
    scopes: list[str], value: str, between: str
) -> None:
    check_filling(fill, scopes, value, between)


@pytest.mark.parametrize(
    ("mutant", "value"),
    [(mutants.escaping, "a&b"), (mutants.scanning_again, "<% $parameters.x %>"), (mutants.of_any_scope, "a")],
)
def test_the_law_of_filling_rejects_what_breaks_it(mutant: Fill, value: str) -> None:
    with pytest.raises(AssertionError):
        check_filling(mutant, ["parameters", "secrets"], value, " ")


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=8, max_size=30), jobs(), st.data())
def test_no_value_of_a_secret_gets_into_the_spec(value: str, job: dict[str, Any], data: st.DataObject) -> None:
    value = f"hunter2{value}"
    first = next(iter(job["taskRoles"].values()))
    job = {**job, "secrets": {"word": value}, "parameters": {"late": "<% $secrets.word %>"}}
    first["commands"] = ["echo <% $secrets.word %> <% $parameters.late %>"]
    document = read_document(laid_out(job, data.draw))
    assert value not in document.spec.model_dump_json() + repr(document) + repr(document.warnings)
    command = document.spec.task_roles[0].command
    assert fill(command, "secrets", document.secrets) == f"echo {value} {value}"
