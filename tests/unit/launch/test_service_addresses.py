"""What tasks are told of the addresses of their services."""

from __future__ import annotations

import pytest

from pai_backend.launch.plan import TRUNCATED, build_plan
from pai_backend.launch.service_addresses import FAMILY, ServiceSite, service_variables
from pai_backend.model.job import Job
from pai_backend.model.spec import Dialect, PortSpec
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec


def job_with(*labels: str, dialect: Dialect = Dialect.SCM) -> Job:
    role = make_role("worker", instances=2, ports=[PortSpec(label=label, implicit=label == "http") for label in labels])
    spec = make_spec("train", roles=[role]).model_copy(update={"dialect": dialect})
    job = make_job("train", alias="train", spec=spec)
    tasks = tuple(task.model_copy(update={"placement": make_placement()}) for task in job.tasks)
    return job.model_copy(update={"tasks": tasks})


def site(url: str | None, domain: str = "pai.example") -> ServiceSite:
    return ServiceSite(domain, lambda: url)


def test_each_service_has_its_path_below_the_api_and_its_own_address() -> None:
    job = job_with("web", "ssh", "http")
    first, second = (service_variables(job, task, site("https://api.example:8443/pai/")) for task in job.tasks)
    assert first == {
        "PAI_SERVICE_BASE_PATH_web": "/pai/s/train--web/",
        "PAI_SERVICE_URL_web": "https://train--web.pai.example:8443/",
    }
    assert second == {
        "PAI_SERVICE_BASE_PATH_web": "/pai/s/train--worker-1--web/",
        "PAI_SERVICE_URL_web": "https://train--worker-1--web.pai.example:8443/",
    }


def test_the_own_address_is_left_out_while_the_apis_is_unknown() -> None:
    job = job_with("web")
    assert service_variables(job, job.tasks[0], site(None)) == {"PAI_SERVICE_BASE_PATH_web": "/s/train--web/"}


def test_names_are_given_under_every_spelling_and_prefix() -> None:
    job = job_with("a.b", dialect=Dialect.QIZHI)
    found = service_variables(job, job.tasks[0], site("http://localhost:9", "localhost"))
    assert found is not None
    assert set(found) == {
        f"{prefix}_SERVICE_{what}_{label}"
        for prefix in ("PAI", "QIZHI")
        for what in ("BASE_PATH", "URL")
        for label in ("a.b", "a_b")
    }
    assert set(found.values()) == {"/s/train--a-b/", "http://train--a-b.localhost:9/"}


@pytest.mark.parametrize(("labels", "is_told"), [(200, True), (600, False)])
def test_what_takes_too_much_room_is_left_out_and_named(labels: int, is_told: bool) -> None:
    job = job_with(*(f"label-{number}" for number in range(labels)))
    env = build_plan(job, job.tasks[0], ssh=None, extra_env={}, services=site("http://localhost:9", "localhost")).env
    assert ("PAI_SERVICE_URL_label-7" in env) is is_told
    assert (FAMILY in env.get(TRUNCATED, "").split(",")) is not is_told


def test_a_document_cannot_replace_them() -> None:
    job = job_with("web")
    spec = job.spec.model_copy(update={"env": {"PAI_SERVICE_URL_web": "http://evil.example/"}})
    job = job.model_copy(update={"spec": spec})
    env = build_plan(job, job.tasks[0], ssh=None, extra_env={}, services=site("http://localhost:9", "localhost")).env
    assert env["PAI_SERVICE_URL_web"] == "http://train--web.localhost:9/"
