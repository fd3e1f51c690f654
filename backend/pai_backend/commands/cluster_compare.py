"""``python -m pai_backend cluster compare OLD NEW``: two cluster configurations side by side, without a backend.

Prints one JSON value; people use ``pai cluster plan OLD NEW``. What is wrong with a file is printed as
``{"file": …, "error": …}``, and the exit code is 2.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pai_backend.model.errors import DocumentError
from pai_backend.scheduling.config.model import ClusterConfig, compare
from pai_backend.scheduling.config.read import read_config

EXIT_INVALID = 2
USAGE = "usage: python -m pai_backend cluster compare OLD NEW\n"


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    if len(arguments) != 2:
        sys.stderr.write(USAGE)
        return EXIT_INVALID
    configs: list[ClusterConfig] = []
    for file in arguments:
        try:
            configs.append(read_config(_text(file)))
        except DocumentError as error:
            body = error.body().model_dump(mode="json", by_alias=True)
            sys.stdout.write(json.dumps({"file": file, "error": body}) + "\n")
            return EXIT_INVALID
    before, after = configs
    change = compare(before, after)
    told = {
        "differs": change.differs,
        "warnings": [warning.model_dump(mode="json", by_alias=True) for warning in after.warnings],
        "change": change.model_dump(mode="json", by_alias=True),
    }
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


def _text(file: str) -> str:
    """The text of a file. Raises DocumentError for one that cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(f"{file} is not UTF-8 text (byte {error.start})", hint="Save it as UTF-8.") from error
    except OSError as error:
        raise DocumentError(f"cannot read {file}: {error.strerror}", hint="Check its path and rights.") from error
