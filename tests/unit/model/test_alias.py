"""Names that persist: safe in DNS and SSH, different for different things, and readable back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.model.alias import Target, job_alias, resolve, service_alias, slug, split, task_alias
from pai_backend.model.ids import is_job_uid
from pai_backend.model.spec import JobSpec, PortSpec
from pai_backend.testing.builders import make_role, make_spec

LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
names = st.text(alphabet="aZ0_.~-", min_size=1, max_size=40)


@st.composite
def specs(draw: st.DrawFn) -> JobSpec:
    roles = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    labels = draw(st.lists(st.one_of(names, st.just("a-0")), min_size=1, max_size=4, unique=True))
    ports = [PortSpec(label=label) for label in labels]
    return make_spec(roles=[make_role(name, instances=2, ports=ports) for name in roles])


def test_the_seeds_job_has_a_readable_name() -> None:
    assert job_alias("jupyter_16be8b71") == "jupyter-16be8b71"


def test_a_suffix_keeps_the_bound() -> None:
    assert job_alias("x" * 60, "ab12").endswith("-ab12")
    assert len(job_alias("x" * 60, "ab12")) <= 24


@given(st.from_regex(r"[jJ][0-9a-fA-F]{16}[._~-]?", fullmatch=True))
def test_an_alias_never_reads_as_a_uid(name: str) -> None:
    alias = job_alias(name)
    assert not is_job_uid(alias)
    assert LABEL.fullmatch(alias)


@given(text=st.text(max_size=80), limit=st.integers(10, 24))
def test_a_slug_is_always_safe(text: str, limit: int) -> None:
    value = slug(text, limit)
    assert LABEL.fullmatch(value)
    assert len(value) <= limit
    assert "--" not in value


@given(spec=specs(), name=names)
def test_every_name_of_a_job_is_one_dns_label_and_leads_back_to_what_it_names(spec: JobSpec, name: str) -> None:
    alias = job_alias(name)
    seen: dict[str, Target] = {}
    for role in spec.task_roles:
        for index in range(role.instances):
            targets = {task_alias(alias, spec, role.name, index): Target(role.name, index)}
            for port in role.ports:
                full = service_alias(alias, spec, role.name, index, port.label)
                targets[full] = Target(role.name, index, port.label)
            for full, target in targets.items():
                assert LABEL.fullmatch(full), full
                assert seen.setdefault(full, target) == target, "two things share a name"
                job, rest = split(full)
                assert (job, resolve(rest, spec)) == (alias, target)


def test_a_job_alias_means_its_first_task() -> None:
    assert resolve("", make_spec(roles=[make_role("ps"), make_role("worker")])) == Target("ps", 0)


@pytest.mark.parametrize("rest", ["nobody-0", "worker-9", "worker", "worker-0--nothing", "worker-0--http--x", "-"])
def test_what_names_nothing_is_none(rest: str) -> None:
    spec = make_spec(roles=[make_role("worker", instances=2, ports=[PortSpec(label="http")])])
    assert resolve(rest, spec) is None
