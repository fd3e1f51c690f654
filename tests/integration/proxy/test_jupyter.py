"""Real Jupyter servers: which token they really have, and that their users need none."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from pathlib import Path

import httpx
import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from pai_backend.controller.uses import activity, servers
from pai_backend.launch.jupyter import find_jupyter, made_token
from pai_backend.testing.free_ports import free_port
from tests.support.jupyter_process import START_S, jupyter_task, server_info
from tests.support.proxy_fakes import KEY, ProxyUnderTest, running_proxy, service_job

# The command of the SCM Jupyter document, after JSON and before bash.
SEEDS_COMMAND = (
    r"jupyter notebook --allow-root --no-browser --ip 0.0.0.0 --port=$PAI_CONTAINER_HOST_jupyter_PORT_LIST "
    r"--NotebookApp.token=\"\" --NotebookApp.allow_origin=\"*\" --NotebookApp.base_url=\"/\""
)
# The same with the remedy of the open-jupyter warning, and the other front end.
CLOSED_COMMAND = "cd . && exec jupyter lab --allow-root --no-browser --port=$PAI_CONTAINER_HOST_jupyter_PORT_LIST"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("options", "variable"),
    [
        (r"--ServerApp.token=\"\" --ServerApp.base_url=\"/x/\"", "ignored"),
        (r"--IdentityProvider.token=\'\' --ServerApp.base_url=a/b", ""),
        (r"--ServerApp.token \"abc\" --ServerApp.ip=127.0.0.1", "ignored"),
        ("--ip=127.0.0.1", "from-the-environment"),
    ],
)
async def test_options_mean_what_a_real_server_makes_of_them(options: str, variable: str, tmp_path: Path) -> None:
    env = {"PORT": str(free_port()), "JUPYTER_TOKEN": variable}
    command = f"jupyter server --allow-root --no-browser --port=$PORT {options}"
    found = find_jupyter(command, env)
    assert found is not None
    async with jupyter_task(command, tmp_path, env) as process:
        info = await server_info(process, tmp_path)
    assert (info["port"], info["hostname"]) == (found.port, found.ip)
    assert (info["token"], info["base_url"]) == (found.token, found.base_url)


class Browser:
    """A signed-in browser: it has a cookie of the service and no token, and keeps all that it was sent."""

    def __init__(self, under_test: ProxyUnderTest, cookie: str) -> None:
        self.under_test = under_test
        self.received: list[bytes] = []
        self.headers = {"Cookie": cookie, "Origin": under_test.origin}
        self._client = under_test.client(**self.headers)

    async def ask(self, method: str, path: str, **options: object) -> httpx.Response:
        answer = await self._client.request(method, path, **options)  # type: ignore[arg-type]
        self.received += [answer.content, *(value for _, value in answer.headers.raw)]
        return answer

    async def run(self, kernel: str, code: str) -> str:
        """The text that a cell with this code evaluates to."""
        request = HTTPRequest(
            f"ws://127.0.0.1:{self.under_test.port}/api/kernels/{kernel}/channels?session_id=s",
            headers=self.headers | {"Host": self.under_test.authority},
        )
        socket = await websocket_connect(request)
        message_id = uuid.uuid4().hex
        await socket.write_message(
            json.dumps(
                {
                    "header": {"msg_id": message_id, "msg_type": "execute_request", "username": "", "session": "s"},
                    "parent_header": {},
                    "metadata": {},
                    "content": {"code": code, "silent": False, "store_history": False, "allow_stdin": False},
                    "channel": "shell",
                }
            )
        )
        while (text := await socket.read_message()) is not None:
            self.received.append(text if isinstance(text, bytes) else text.encode())
            message = json.loads(text)
            if message["parent_header"].get("msg_id") == message_id and message["msg_type"] == "execute_result":
                socket.close()
                return str(message["content"]["data"]["text/plain"])
        raise AssertionError("the kernel's socket was closed")


async def answering(browser: Browser, path: str) -> httpx.Response:
    """The first answer of the server itself; before, the page that says it is starting."""
    async with asyncio.timeout(START_S):
        while (answer := await browser.ask("GET", path, headers={"Accept": "text/html"})).status_code == 503:
            assert "Nothing answers on port" in answer.text
            await asyncio.sleep(0.1)
    return answer


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("command", "page", "token"), [(SEEDS_COMMAND, "/tree", '""'), (CLOSED_COMMAND, "/lab", "made")]
)
async def test_a_browser_works_in_jupyter_without_ever_seeing_its_token(
    command: str, page: str, token: str, tmp_path: Path
) -> None:
    port = free_port()
    job = service_job(port, command=command, label="jupyter")
    made = made_token(KEY, job.uid)
    env = {"PAI_CONTAINER_HOST_jupyter_PORT_LIST": str(port), "JUPYTER_TOKEN": made}
    async with running_proxy(job) as under_test, jupyter_task(command, tmp_path, env) as process:
        under_test.host = "lab--jupyter.localhost"
        ticket = await under_test.ticket(service="lab--jupyter")
        signed_in = await under_test.client().get("/.pai/signin", params={"ticket": ticket})
        browser = Browser(under_test, signed_in.headers["set-cookie"].split(";")[0])

        root = await answering(browser, "/")
        assert root.status_code == 302
        assert root.headers["location"].startswith(page)
        opened = await browser.ask("GET", page, headers={"Accept": "text/html"})
        config = re.search(r'<script[^>]*id="jupyter-config-data"[^>]*>(.*?)</script>', opened.text, re.DOTALL)
        assert config is not None
        assert json.loads(config[1])["token"] == ""
        assert (await server_info(process, tmp_path))["token"] == (made if token == "made" else token)

        kernel = await browser.ask("POST", "/api/kernels", json={"name": "python3"})
        assert kernel.status_code == 201, kernel.text
        (server,) = servers(job, job.tasks[0], made)
        before = await activity(under_test.engine, server)
        assert await browser.run(kernel.json()["id"], "1+1") == "2"
        await answering(browser, "/api/kernels")
        after = await activity(under_test.engine, server)
        assert after.mark > before.mark, "a cell that runs is use"
        assert await activity(under_test.engine, server) == after, "a page that asks for kernels is none"
        assert (await browser.ask("DELETE", f"/api/kernels/{kernel.json()['id']}")).status_code == 204
        assert (await browser.ask("GET", "/api/status?token=wrong")).status_code == 200

        stranger = await under_test.client().get("/api/status")
        assert stranger.status_code == 401
    everything = b"\n".join(browser.received)
    assert made.encode() not in everything
    assert b'"token": "\\"\\""' not in everything
