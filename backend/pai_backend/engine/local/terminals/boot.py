"""``python -I -S boot.py FOLDER PROGRAM [ARGUMENTS]``: what a task's SSH server executes for a terminal.

Python compiles the file it is given each time; this one is short, and what it imports is cached.
"""

import os
import sys

_PACKAGES = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
sys.path.insert(0, _PACKAGES)

from pai_backend.engine.local.terminals.serving import main  # noqa: E402 - isolated mode: the path comes first

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
