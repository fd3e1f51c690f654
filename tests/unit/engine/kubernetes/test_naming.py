"""Names of objects in a cluster: valid for whatever they are made of, and different for different things."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.engine.bundle.host_names import host_name, label_value
from pai_backend.engine.kubernetes import naming
from pai_backend.model.cluster_settings import NamespacePer
from pai_backend.model.ids import JobUid, TaskUid, task_uid
from pai_backend.model.labels import is_label_key, is_label_value

SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")  # RFC 1035 label, the strictest that Kubernetes asks for
JOBS = st.from_regex(r"\Aj[0-9a-f]{16}\Z").map(JobUid)
COUNTS = st.integers(min_value=0, max_value=10**6)
UIDS = st.one_of(st.builds(task_uid, JOBS, COUNTS, COUNTS, COUNTS), st.text(max_size=200).map(TaskUid))
TEXTS = st.one_of(st.text(max_size=100), st.from_regex(r"\A[a-zA-Z0-9._-]{1,70}\Z"))


def is_name(text: str) -> bool:
    return len(text) <= 63 and SERVICE_NAME.fullmatch(text) is not None


def test_a_uid_of_ours_is_the_name_of_its_pod() -> None:
    uid = TaskUid("j0123456789abcdef-1-12-3")
    assert naming.task_name(uid) == uid
    assert naming.login_name(uid) == f"{uid}-login"
    assert naming.attempt_name(JobUid("j0123456789abcdef"), 2) == "j0123456789abcdef-a2"


@settings(deadline=None)
@given(UIDS)
def test_every_uid_has_valid_names(uid: TaskUid) -> None:
    assert is_name(naming.task_name(uid))
    assert is_name(naming.login_name(uid))


@settings(deadline=None)
@given(UIDS, UIDS)
def test_different_uids_have_different_names(one: TaskUid, other: TaskUid) -> None:
    names = [naming.task_name(one), naming.login_name(one), naming.task_name(other), naming.login_name(other)]
    assert len(set(names)) == (2 if one == other else 4)


@settings(deadline=None)
@given(UIDS)
def test_a_uid_that_looks_like_another_ones_name_gets_a_name_of_its_own(uid: TaskUid) -> None:
    """Whoever may choose a uid cannot choose the name of another's pod."""
    name = naming.task_name(uid)
    if name != uid:
        assert naming.task_name(TaskUid(name)) != name


@settings(deadline=None)
@given(TEXTS, COUNTS, TEXTS, COUNTS)
def test_hosts_of_a_job_have_valid_and_different_names(role: str, index: int, other: str, other_index: int) -> None:
    one, two = host_name(role, index), host_name(other, other_index)
    assert is_name(one)
    assert (one == two) == ((role, index) == (other, other_index))


@pytest.mark.parametrize(
    ("role", "expected"),
    [("worker", "worker-3"), ("Worker", r"worker-x[0-9a-f]{20}-3"), ("参数", r"x[0-9a-f]{20}-3"), ("9", r"x.{20}-3")],
)
def test_a_host_is_called_as_its_task_where_that_is_a_name(role: str, expected: str) -> None:
    assert re.fullmatch(expected, host_name(role, 3))


@settings(deadline=None)
@given(JOBS, COUNTS, TEXTS, COUNTS)
def test_a_host_with_its_domain_is_a_domain_name(job: JobUid, attempt: int, role: str, index: int) -> None:
    """At most 253 characters, each label a name: RFC 1035."""
    domain = naming.domain_of(job, attempt, "n" * 63, "cluster.local")
    whole = f"{host_name(role, index)}.{domain}"
    assert len(whole) <= 253
    assert all(is_name(label) for label in whole.split("."))


def test_the_domain_of_an_attempt_is_that_of_its_service() -> None:
    job = JobUid("j0123456789abcdef")
    assert naming.domain_of(job, 1, "team", "cluster.local") == "j0123456789abcdef-a1.team.svc.cluster.local"


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_label_values_are_valid_and_different(one: str, other: str) -> None:
    assert is_label_value(label_value(one))
    assert (label_value(one) == label_value(other)) == (one == other)


def test_keys_are_keys() -> None:
    keys = [naming.JOB, naming.ATTEMPT, naming.TASK, naming.ROLE, naming.INDEX, naming.USER, naming.VIRTUAL_CLUSTER]
    keys += [naming.STOP, naming.VERDICT, naming.FORGOTTEN, naming.REFRESHED, naming.FINALIZER]
    assert all(is_label_key(key) and key.startswith("jupyter-pai/") for key in keys)
    assert len(set(keys)) == len(keys)


def test_two_backends_in_one_namespace_select_each_their_own() -> None:
    assert naming.selector(naming.ours("lab")) == (
        "app.kubernetes.io/instance=lab,app.kubernetes.io/managed-by=jupyter-pai"
    )
    assert naming.ours("lab") != naming.ours("a lab")


@pytest.mark.parametrize(
    ("per", "expected"),
    [
        (NamespacePer.CLUSTER, "pai"),
        (NamespacePer.VIRTUAL_CLUSTER, "pai-vision"),
        (NamespacePer.USER, r"pai-alice-smith-x[0-9a-f]{20}"),
    ],
)
def test_what_has_a_namespace_of_its_own_is_a_setting(per: NamespacePer, expected: str) -> None:
    found = naming.namespace_of("pai", per, virtual_cluster="vision", user="Alice Smith")
    assert re.fullmatch(expected, found)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_two_users_never_share_a_namespace_of_their_own(one: str, other: str) -> None:
    names = [naming.namespace_of("pai", NamespacePer.USER, virtual_cluster="v", user=user) for user in (one, other)]
    assert all(is_name(name) for name in names)
    assert (names[0] == names[1]) == (one == other)
