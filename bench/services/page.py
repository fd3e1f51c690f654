"""A job's Jupyter in a real browser: from the ticket to its page, beside the page at the task's own port."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.figures import CannotRun, Figure
from tests.support.chromium import ARGUMENTS, executable
from tests.support.private_backend import private_backend

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from jupyter_pai.sync import Client

ROUNDS = 9
LIMIT_MS = 180_000.0
TOKEN = "a-token-of-the-bench"
CONFIG = "{user: bench, engine: {nodes: [{name: carol, simulated: true, gpus: {type: TITANX, count: 1}}]}}"
JUPYTER = "-m notebook --allow-root --no-browser --port $PAI_CONTAINER_HOST_jupyter_PORT_LIST"


async def measure() -> list[Figure]:
    """The figure. Raises CannotRun where there is no Chromium."""
    try:
        chromium = executable()
    except FileNotFoundError as error:
        raise CannotRun(str(error)) from error
    return await asyncio.to_thread(_measured, chromium)


def _measured(chromium: str) -> list[Figure]:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="pai-bench-") as scratch:
        config = Path(scratch) / "backend.yaml"
        config.write_text(CONFIG)
        config.chmod(0o600)
        with private_backend(Path(scratch) / "data", config) as client, sync_playwright() as playwright:
            uid, port = _jupyter(client)
            browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
            try:
                return [_beside(browser, client, uid, port)]
            finally:
                browser.close()


def _jupyter(client: Client) -> tuple[str, int]:
    """A job with Jupyter that runs, and its port."""
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 2000, "gpuNumber": 0}
    ports = [{"label": "jupyter", "beginAt": 0, "portNumber": 1}]
    command = f"exec {shlex.quote(sys.executable)} {JUPYTER}"
    roles = [{**role, "portList": ports, "command": command}]
    document = {"jobName": "page", "image": "none", "jobEnvs": {"JUPYTER_TOKEN": TOKEN}, "taskRoles": roles}
    uid = client.submit(json.dumps(document).encode())["uid"]
    for event in client.follow_events(uid):
        if event["type"] == "job.state" and '"RUNNING"' in json.dumps(event["payload"]):
            break
    (service,) = client.job(uid)["services"]
    assert service["port"] is not None
    return uid, service["port"]


def _beside(browser: Browser, client: Client, uid: str, port: int) -> Figure:
    """Rounds in turn, after one that does not count; medians. Each has a browser profile of its own."""

    def through() -> str:
        return client.ticket(uid, "jupyter")["url"]

    def direct() -> str:
        return f"http://localhost:{port}/tree?token={TOKEN}"

    _seconds(browser, direct)  # Jupyter may not listen yet; the proxy's page waits for it by itself
    rounds = [(_seconds(browser, through), _seconds(browser, direct)) for _ in range(ROUNDS + 1)][1:]
    ours, peer = (median(each) for each in zip(*rounds, strict=True))
    told = f"s to Jupyter's page, median of {ROUNDS}: by a ticket {ours:.2f}, at its own port {peer:.2f}"
    return Figure("jupyter", 100 * ours / peer, told)


def _seconds(browser: Browser, address: Callable[[], str]) -> float:
    """How long a new browser profile takes to show the page; asking for the address counts."""
    from playwright.sync_api import Error

    context = browser.new_context()
    try:
        page = context.new_page()
        deadline = time.monotonic() + LIMIT_MS / 1000
        while True:
            begun = time.perf_counter()
            try:
                page.goto(address())
            except Error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)  # nothing listens yet
                continue
            page.get_by_role("tab", name="Files").wait_for(timeout=LIMIT_MS)
            return time.perf_counter() - begun
    finally:
        context.close()
