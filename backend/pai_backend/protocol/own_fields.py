"""Applies the field table of ``extras.jupyterPai`` (``model.extension``): checks, reads and writes its fields.

Times are whole numbers with their units, like ``2h30m``: one reader would take a bare number for minutes and the next
for seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pai_backend.model import address, user_secret
from pai_backend.model.duration import UNITS, duration_text
from pai_backend.model.extension import DocumentField, FieldType, document_fields
from pai_backend.model.labels import KEY_RULE, VALUE_RULE, is_label_key, is_label_value
from pai_backend.model.pod_choice import FIELDS as POD_FIELDS
from pai_backend.model.pod_choice import NAME_RULE, PodChoice, is_object_name
from pai_backend.model.spec import JobSpec
from pai_backend.model.text import Text
from pai_backend.protocol.field_table import Field, FieldKind, Table, kind_of
from pai_backend.protocol.fields import Members, Path, Reader
from pai_backend.protocol.tree import Node, Unreadable, shown
from pai_backend.protocol.variables import check_variable

KEY: Final = "jupyterPai"
"""The member of ``extras`` in which a document says what OpenPAI has no field for; other systems ignore it."""
SECRET_ENV: Final = ("extras", KEY, "secretEnv")
"""Where a document names the secrets that variables take."""
MAX_NAME: Final = 255
"""Names become parts of file names, which end at 255 bytes on the usual file systems."""
MAX_PATH: Final = 4096
"""Directories and images: the longest path of Linux (PATH_MAX)."""
YEAR_S: Final = 365 * 86_400
"""The longest time that a field takes."""
MOST_LABELS: Final = 32
"""Labels of one selector: each node is compared with all of them."""

_TIME: Final = re.compile("".join(f"(?:([0-9]{{1,8}}){unit})?" for unit in UNITS))
_TIME_HINT: Final = Text(
    "Write days, hours, minutes and seconds as whole numbers with their units, like 2h30m, 45m or 1d."
)
_NOWHERE: Final[Mapping[str, Text]] = {}


def table(name: str, rows: Sequence[DocumentField], elsewhere: Mapping[str, Text] = _NOWHERE) -> Table:
    """The rows as :meth:`Reader.members` takes them; ``elsewhere``: names that stand in another place, and in which."""
    return Table(name, {row.name: _rule(row) for row in rows}, elsewhere=elsewhere)


def _rule(row: DocumentField) -> Field:
    match row.type:
        case FieldType.NAME:
            return Field(FieldKind.TEXT, longest=MAX_NAME)
        case FieldType.ADDRESS:
            return Field(FieldKind.TEXT, longest=address.MOST)
        case FieldType.PATH:
            return Field(FieldKind.TEXT, longest=MAX_PATH)
        case FieldType.INTEGER:
            return Field(FieldKind.INTEGER) if row.low is None else Field(FieldKind.INTEGER, low=row.low)
        case FieldType.FLAG | FieldType.DURATION:
            return Field(FieldKind.ANY)
        case FieldType.LABELS | FieldType.SECRETS | FieldType.POD | FieldType.OBJECT:
            return Field(FieldKind.OBJECT)


JOB: Final = document_fields(JobSpec)
"""The job's rows, by attribute."""
COMMON: Final = {attribute: row for attribute, row in JOB.items() if not row.v1_name}
"""Those that are followed in v1 as well."""
IN_V1: Final = table(KEY, list(COMMON.values()), {"isDebug": Text("A v1 document says it in jobEnvs.")})
"""What v1 follows of ``extras.jupyterPai``; all else in it is free data."""


def read_fields(rows: Mapping[str, DocumentField], own: Members | None, reader: Reader) -> dict[str, Any]:
    """Attribute -> value of the rows that ``own`` has. What is no such value is a fault, and left out."""
    found: dict[str, Any] = {}
    if own is None:
        return found
    for attribute, row in rows.items():
        value: Any = own.values[row.name]
        if isinstance(value, Node):
            left_out = row.in_extras and value.value is None
            value = None if left_out else _read(row, value, (*own.path, row.name), reader)
        if value is not None and value != "":
            found[attribute] = value
    return found


