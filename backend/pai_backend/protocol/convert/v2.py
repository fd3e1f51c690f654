"""Writing a v1 document, QIZHI's and SCM's included, as OpenPAI v2.

Source of what v2 says otherwise: a counter's null is v1's "never" and v2's default, so it becomes -1; shared memory
left out is 64 MiB in v1 and 512 in v2; names, the shell's mode and variables as in ``names`` and ``shell``. What v2
has no field for goes into ``extras.jupyterPai`` (``extension``) and is listed, because other systems ignore it.
"""

from __future__ import annotations

from typing import Any, Final

from pai_backend.model import tags
from pai_backend.model.spec import Dialect, TaskRole
from pai_backend.model.text import Text
from pai_backend.protocol import extension
from pai_backend.protocol.convert import names, shell
from pai_backend.protocol.convert.counting import counting
from pai_backend.protocol.convert.result import Converted, Losses, finished, refused
from pai_backend.protocol.convert.source import command_of, directories_of, note_programs, note_source
from pai_backend.protocol.convert.yaml_text import dumped
from pai_backend.protocol.document import Document
from pai_backend.protocol.own_fields import IN_V1, KEY, written_fields
from pai_backend.protocol.tree import shown
from pai_backend.protocol.v1 import UNKNOWN_FIELDS

UNLIMITED: Final = 2**31 - 1
"""jobRetryCount for v1's -1: as many retries as v2 can say."""
_IMAGE: Final = "image"
_SETUP: Final = "setup"
"""The parameter with what stands before the command of each of several roles."""
_OFF: Final = -1


def to_v2(document: Document) -> Converted:
    """``document`` as OpenPAI v2 YAML; one that is v2 already is returned as it is.

    Raises DocumentError for a draft of v2, for a command in which v2 would find tags, and for a document that would
    be beyond the reader's limits.
    """
    if document.dialect is Dialect.OPENPAI_V2:
        return Converted(document.source.decode())
    if document.dialect is Dialect.OPENPAI_V2_DRAFT:
        raise refused(
            (), Text("it is already a draft of v2"), Text("Follow the warnings of pai validate to make it v2.")
        )
    return _Writer(document).written()


