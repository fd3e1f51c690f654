"""What conversions list, refuse and write for the documents of the guides and for odd ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_backend.model.errors import DocumentError
from pai_backend.model.spec import Dialect
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.convert import Converted, to_v1, to_v2
from pai_backend.protocol.convert.names import identifiers, job_name
from pai_backend.protocol.convert.qizhi import Rewritten, pai_name, rewritten
from pai_backend.protocol.convert.yaml_text import dumped
from pai_backend.protocol.document import locate_yaml
from pai_backend.protocol.v1 import UNKNOWN_FIELDS

DOCUMENTS = Path(__file__).parents[2] / "data" / "documents"
V2 = """\
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: python}
  - {name: other, type: dockerimage, uri: perl}
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    extraContainerOptions: {shmMB: 64}
    commands: [echo]
"""


def from_guides(name: str) -> Document:
    return read_document((DOCUMENTS / name).read_bytes())


def small(role: dict[str, Any] | None = None, **job: Any) -> Document:
    roles = [{"name": "r", "command": "x"} | (role or {})]
    return read_document(json.dumps({"jobName": "j", "image": "i", "taskRoles": roles} | job))


def losses(converted: Converted) -> list[tuple[str, str]]:
    return [(loss.code, loss.path) for loss in converted.lost]


def test_the_scm_document_in_v2_loses_its_picture_only() -> None:
    assert losses(to_v2(from_guides("scm-helloworld.json"))) == [
        ("lost", "$.tmp"),
        ("kept-aside", "$.taskRoles[0].storageGB"),
        ("kept-aside", "$.gpuType"),
    ]


def test_the_scm_document_in_v1_is_one_that_openpai_takes() -> None:
    converted = to_v1(from_guides("scm-jupyter.json"))
    job = json.loads(converted.text)
    assert losses(converted) == [("lost", "$.tmp"), ("lost", "$.taskRoles[0].storageGB")]
    assert not {"tmp"} & job.keys()
    assert "storageGB" not in job["taskRoles"][0]
    assert job["taskRoles"][0]["command"] == from_guides("scm-jupyter.json").spec.task_roles[0].command
    assert read_document(converted.text).dialect is Dialect.OPENPAI_V1


@pytest.mark.parametrize("convert", [to_v1, to_v2])
def test_the_qizhi_document_uses_openpais_variables(convert: Any) -> None:
    converted = convert(from_guides("qizhi-tensorflow-distributed.json"))
    assert "QIZHI_" not in converted.text
    assert read_document(converted.text).spec.code_dir.startswith("$PAI_DEFAULT_FS_URI/")
    assert {path for code, path in losses(converted) if code == "rewritten"} == {
        "$.dataDir",
        "$.outputDir",
        "$.codeDir",
        "$.taskRoles[0].command",
        "$.taskRoles[1].command",
    }
    assert [path for code, path in losses(converted) if code == "lost"] == ["$", "$"]
    assert read_document(converted.text).spec.kill_all_on_completed == 2


def test_a_null_counter_is_minus_one_and_shared_memory_is_said() -> None:
    (role,) = yaml.safe_load(to_v2(from_guides("scm-helloworld.json")).text)["taskRoles"].values()
    assert role["completion"] == {"minFailedInstances": -1, "minSucceededInstances": -1}
    assert role["extraContainerOptions"] == {"shmMB": 64}


@pytest.mark.parametrize(
    ("limit", "role", "counter", "left"),
    [
        (0, {}, -1, None),
        (2, {}, 2, None),
        (4, {}, -1, None),
        (3, {"minSucceededTaskCount": 2}, 2, None),
        (2, {"minSucceededTaskCount": 3}, 2, None),
        (2, {"minFailedTaskCount": 2}, -1, 2),
        (2, {"minFailedTaskCount": None}, -1, 2),
        (4, {"minFailedTaskCount": None}, -1, None),
    ],
)
def test_kill_all_is_a_counter_where_one_can_say_it(
    limit: int, role: dict[str, Any], counter: int, left: int | None
) -> None:
    document = small({"taskNumber": 4} | role, killAllOnCompletedTaskNumber=limit)
    job = yaml.safe_load(to_v2(document).text)
    assert job["taskRoles"]["r"]["completion"]["minSucceededInstances"] == counter
    assert job.get("extras", {}).get("jupyterPai", {}).get("killAllOnCompletedTaskNumber") == left
    plain = json.loads(to_v1(document).text)
    assert plain["taskRoles"][0]["minSucceededTaskCount"] == (None if counter == -1 else counter)
    assert plain.get("killAllOnCompletedTaskNumber") == left


@pytest.mark.parametrize(
    ("count", "said", "lost"), [(0, 0, []), (3, 3, []), (-1, 2**31 - 1, ["$.retryCount"]), (-2, 0, ["$.retryCount"])]
)
def test_retries(count: int, said: int, lost: list[str]) -> None:
    converted = to_v2(small(retryCount=count))
    assert yaml.safe_load(converted.text)["jobRetryCount"] == said
    assert [path for code, path in losses(converted) if code == "kept-aside"] == lost
    assert read_document(converted.text).spec.retry_count == count


def test_new_names_are_listed_with_the_old_ones() -> None:
    roles = [
        {"name": "a.b", "command": "x", "portList": [{"label": "0~"}]},
        {"name": "a_b", "command": "x"},
        {"name": "1", "command": "x"},
    ]
    converted = to_v2(read_document(json.dumps({"jobName": "a.b~c", "image": "i", "taskRoles": roles})))
    job = yaml.safe_load(converted.text)
    assert job["name"] == "a_b_c"
    assert list(job["taskRoles"]) == ["a_b_2", "a_b", "_1"]
    assert job["taskRoles"]["a_b_2"]["resourcePerInstance"]["ports"] == {"_0_": 1}
    assert job["extras"]["jupyterPai"]["names"] == {
        "jobName": "a.b~c",
        "taskRoles": {"a_b_2": "a.b", "_1": "1"},
        "portList": {"_0_": "0~"},
    }
    assert [loss.message for loss in converted.lost if loss.code == "renamed"] == [
        'the job is called "a_b_c"',
        'the task role "a.b" is called "a_b_2"',
        'the task role "1" is called "_1"',
        'the label "0~" is called "_0_"',
    ]
    back = json.loads(to_v1(read_document(converted.text)).text)
    assert (back["jobName"], [role["name"] for role in back["taskRoles"]]) == ("a.b~c", ["a.b", "a_b", "1"])
    assert back["taskRoles"][0]["portList"][0]["label"] == "0~"


def test_the_longest_names_stay_distinct() -> None:
    names = ["." * 255, "~" * 255, "0" * 255]
    assert list(identifiers(names).values()) == ["_" * 255, "_" * 253 + "_2", "_" + "0" * 254]
    assert job_name("~" * 255) == "_" * 255


def test_extras_that_mean_something_in_v2_are_put_aside() -> None:
    extras = {"hivedScheduler": 1, "own": [1], "jupyterPai": {"dataDir": 1}}
    converted = to_v2(small(extras=extras))
    assert yaml.safe_load(converted.text)["extras"] == {
        "own": [1],
        "jupyterPai": {"extras": {"hivedScheduler": 1, "jupyterPai": {"dataDir": 1}}},
    }
    assert losses(converted) == [("kept-aside", "$.extras.hivedScheduler"), ("kept-aside", "$.extras.jupyterPai")]


@pytest.mark.parametrize("convert", [to_v1, to_v2])
def test_fields_that_only_scm_knows_stay_in_extras(convert: Any) -> None:
    converted = convert(small({"disk": 1}, tmp={}))
    assert read_document(converted.text).spec.extras == {UNKNOWN_FIELDS: {"$.taskRoles[0].disk": 1}}
    assert ("kept-aside", "$.extras") in losses(converted)


def test_variables_that_no_shell_can_set_are_lost() -> None:
    assert losses(to_v2(small(jobEnvs={"a-b": 1, "A": 1}))) == [("lost", '$.jobEnvs["a-b"]')]


def test_several_roles_share_what_stands_before_their_commands() -> None:
    roles = [{"name": name, "command": "x"} for name in "ab"]
    text = to_v2(small(taskRoles=roles, jobEnvs={"A": "it's"})).text
    assert text.count("export A=") == 1
    assert [role.command for role in read_document(text).spec.task_roles] == [
        "set +o errexit +o nounset +o pipefail\nexport A='it'\"'\"'s'\nx"
    ] * 2


@pytest.mark.parametrize(
    ("text", "has_any"),
    [
        ('{"jobName": "http://x", "image": "/*", "taskRoles": [{"name": "a", "command": "\\"//"}]}', False),
        ('{"jobName": "x", "image": "/*", /**/ "taskRoles": [{"name": "a", "command": "x"}]}', True),
        ('{"jobName": "x", "image": "i", "taskRoles": [{"name": "a", "command": "x"}]}// c', True),
    ],
)
def test_comments_are_missed(text: str, has_any: bool) -> None:
    document = read_document(text.replace("http://x", "x").replace('"image": "/*"', '"image": "//"'))
    assert (("lost", "$") in losses(to_v1(document))) is has_any


@pytest.mark.parametrize("text", ["echo <% $parameters.x %>", "<% $secrets.a %>", "<%= name %>"])
def test_a_text_that_v2_would_take_for_a_tag_is_refused_or_kept(text: str) -> None:
    document = small({"command": text})
    try:
        converted = to_v2(document)
    except DocumentError as error:
        (fault,) = error.errors
        assert fault.path == "$.taskRoles[0].command"
        assert fault.hint
    else:
        assert read_document(converted.text).spec.task_roles[0].command.endswith(text)


def test_a_tag_is_refused() -> None:
    with pytest.raises(DocumentError, match="v2 would take a part of the command for one of its tags"):
        to_v2(small({"command": "echo <% $parameters.x %>"}))


def test_a_draft_is_refused_for_v2() -> None:
    draft = read_document(V2.replace("protocolVersion", "protocol_version", 1))
    assert draft.dialect is Dialect.OPENPAI_V2_DRAFT
    with pytest.raises(DocumentError, match="it is already a draft of v2"):
        to_v2(draft)


def test_a_v2_document_in_v1_lists_what_v1_does_not_know() -> None:
    extras = (
        "secrets: {s: x}\ndescription: d\nextras:\n  submitFrom: web\n  gangAllocation: false\n  own: 1\n"
        "  storages: [{name: a}]\n  jobStatusChangeNotification: {failed: true}\n"
        "  hivedScheduler: {taskRoles: {worker: {skuType: K80}}}\n"
        "  jupyterPai: {taskRoles: {worker: {minInstances: 1}}}\n"
    )
    text = V2.replace("memoryMB: 100", "memoryMB: 99").replace("cpu: 1", "cpu: 0").replace("shmMB: 64", "shmMB: 512")
    converted = to_v1(read_document(text.replace("    commands", "    taskRetryCount: 1\n    commands") + extras))
    assert losses(converted) == [
        ("rewritten", "$"),
        ("lost", "$.secrets"),
        ("lost", "$.extras"),
        ("lost", "$.extras.storages"),
        ("lost", "$.extras.jobStatusChangeNotification"),
        ("lost", "$.extras.submitFrom"),
        ("lost", "$.description"),
        ("lost", "$.taskRoles.worker.taskRetryCount"),
        ("lost", "$.taskRoles.worker"),
        ("lost", "$.taskRoles.worker"),
        ("rewritten", "$.taskRoles.worker.memoryMB"),
        ("rewritten", "$.taskRoles.worker.cpuNumber"),
        ("rewritten", "$.taskRoles.worker.shmMB"),
    ]
    (role,) = json.loads(converted.text)["taskRoles"]
    assert (role["memoryMB"], role["cpuNumber"], role["shmMB"]) == (100, 1, 100)
    assert role["minSucceededTaskCount"] == 1
    assert role["command"] == "set -o errexit -o nounset -o pipefail\necho"
    assert json.loads(converted.text)["extras"] == {"own": 1}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (("commands: [echo]", "commands: ['echo <% $secrets.s %>']\nsecrets: {s: x}"), "$.taskRoles.worker.commands"),
        (
            (
                "commands: [echo]\n",
                "commands: [echo]\n  b: {dockerImage: other, resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0},"
                " completion: {minSucceededInstances: -1}, commands: [x]}\n",
            ),
            "$.taskRoles.b.dockerImage",
        ),
    ],
)
def test_a_v2_document_that_would_be_another_job_in_v1_is_refused(change: tuple[str, str], path: str) -> None:
    with pytest.raises(DocumentError) as caught:
        to_v1(read_document(V2.replace(*change)))
    assert [fault.path for fault in caught.value.errors] == [path]


def test_the_repr_of_a_conversion_shows_no_text() -> None:
    assert "hunter2" not in repr(to_v2(small({"command": "hunter2"})))


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("echo $QIZHI_A", Rewritten("echo $PAI_A", ("QIZHI_A",))),
        ("echo ${QIZHI_A:-x}$QIZHI_B", Rewritten("echo ${PAI_A:-x}$PAI_B", ("QIZHI_A", "QIZHI_B"))),
        ("echo '$QIZHI_A'", Rewritten("export QIZHI_A=\"${PAI_A-}\"\necho '$QIZHI_A'", (), ("QIZHI_A",))),
        ("echo \\$QIZHI_A", Rewritten('export QIZHI_A="${PAI_A-}"\necho \\$QIZHI_A', (), ("QIZHI_A",))),
        (
            "echo \"$QIZHI_A\" '$QIZHI_A'",
            Rewritten('export QIZHI_A="${PAI_A-}"\necho "$PAI_A" \'$QIZHI_A\'', ("QIZHI_A",), ("QIZHI_A",)),
        ),
        ("QIZHI_A=1; echo $QIZHI_A", Rewritten("QIZHI_A=1; echo $QIZHI_A")),
        ("echo $MY_QIZHI_A", Rewritten("echo $MY_QIZHI_A")),
        ("echo QIZHI_", Rewritten("echo QIZHI_")),
    ],
)
def test_variables_are_rewritten_where_the_shell_expands_them(command: str, result: Rewritten) -> None:
    assert rewritten(command, []) == result


@pytest.mark.parametrize(
    ("name", "labels", "pai"),
    [
        ("QIZHI_JOB_TASK_COUNT", [], "PAI_JOB_TASK_COUNT"),
        ("QIZHI_CONTAINER_HOST__http_PORT_LIST", ["http"], "PAI_CONTAINER_HOST_http_PORT_LIST"),
        ("QIZHI_CONTAINER_HOST_http_PORT_LIST", ["http"], "PAI_CONTAINER_HOST_http_PORT_LIST"),
        ("QIZHI_CONTAINER_HOST__x_PORT_LIST", ["_x"], "PAI_CONTAINER_HOST__x_PORT_LIST"),
    ],
)
def test_names_of_variables(name: str, labels: list[str], pai: str) -> None:
    assert pai_name(name, labels) == pai


@pytest.mark.parametrize(
    "text",
    [
        "on",
        "0o17",
        "0x1F",
        "1e3",
        "~",
        "",
        " a",
        "a ",
        "a\n",
        "a\n\n",
        "\na",
        " a\nb",
        "a \nb",
        "\ta\n\tb",
        "a: b",
        "#a",
        "- a",
        "a\r\nb",
        "\x85",
        "\u2028",
        "😀\nb",
        "\x07",
        "<<",
        "=",
        "a\n  b\n c",
        "%a",
        "---",
        "'\"",
        "1_000",
        "12:30",
    ],
)
def test_every_text_reads_back_from_yaml(text: str) -> None:
    root = locate_yaml(dumped({"a": [text], "b": {text or "x": text}})).root
    assert root is not None
    assert root.plain() == {"a": [text], "b": {text or "x": text}}


def test_long_commands_are_blocks() -> None:
    assert dumped({"a": "set -e\nfor i in 1 2; do\n  echo $i  # x\ndone\n"}) == (
        "a: |\n  set -e\n  for i in 1 2; do\n    echo $i  # x\n  done\n"
    )