def read_job_fields(
    rows: Mapping[str, DocumentField], extras: Mapping[str, Node], own: Members | None, reader: Reader
) -> dict[str, Any]:
    """As :func:`read_fields` for a job, of which ``extras`` itself may hold some; a field in both is a fault."""
    found = read_fields(rows, own, reader)
    for attribute, row in rows.items():
        node = extras.get(row.name) if row.in_extras else None
        if node is None or node.value is None:
            continue
        inner = own.values[row.name] if own is not None else None
        if own is not None and isinstance(inner, Node) and inner.value is not None:
            message = Text("{field} is also given in extras", field=row.name)
            reader.fault((*own.path, row.name), inner.at, message, Text("Keep one of the two."))
        elif (value := _read(row, node, ("extras", row.name), reader)) is not None:
            found[attribute] = value
    return found


def written_fields(spec: JobSpec) -> dict[str, Any]:
    """The fields that v1 and v2 both follow, by name, as ``extras.jupyterPai`` has them.

    One that the job's ``extras`` hold themselves is left there.
    """
    written = {}
    for attribute, row in COMMON.items():
        value = getattr(spec, attribute)
        is_in_extras = row.in_extras and spec.extras.get(row.name) is not None
        if value != JobSpec.model_fields[attribute].default and not is_in_extras:
            written[row.name] = _written(row, value)
    return written


def _written(row: DocumentField, value: Any) -> Any:
    match row.type:
        case FieldType.DURATION:
            return duration_text(value)
        case FieldType.POD:
            return value.written()
        case _:
            return value


def _read(row: DocumentField, node: Node, path: Path, reader: Reader) -> Any:
    return _READERS[row.type](row, node, path, reader)


def _flag(_row: DocumentField, node: Node, path: Path, reader: Reader) -> bool:
    return reader.boolean(node, path)


def _duration(row: DocumentField, node: Node, path: Path, reader: Reader) -> int | None:
    """Seconds; None, with a fault, when it is no time of the row."""
    if isinstance(node.value, Unreadable):
        return None
    found = _TIME.fullmatch(node.value) if isinstance(node.value, str) and node.value else None
    if found is None:
        if _is_number(node.value):
            message = Text("{field} has no unit", field=row.name)
        else:
            message = Text("{field} is not a known duration", field=row.name)
        reader.fault(path, node.at, message, _TIME_HINT)
        return None
    seconds = sum(int(number or 0) * size for number, size in zip(found.groups(), UNITS.values(), strict=True))
    least = row.low or 0
    if not least <= seconds <= YEAR_S:
        words = Text("1 second") if least == 1 else Text("{count} seconds", count=least)
        reader.fault(
            path, node.at, Text("{field} must be from {least} to 365 days", field=row.name, least=words), row.remedy
        )
        return None
    return seconds


def _is_number(value: object) -> bool:
    return (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and value.strip().isdecimal()
    )


def _labels(row: DocumentField, node: Node, path: Path, reader: Reader) -> dict[str, str]:
    """Labels as a pod of Kubernetes asks for them; each that is invalid is a fault."""
    entries = node.value if isinstance(node.value, dict) else {}
    if len(entries) > MOST_LABELS:
        reader.fault(
            path,
            node.at,
            Text("{field} has {count} labels", field=row.name, count=len(entries)),
            Text("Ask for at most {most}.", most=MOST_LABELS),
        )
        return {}
    found = {}
    for key, member in entries.items():
        value = member.value
        if not is_label_key(key):
            reader.fault(
                (*path, key),
                member.key_at,
                Text("{key} is not a valid label key", key=shown(key)),
                Text("It {rule}.", rule=KEY_RULE),
            )
        elif isinstance(value, str) and is_label_value(value):
            found[key] = value
        elif isinstance(value, str):
            reader.fault(
                (*path, key),
                member.at,
                Text("the value of {key} is not a valid label value", key=key),
                Text("It {rule}.", rule=VALUE_RULE),
            )
        elif not isinstance(value, Unreadable):
            message = Text("the value of {key} must be text, not {given}", key=key, given=kind_of(member))
            reader.fault((*path, key), member.at, message, Text("Put it in double quotes."))
    return found


