"""Laws of converting: what comes out reads as the same job, but for what the conversion lists."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.model.spec import Completion, Dialect, JobSpec, TaskRole
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.convert import Converted, to_v1, to_v2
from pai_backend.protocol.convert.names import identifiers, job_name
from pai_backend.protocol.own_fields import KEY

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NAMES = st.from_regex(r"[A-Za-z0-9._~]{1,6}", fullmatch=True)
VARIABLES = st.sampled_from(["DB_PASSWORD", "PAI_X", "a-b"]) | st.from_regex(
    r"[A-Za-z_][A-Za-z_0-9]{0,6}", fullmatch=True
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
SHELL = st.sampled_from(
    ["echo", " ", "\n", "$PAI_JOB_NAME", '"', "'", "\\", "$(", ")", "#", "<<E\n", "E\n", "训练", "\t"]
)
COMMANDS = (
    st.lists(SHELL | TEXT, min_size=1, max_size=8).map("".join).filter(lambda text: text.strip() and "<%" not in text)
)


@st.composite
def roles(draw: st.DrawFn, name: str) -> dict[str, Any]:
    tasks, memory = draw(st.integers(1, 9)), draw(st.integers(100, 10**6))
    role = {
        "name": name,
        "taskNumber": tasks,
        "cpuNumber": draw(st.integers(1, 64)),
        "memoryMB": memory,
        "gpuNumber": draw(st.integers(0, 8)),
        "shmMB": draw(st.integers(0, memory)),
        "command": draw(COMMANDS),
        "portList": [
            {"label": label, "beginAt": draw(st.sampled_from([0, 1000 * number + 1])), "portNumber": number + 1}
            for number, label in enumerate(
                draw(st.lists(NAMES | st.sampled_from(["ssh", "http"]), unique=True, max_size=3))
            )
        ],
    }
    optional = {
        "minFailedTaskCount": st.none() | st.integers(1, tasks),
        "minSucceededTaskCount": st.none() | st.integers(1, tasks),
        "storageGB": st.integers(0, 9),
    }
    return role | draw(st.fixed_dictionaries({}, optional=optional))


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    listed = [draw(roles(name)) for name in draw(st.lists(NAMES, unique=True, min_size=1, max_size=3))]
    optional: dict[str, st.SearchStrategy[object]] = {
        "authFile": st.sampled_from(["", "hdfs://h/auth"]),
        "dataDir": st.sampled_from(["$QIZHI_DEFAULT_FS_URI/a b", "$PAI_DEFAULT_FS_URI/it's"]),
        "outputDir": st.just("/out/$PAI_JOB_NAME/$HOME"),
        "codeDir": st.just("code"),
        "virtualCluster": st.sampled_from(["", "default", "vc1"]),
        "gpuType": st.sampled_from(["", "P100"]),
        "retryCount": st.integers(-2, 5),
        "killAllOnCompletedTaskNumber": st.integers(0, sum(role["taskNumber"] for role in listed)),
        "jobEnvs": st.dictionaries(VARIABLES, VALUES, max_size=4),
        "extras": st.dictionaries(
            st.sampled_from(["submitFrom", "hivedScheduler", "own", "storages"]), VALUES, max_size=3
        ),
        "tmp": VALUES,
    }
    job: dict[str, Any] = {
        "jobName": "j" + draw(st.from_regex(r"[A-Za-z0-9._~-]{0,6}", fullmatch=True)),
        "image": "python:3",
    }
    if draw(st.booleans()):
        lasts = st.builds("{}{}".format, st.integers(1, 400), st.sampled_from("hms"))
        idle = st.builds("{}{}".format, st.integers(10, 400), st.sampled_from("hms"))
        labels = st.dictionaries(st.sampled_from(["zone", "example.org/rack"]), st.sampled_from(["", "a"]), max_size=2)
        own = st.fixed_dictionaries({"nodeSelector": labels}, optional={"expectedRunTime": lasts, "idleTimeout": idle})
        job["extras"] = job.get("extras", {}) | {KEY: draw(own)}
    flags = draw(st.fixed_dictionaries({}, optional={"isDebug": st.booleans(), "paiAzRDMA": st.booleans()}))
    job |= draw(st.fixed_dictionaries({}, optional=optional))
    if flags:
        job["jobEnvs"] = job.get("jobEnvs", {}) | flags
    return job | {"taskRoles": listed}


def paths(converted: Converted, *codes: str) -> set[str]:
    return {loss.path for loss in converted.lost if loss.code in codes}


def ends_alike(spec: JobSpec) -> JobSpec:
    """The job with its rules for ending in the plainest words: killAll N is a counter where one failure ends all."""
    limit = spec.kill_all_on_completed
    if not limit or limit >= spec.task_count:
        return spec.model_copy(update={"kill_all_on_completed": None})
    (first, *others) = spec.task_roles
    if others or first.completion.min_failed != 1:
        return spec
    least = min(limit, first.completion.min_succeeded or limit)
    rule = Completion(min_failed=1, min_succeeded=least)
    return spec.model_copy(
        update={"kill_all_on_completed": None, "task_roles": (first.model_copy(update={"completion": rule}),)}
    )


def with_pai_names(text: str) -> str:
    return text.replace("$QIZHI_DEFAULT_FS_URI", "$PAI_DEFAULT_FS_URI")


def expected_in_v2(spec: JobSpec, setup: str) -> JobSpec:
    """What a v1 job is once it is v2: the same under v2's names, with what stands before each command."""
    names = identifiers(role.name for role in spec.task_roles)
    labels = identifiers(port.label for role in spec.task_roles for port in role.ports)

    def role_in_v2(role: TaskRole) -> TaskRole:
        ports = tuple(port.model_copy(update={"label": labels[port.label]}) for port in role.ports)
        command = f"{setup}\n{role.command.strip()}"
        return role.model_copy(update={"name": names[role.name], "ports": ports, "command": command, "strict": True})

    return ends_alike(spec).model_copy(
        update={
            "name": job_name(spec.name),
            "dialect": Dialect.OPENPAI_V2,
            "env": {},
            "data_dir": with_pai_names(spec.data_dir),
            "task_roles": tuple(role_in_v2(role) for role in ends_alike(spec).task_roles),
        }
    )


