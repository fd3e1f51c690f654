"""The language that JupyterLab is set to, for notebooks whose kernel runs beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path

SETTINGS = Path("@jupyterlab", "translation-extension", "plugin.jupyterlab-settings")
"""Where JupyterLab keeps what its menu *Settings > Language* sets, as JSON with comments."""
_LOCALE = re.compile(r'^\s*"locale"\s*:\s*"([\w.-]+)"', re.MULTILINE)


def locale() -> str:
    """The locale as JupyterLab names it, such as ``zh_CN``; empty when none is set, or the kernel is elsewhere."""
    from jupyter_core.paths import jupyter_config_dir

    folder = os.environ.get("JUPYTERLAB_SETTINGS_DIR") or os.path.join(jupyter_config_dir(), "lab", "user-settings")
    try:
        found = _LOCALE.search((Path(folder) / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return ""
    return found[1] if found is not None and found[1] != "default" else ""
