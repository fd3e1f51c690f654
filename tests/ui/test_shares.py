"""Shared jobs as their users see them in the panel, in Chinese: whose, until when, for what; and what may be done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect

from jupyter_pai import broker
from jupyter_pai.embedded import Embedded
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.following import observe
from jupyter_pai.sync import Client
from tests.support.lab_site import running_lab
from tests.ui.conftest import TIMEOUT_MS, open_panel
from tests.ui.test_language import LANGUAGE
from tests.ui.test_panel import document

BOB = "a-token-of-bob-alone"


SERVED = "exec python3 -m http.server $(env | sed -n 's/^PAI_PORT_LIST_.*_0_http=//p') --bind 127.0.0.1"
LISTING = "Directory listing"


def running(client: Client, name: str, command: str = "exec sleep 600") -> str:
    """A job of that client's user that runs; its id."""
    job = client.submit(document(name, command).encode())
    for item in client.iterate(observe(client.api, job["uid"], log=False)):
        if not isinstance(item, bytes) and item["state"] == "RUNNING":
            return job["id"]
    raise AssertionError("the job never ran")


def share(client: Client, job: str, user: str, **terms: Any) -> None:
    client.thread.run(broker.share(client.api, job, user, **terms))


def test_shares_are_marked_listed_and_kept_to(
    tmp_path: Path, browser: Browser, shoot: Callable[[Page, str], None]
) -> None:
    setting = tmp_path / "user-settings" / LANGUAGE
    setting.parent.mkdir(parents=True)
    setting.write_text(json.dumps({"locale": "zh_CN"}))
    tokens = json.dumps([{"user": "bob", "token": BOB, "admin": False}])
    given = {"PAI_BACKEND_API__TOKENS": tokens, "PAI_BACKEND_ENGINE__TRUST_ALL_USERS": "true"}
    with running_lab(tmp_path, given) as lab:
        lab.get("jobs")  # starts the backend
        endpoint = Embedded(tmp_path / "backend").require()
        with Client(endpoint) as own, Client(Endpoint(endpoint.url, BOB)) as bob:
            mine, theirs = running(own, "mine"), running(bob, "theirs", SERVED)
            share(own, mine, "bob", lifetime_s=7200)
            share(bob, theirs, mine.partition("~")[0], only=["sftp", "port:http"])
            link = bob.thread.run(broker.link(bob.api, theirs, "http"))
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        open_panel(page, lab, "PAI 作业")
        region = page.get_by_role("region", name="PAI 作业")
        expect(region.get_by_role("option").filter(has_text="mine")).to_contain_text("已共享给 bob")
        received = region.get_by_role("region", name="共享给您的作业")
        expect(received).to_contain_text("bob~theirs")
        expect(received).to_contain_text("来自 bob · 到作业结束为止 · 允许：sftp, port:http")
        with context.expect_page() as opened:
            received.get_by_role("button", name="打开 bob~theirs 的 http").click()
        expect(opened.value.locator("body")).to_contain_text(LISTING)
        assert urlsplit(opened.value.url).hostname == "theirs--http.localhost"
        opened.value.close()
        received.get_by_role("button", name="连接…").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("note")).to_contain_text("由 bob 共享 · 到作业结束为止 · 允许：sftp, port:http")
        expect(dialog).to_contain_text("sftp theirs")
        expect(dialog.get_by_role("region", name="编辑器")).to_have_count(0)
        shoot(page, "shares-zh-CN")
        dialog.get_by_role("button", name="关闭").click()
        shoot(page, "shares-list-zh-CN")
        context.close()
        stranger = browser.new_context()
        stranger.set_default_timeout(TIMEOUT_MS)
        visit = stranger.new_page()
        visit.goto(link["url"])
        expect(visit.locator("body")).to_contain_text(LISTING)
        assert visit.url == f"http://theirs--http.localhost:{urlsplit(endpoint.url).port}/", "no token is left in it"
        visit.goto(f"{link['url']}x")
        expect(visit.get_by_role("alert")).to_contain_text("It has expired, was revoked")
        stranger.close()
        with Client(Endpoint(endpoint.url, BOB)) as bob:
            bob.stop("theirs")
            for _ in bob.follow_events("theirs"):
                pass