def setup_of(spec: JobSpec) -> str:
    """What stands before the first command: a block that begins with the shell's mode."""
    return spec.task_roles[0].command


def without_secrets(spec: JobSpec) -> JobSpec:
    extras = {name: value for name, value in spec.extras.items() if name != KEY}
    return spec.model_copy(update={"secret_names": (), "extras": extras})


def read(job: dict[str, Any]) -> Document:
    return read_document(json.dumps(job))


@settings(deadline=None)
@given(jobs())
def test_a_v1_job_in_v2_is_the_same_job(job: dict[str, Any]) -> None:
    before = read(job)
    converted = to_v2(before)
    after = read_document(converted.text)
    first = before.spec.task_roles[0].command.strip()
    assert setup_of(after.spec).endswith(f"\n{first}")
    setup = setup_of(after.spec).removesuffix(f"\n{first}")
    assert setup.startswith("set +o errexit +o nounset +o pipefail")
    assert without_secrets(after.spec) == without_secrets(expected_in_v2(before.spec, setup))


@settings(deadline=None)
@given(jobs())
def test_what_only_this_product_or_nobody_reads_back_is_listed(job: dict[str, Any]) -> None:
    spec = read(job).spec
    converted = to_v2(read(job))
    aside = {f"$.{name}" for name in ("authFile", "dataDir", "outputDir", "codeDir", "gpuType") if job.get(name)}
    aside |= {"$.retryCount"} if spec.retry_count < 0 else set()
    aside |= {"$.jobEnvs.isDebug"} if spec.debug else set()
    aside |= {f"$.extras.{name}" for name in ("submitFrom", "hivedScheduler", "storages") if name in spec.extras}
    for number, role in enumerate(spec.task_roles):
        aside |= {f"$.taskRoles[{number}].storageGB"} if role.resources.storage_gb is not None else set()
        aside |= {f"$.taskRoles[{number}].portList"} if any(port.begin_at for port in role.ports) else set()
    assert paths(converted, "kept-aside") - {"$.killAllOnCompletedTaskNumber"} == aside
    unsaid = {f'$.jobEnvs["{name}"]' for name in spec.env if "-" in name}
    qizhi = {"$"} if spec.dialect is Dialect.QIZHI else set()
    assert paths(converted, "lost") == unsaid | qizhi | ({"$.tmp"} if "tmp" in job else set())


@settings(deadline=None)
@given(jobs())
def test_a_job_in_plain_v1_is_the_same_job(job: dict[str, Any]) -> None:
    before = read(job).spec
    converted = to_v1(read(job))
    after = read_document(converted.text).spec
    needs = [role.resources.model_copy(update={"storage_gb": None}) for role in before.task_roles]
    expected = ends_alike(before).model_copy(
        update={"dialect": after.dialect, "data_dir": with_pai_names(before.data_dir)}
    )
    roles_ = [
        role.model_copy(update={"resources": need}) for role, need in zip(expected.task_roles, needs, strict=True)
    ]
    assert ends_alike(after) == expected.model_copy(update={"task_roles": tuple(roles_)})
    stored = {f"$.taskRoles[{n}].storageGB" for n, role in enumerate(job["taskRoles"]) if "storageGB" in role}
    assert stored <= paths(converted, "lost")
    assert "QIZHI_" not in converted.text
    assert after.dialect in (Dialect.OPENPAI_V1, Dialect.QIZHI)


@settings(deadline=None)
@given(jobs())
def test_the_way_to_v2_and_back_keeps_names_and_numbers(job: dict[str, Any]) -> None:
    job = job | {"jobEnvs": {}}
    before = read(job).spec
    after = read_document(to_v1(read_document(to_v2(read(job)).text)).text).spec
    assert (after.name, after.image, after.retry_count) == (before.name, before.image, before.retry_count)
    for role, old in zip(after.task_roles, before.task_roles, strict=True):
        assert (role.name, role.instances, role.ports) == (old.name, old.instances, old.ports)
        assert role.resources == old.resources.model_copy(update={"storage_gb": None})
        assert role.command.endswith(old.command.strip())


@settings(deadline=None)
@given(st.lists(NAMES, unique=True, max_size=8))
def test_new_names_are_distinct_identifiers_and_right_ones_stay(names: list[str]) -> None:
    found = identifiers(names)
    assert len(set(found.values())) == len(names)
    assert all(new.isidentifier() and new.isascii() for new in found.values())
    assert all(found[name] == name for name in names if name.isidentifier())


@settings(deadline=None)
@given(jobs())
def test_a_v2_document_in_v2_is_itself(job: dict[str, Any]) -> None:
    text = to_v2(read(job)).text
    assert to_v2(read_document(text)) == Converted(text)
