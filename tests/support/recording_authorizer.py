"""An authorizer that writes down what it was asked and refuses what its file says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jupyter_server.auth import Authorizer


class RecordingAuthorizer(Authorizer):
    """Appends ``action resource`` to the file named by ``PAI_TEST_ASKED``; refuses lines of ``….refused``."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        asked = Path(os.environ["PAI_TEST_ASKED"])
        line = f"{action} {resource}"
        with open(asked, "a") as file:
            file.write(line + "\n")
        refused = asked.with_suffix(".refused")
        return not (refused.exists() and line in refused.read_text().splitlines())