def _secrets(row: DocumentField, node: Node, path: Path, reader: Reader) -> dict[str, str]:
    """Variables with the names of the user's secrets that they take. Whether the user has these is not asked here."""
    entries = node.value if isinstance(node.value, dict) else {}
    if len(entries) > user_secret.MOST:
        message = Text("{field} has {count} variables", field=row.name, count=len(entries))
        reader.fault(path, node.at, message, Text("Take at most {most}.", most=user_secret.MOST))
        return {}
    found = {}
    for variable, member in entries.items():
        inner, value = (*path, variable), member.value
        if not check_variable(variable, member, inner, reader) or isinstance(value, Unreadable):
            continue
        if isinstance(value, str) and user_secret.is_secret_name(value):
            found[variable] = value
        else:
            hint = Text("Write the name of a secret that `pai secret list` shows, not its value.")
            reader.fault(
                inner, member.at, Text("the name of a secret must have {allowed}", allowed=user_secret.ALLOWED), hint
            )
    return found


KUBERNETES: Final = Table(
    "kubernetes",
    {
        name: Field(FieldKind.LIST if field == "image_pull_secrets" else FieldKind.TEXT)
        for field, name in POD_FIELDS.items()
    },
)
MOST_PULL_SECRETS: Final = 16


def _pod(row: DocumentField, node: Node, path: Path, reader: Reader) -> PodChoice | None:
    """What a document chooses of its pods; whether it may is not asked here."""
    members = reader.members(node, path, KUBERNETES)
    if members is None:
        return None
    found: dict[str, Any] = {}
    for field, name in POD_FIELDS.items():
        if field != "image_pull_secrets":
            text = members.text(name)
            if text and _check_object_name(text, members.at(name), (*path, name), reader):
                found[field] = text
    entries = members.items("imagePullSecrets")
    if len(entries) > MOST_PULL_SECRETS:
        message = Text("{field} has {count} names", field="imagePullSecrets", count=len(entries))
        reader.fault(
            (*path, "imagePullSecrets"), node.at, message, Text("Take at most {most}.", most=MOST_PULL_SECRETS)
        )
        return None
    for index, each in enumerate(entries):
        text = each.value if isinstance(each.value, str) else ""
        if _check_object_name(text, each.at, (*path, "imagePullSecrets", index), reader):
            found.setdefault("image_pull_secrets", []).append(text)
    return PodChoice.model_validate(found) if found else None


def _check_object_name(text: str, at: int, path: Path, reader: Reader) -> bool:
    """Whether an object of a cluster can have the name; a fault where not."""
    if is_object_name(text):
        return True
    message = Text("{name} is not the name of an object of Kubernetes", name=shown(text))
    reader.fault(path, at, message, Text("Use {allowed}.", allowed=NAME_RULE))
    return False


def workspace_name(node: Node, path: Path, reader: Reader) -> str:
    """A workspace name; empty, with a fault, when the text is not a valid one."""
    text = node.value if isinstance(node.value, str) else ""
    if text and not address.is_address(text):
        reader.fault(
            path,
            node.at,
            Text("{name} is not a workspace name", name=shown(text)),
            Text("Use {allowed}.", allowed=address.ALLOWED),
        )
        return ""
    return text


def _address(_row: DocumentField, node: Node, path: Path, reader: Reader) -> str:
    return workspace_name(node, path, reader)


_READERS: Final[Mapping[FieldType, Callable[[DocumentField, Node, Path, Reader], Any]]] = {
    FieldType.FLAG: _flag,
    FieldType.ADDRESS: _address,
    FieldType.DURATION: _duration,
    FieldType.LABELS: _labels,
    FieldType.SECRETS: _secrets,
    FieldType.POD: _pod,
}
"""How the types are read that :meth:`Reader.members` does not read itself."""
