"""The panel's backends in a real Jupyter server: listed, changed between, and followed when the shell changes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.support.fake_backend import TOKEN as BACKEND_TOKEN
from tests.support.jupyter import TOKEN, JupyterServer
from tests.support.running_fake import RunningFake


@dataclass
class Site:
    """A Jupyter server of a user who has signed in to two backends, each with a job of its name."""

    config: Path
    server: JupyterServer

    def ask(self, method: str, path: str, value: object = None) -> tuple[int, Any]:
        body = None if value is None else json.dumps(value).encode()
        request = Request(self.server.url + path, body, {"Authorization": f"token {TOKEN}"}, method=method)
        try:
            with urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as refusal:
            return refusal.code, json.loads(refusal.read())

    def jobs(self) -> list[str]:
        return [job["name"] for job in self.ask("GET", "pai/api/v2/jobs")[1]]

    def used(self) -> list[str]:
        return [each["name"] for each in self.ask("GET", "pai/contexts")[1]["contexts"] if each["current"]]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    config = tmp_path / ".config" / "jupyter-pai"
    (config / "contexts").mkdir(parents=True)
    with ExitStack() as stack:
        for name in ("lab", "far"):
            fake = stack.enter_context(RunningFake())
            fake.add_job(f"of-{name}")
            text = f'url = "{fake.endpoint.url}"\ntoken = "{BACKEND_TOKEN}"\n'
            (config / "contexts" / f"{name}.toml").write_text(text)
        (config / "client.toml").write_text('context = "lab"\n')
        started: dict[str, object] = {"PaiExtension": {"start_embedded": False}}
        environ = {"XDG_CONFIG_HOME": str(tmp_path / ".config")}
        yield Site(config, stack.enter_context(JupyterServer(tmp_path, started, environ)))


def test_the_panel_uses_the_backend_that_was_chosen_last(site: Site) -> None:
    status, listed = site.ask("GET", "pai/contexts")
    assert (status, listed["fixedBy"]) == (200, "")
    assert [(each["name"], each["current"]) for each in listed["contexts"]] == [
        ("local", False),
        ("far", False),
        ("lab", True),
    ]
    assert BACKEND_TOKEN not in json.dumps(listed)
    assert site.jobs() == ["of-lab"]
    assert site.ask("PUT", "pai/contexts", {"name": "far"})[0] == 200
    assert (site.used(), site.jobs()) == (["far"], ["of-far"])
    (site.config / "client.toml").write_text('context = "lab"\n')  # as `pai context use lab` does
    assert (site.used(), site.jobs()) == (["lab"], ["of-lab"])
    for name in ("none", "../client", 7):
        status, refusal = site.ask("PUT", "pai/contexts", {"name": name})
        assert (status, refusal["code"]) == (400, "InvalidParametersError")
    assert site.ask("PUT", "pai/contexts", {"name": "local"})[0] == 200
    assert (site.used(), site.ask("GET", "pai/api/v2/jobs")[0]) == (["local"], 503)