class _Writer:
    """One conversion. ``aside`` is what goes into ``extras.jupyterPai``."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.spec = document.spec
        self.losses = Losses()
        self.aside: dict[str, Any] = {}
        self.roles = names.identifiers(role.name for role in self.spec.task_roles)
        self.labels = names.identifiers(port.label for role in self.spec.task_roles for port in role.ports)
        self.counting = counting(self.spec)
        self.directories = directories_of(self.spec, self.losses)
        self.exports = shell.exports(self.spec.env, set(self.spec.secret_env.values()))
        self.setup = "\n".join((shell.V1_MODE, *self.exports.lines, *shell.directories(self.directories)))

    def written(self) -> Converted:
        """The text and what it loses."""
        spec = self.spec
        note_source(self.document, self.losses)
        note_programs(spec, self.losses)
        self._check_tags(Text("image"), ("image",), spec.image)
        job: dict[str, Any] = {
            "protocolVersion": 2,
            "name": names.job_name(spec.name),
            "type": "job",
            "jobRetryCount": self._retries(),
            "prerequisites": [{"name": _IMAGE, "type": "dockerimage", "uri": spec.image}],
        }
        if len(spec.task_roles) > 1:
            job["parameters"] = {_SETUP: self.setup}
        if self.exports.secrets:
            job["secrets"] = self.exports.secrets
        job["taskRoles"] = {
            self.roles[role.name]: self._role(number, role) for number, role in enumerate(spec.task_roles)
        }
        if spec.virtual_cluster != "default":
            job["defaults"] = {"virtualCluster": spec.virtual_cluster}
        self._set_aside_job()
        self._note_names()
        extras = self._extras()
        if extras:
            job["extras"] = extras
        return finished(dumped(job), self.losses)

    def _role(self, number: int, role: TaskRole) -> dict[str, Any]:
        """One task role of v2."""
        need, name = role.resources, self.roles[role.name]
        options: dict[str, Any] = {"shmMB": need.shm_mb}
        if role.infiniband:
            options["infiniband"] = True
        resources: dict[str, Any] = {"cpu": need.cpus, "memoryMB": need.memory_mb, "gpu": need.gpus}
        ports = {self.labels[port.label]: port.count for port in role.ports if not port.implicit}
        if ports:
            resources["ports"] = ports
        self._set_aside_role(number, name, role)
        rule = role.completion
        succeeded = self.counting.succeeded or rule.min_succeeded
        return {
            "instances": role.instances,
            "completion": {
                "minFailedInstances": _OFF if rule.min_failed is None else rule.min_failed,
                "minSucceededInstances": _OFF if succeeded is None else succeeded,
            },
            "dockerImage": _IMAGE,
            "resourcePerInstance": resources,
            "extraContainerOptions": options,
            "commands": self._commands(number, role),
        }

    def _commands(self, number: int, role: TaskRole) -> list[str]:
        """What is set first, and the command as it was written but for QIZHI's variables."""
        path = ("taskRoles", number, "command")
        command = command_of(role.command, [port.label for port in role.ports], path, self.losses)
        self._check_tags(Text("command"), path, command)
        if command.rstrip() != command and command.rstrip().endswith("\\"):
            self.losses.rewritten(path, Text("v2 takes the blank after the last backslash away"))
        return [self.setup if len(self.spec.task_roles) == 1 else f"<% $parameters.{_SETUP} %>", command]

    def _retries(self) -> int:
        count = self.spec.retry_count
        if count >= 0:
            return count
        self.aside["retryCount"] = count
        largest, never = (
            Text("unlimited retries become the largest number"),
            Text("v2 never runs a job again that succeeded"),
        )
        message = largest if count == -1 else never
        self.losses.kept_aside(("retryCount",), message)
        return UNLIMITED if count == -1 else 0

    def _set_aside_job(self) -> None:
        """What v2 has no field for, of the job."""
        spec, losses = self.spec, self.losses
        for field, value in self.directories.items():
            if value:
                self.aside[field] = value
                losses.kept_aside((field,), Text("v2 has no {field}; {instead}", field=field, instead=_INSTEAD[field]))
        if spec.gpu_type:
            self.aside["gpuType"] = spec.gpu_type
            hint = Text("Write the site's skuType in extras.hivedScheduler.taskRoles for other systems.")
            losses.kept_aside(("gpuType",), Text("v2 chooses GPUs by the SKU types of its site"), hint)
        if self.counting.kill_all is not None:
            name = "killAllOnCompletedTaskNumber"
            self.aside[name] = self.counting.kill_all
            losses.kept_aside(
                (name,), Text("v2 cannot count the completed tasks of several roles, or failed ones, together")
            )
        if spec.debug:
            self.aside["isDebug"] = True
            losses.kept_aside(("jobEnvs", "isDebug"), Text("v2 keeps no failed tasks"))
        for name in self.exports.unsaid:
            losses.lost(
                ("jobEnvs", name),
                Text("no shell can set a variable called {name}", name=shown(name)),
                Text("Rename it."),
            )
        if self.exports.secrets:
            names_ = ", ".join(self.exports.secrets)
            losses.rewritten(("jobEnvs",), Text("moved into secrets, by their names: {names}", names=names_))
        if self.exports.in_the_open:
            message = Text(
                "numbers and short texts stay in the command: {in_the_open}",
                in_the_open=", ".join(self.exports.in_the_open),
            )
            losses.rewritten(("jobEnvs",), message, Text("Move those that are secret into secrets."))

    def _set_aside_role(self, number: int, name: str, role: TaskRole) -> None:
        """What v2 has no field for, of a task role."""
        path = ("taskRoles", number)
        aside: dict[str, Any] = {}
        if role.resources.storage_gb is not None:
            aside["storageGB"] = role.resources.storage_gb
            self.losses.kept_aside((*path, "storageGB"), Text("v2 has no storageGB"))
        begin = {self.labels[port.label]: port.begin_at for port in role.ports if port.begin_at}
        if begin:
            aside["beginAt"] = begin
            message = Text("v2 has no fixed ports: elsewhere they are chosen at random")
            self.losses.kept_aside(
                (*path, "portList"), message, Text("Use the variables with the ports, not the numbers.")
            )
        if aside:
            self.aside.setdefault("taskRoles", {})[name] = aside

    def _extras(self) -> dict[str, Any]:
        """v1's extras, which are free data; those that mean something in v2 are put aside.

        What ``jupyterPai`` says is followed in both, and stays where it is.
        """
        extras = {name: value for name, value in self.spec.extras.items() if name not in extension.MEANT_IN_V2}
        meant = {name: value for name, value in self.spec.extras.items() if name in extension.MEANT_IN_V2}
        self.aside |= written_fields(self.spec)
        followed = IN_V1.fields.keys() & (meant.get(KEY) or {})
        if followed:
            rest = {name: value for name, value in meant.pop(KEY).items() if name not in followed}
            meant |= {KEY: rest} if rest else {}
        for name in meant:
            self.losses.kept_aside(("extras", name), Text("v2 would follow extras.{name}, v1 does not", name=name))
        if UNKNOWN_FIELDS in extras:
            self.losses.kept_aside(("extras",), Text("fields that only SCM knows are kept in extras"))
        if meant:
            self.aside["extras"] = meant
        return extras | ({KEY: self.aside} if self.aside else {})

    def _note_names(self) -> None:
        """The names that v2 does not allow, and the way back."""
        changed: dict[str, Any] = {}
        name = names.job_name(self.spec.name)
        if name != self.spec.name:
            changed["jobName"] = self.spec.name
            hint = Text("v2 takes letters, digits, '-' and '_'.")
            self.losses.renamed(("jobName",), Text("the job is called {name}", name=shown(name)), hint)
        for kind, table in (("taskRoles", self.roles), ("portList", self.labels)):
            back = {new: old for old, new in table.items() if new != old}
            for new, old in back.items():
                what = Text("task role") if kind == "taskRoles" else Text("label")
                hint = Text("Variables that hold the name hold the new one.")
                self.losses.renamed(
                    ("taskRoles",),
                    Text("the {what} {old} is called {new}", what=what, old=shown(old), new=shown(new)),
                    hint,
                )
            if back:
                changed[kind] = back
        if changed:
            self.aside["names"] = changed

    def _check_tags(self, what: Text, path: tuple[str | int, ...], text: str) -> None:
        if any(True for _ in tags.find(text)):
            message = Text("v2 would take a part of the {what} for one of its tags <% … %>", what=what)
            raise refused(path, message, Text("Put the text into a file of the image or the data."))


_INSTEAD: Final = {
    "authFile": Text("write the registry's auth into the prerequisite"),
    "dataDir": Text("the command sets PAI_DATA_DIR"),
    "outputDir": Text("the command sets PAI_OUTPUT_DIR"),
    "codeDir": Text("the command sets PAI_CODE_DIR, and nothing is copied"),
}
