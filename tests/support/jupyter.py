"""A real Jupyter server process with the extension, for tests."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

START_TIMEOUT_S = 180.0
TOKEN = "jupyter-token-for-tests"
BASE_URL = "/hub%40x/"
_READY = re.compile(rb"http://127\.0\.0\.1:(\d+)/")


class JupyterServer:
    """Starts in ``with``; ``url`` is its address with the base URL. Everything it writes is below ``root``."""

    def __init__(
        self, root: Path, config: dict[str, object], environ: dict[str, str], python: str = sys.executable
    ) -> None:
        self.root = root
        self.python = python
        places = {
            name: str(root / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
        }
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PAI_", "JUPYTER"))}
        self.environ = {**kept, **places, "HOME": str(root), **environ}
        server = {"base_url": BASE_URL, "port": 0, "open_browser": False, "allow_root": True}
        server["jpserver_extensions"] = {"jupyter_pai": True}
        own = config.pop("ServerApp", {})
        assert isinstance(own, dict)
        self.config = {"ServerApp": {**server, **own}, "IdentityProvider": {"token": TOKEN}, **config}

    def __enter__(self) -> JupyterServer:
        directory = Path(self.environ["JUPYTER_CONFIG_DIR"])
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "jupyter_server_config.json").write_text(json.dumps(self.config))
        command = [self.python, "-m", "jupyter_server", "--ip=127.0.0.1"]
        self.process = subprocess.Popen(command, env=self.environ, cwd=self.root, stderr=subprocess.PIPE)
        self.url = self._address()
        return self

    def _address(self) -> str:
        """Read what it says until it says where it is; the rest is read away so that it never blocks."""
        assert self.process.stderr is not None
        said = b""
        for line in self.process.stderr:
            said += line
            found = _READY.search(line)
            if found:
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                self._until_it_listens(int(found[1]))
                return f"http://127.0.0.1:{found[1].decode()}{BASE_URL}"
        raise AssertionError(f"the Jupyter server did not start:\n{said.decode()}")

    def _until_it_listens(self, port: int) -> None:
        """Jupyter names its port a moment before it listens there."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except ConnectionRefusedError:
                assert self.process.poll() is None, "the Jupyter server ended"
                assert time.monotonic() < deadline, "the Jupyter server does not listen"
                time.sleep(0.02)
            else:
                return

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)
