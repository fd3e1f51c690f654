"""What both writers ask of the document that they start from."""

from __future__ import annotations

import re
from typing import Final

from pai_backend.model.spec import Dialect, JobSpec
from pai_backend.model.text import Text
from pai_backend.protocol.convert import qizhi
from pai_backend.protocol.convert.result import Losses
from pai_backend.protocol.document import Document
from pai_backend.protocol.fields import Path
from pai_backend.protocol.locate import locate

DIRECTORIES: Final = {
    "authFile": "auth_file",
    "dataDir": "data_dir",
    "outputDir": "output_dir",
    "codeDir": "code_dir",
}
"""v1's directory fields -> those of a spec."""
# Strings are passed over as wholes, so that what they hold is no comment.
_COMMENT = re.compile(r'(?:[^"/]++|"[^"\\]*+(?:\\.[^"\\]*+|)*+"|/(?![/*])|)*+/[/*]', re.DOTALL)


def note_source(document: Document, losses: Losses) -> None:
    """List what is in the text of a v1 document and not in its spec."""
    text = document.source.decode()
    root = locate(text).root
    if root is not None and isinstance(root.value, dict) and "tmp" in root.value:
        losses.lost(("tmp",), Text("tmp, a picture of SCM's screen, is left out"), Text("It is ignored."))
    if _COMMENT.match(text):
        losses.lost((), Text("comments are left out"), Text("Write them again where they are needed."))


def directories_of(spec: JobSpec, losses: Losses) -> dict[str, str]:
    """The directory fields with OpenPAI's variables; lists those that changed."""
    found = {}
    for field, attribute in DIRECTORIES.items():
        given = getattr(spec, attribute)
        found[field] = qizhi.directory(given)
        if found[field] != given:
            losses.rewritten((field,), Text("QIZHI_ variables are written PAI_"))
    return found


def note_programs(spec: JobSpec, losses: Losses) -> None:
    """QIZHI's documents mean tasks whose programs may read its variables themselves."""
    if spec.dialect is Dialect.QIZHI:
        hint = Text("Let them read PAI_ variables; only the commands were looked at.")
        losses.lost((), Text("programs that read QIZHI_ variables themselves find none"), hint)


def command_of(command: str, labels: list[str], path: Path, losses: Losses) -> str:
    """The command with OpenPAI's variables; lists what changed and what did not."""
    changed = qizhi.rewritten(command, labels)
    if changed.changed:
        losses.rewritten(path, Text("written with PAI_: {changed}", changed=", ".join(changed.changed)))
    if changed.left:
        message = Text("left as they are, and set before the command: {left}", left=", ".join(changed.left))
        losses.rewritten(path, message, Text("They are in single quotes, or without the $ that a shell expands."))
    return changed.command
