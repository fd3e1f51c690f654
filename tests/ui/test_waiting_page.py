"""A real browser at a service's address before, while and after the service runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, async_playwright, expect

from pai_backend.model.job import Phase, State
from tests.support.chromium import ARGUMENTS, executable
from tests.support.proxy_fakes import ProxyUnderTest, running_proxy, service_job
from tests.support.proxy_upstreams import web_server

pytestmark = pytest.mark.ui


@asynccontextmanager
async def signed_in_page(under_test: ProxyUnderTest, locale: str, going: str) -> AsyncIterator[Page]:
    """A page that came in with a ticket, as the panel opens it."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        page = await browser.new_page(locale=locale)
        await page.goto(f"{under_test.origin}/.pai/signin?ticket={await under_test.ticket()}&next={going}")
        yield page
        await browser.close()


@pytest.mark.asyncio
async def test_the_waiting_page_turns_into_the_service_at_the_same_address() -> None:
    waiting = service_job(None).model_copy(update={"why": "needs 2 TITANX, 1 is free"})
    async with web_server() as (port, _), running_proxy(waiting) as under_test:
        address = f"{under_test.origin}/show?x=1#part"
        async with signed_in_page(under_test, "en-US", "/show?x=1%23part") as page:
            await page.goto(address)
            await expect(page.get_by_role("heading")).to_have_text("Not running yet")
            await expect(page.get_by_text("needs 2 TITANX, 1 is free")).to_be_visible()
            under_test.store.put(service_job(None).model_copy(update={"why": "needs 2 TITANX, 0 are free"}))
            await expect(page.get_by_text("needs 2 TITANX, 0 are free")).to_be_visible()
            under_test.store.put(service_job(port))
            await expect(page.get_by_text('"uri": "/show?x=1"')).to_be_visible()
            assert page.url == address


@pytest.mark.asyncio
async def test_a_finished_job_says_so_in_the_browsers_language_and_stays() -> None:
    done = service_job(None).model_copy(update={"state": State.SUCCEEDED, "phase": Phase.ENDED})
    async with running_proxy(done) as under_test, signed_in_page(under_test, "zh-CN", "/") as page:
        await expect(page.get_by_role("heading")).to_have_text("此作业已结束")
        assert await page.evaluate("document.scripts.length") == 0


@pytest.mark.asyncio
async def test_websockets_of_the_services_own_pages_open_and_those_of_other_sites_do_not() -> None:
    attempt = """url => new Promise(done => {
        const socket = new WebSocket(url, ['beta']);
        socket.onopen = () => { done(socket.protocol); socket.close() };
        socket.onerror = () => done('refused');
    })"""
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        url = f"ws://{under_test.authority}/deep/ws"
        async with signed_in_page(under_test, "en-US", "/show") as page:
            assert await page.evaluate(attempt, url) == "beta"
            await page.goto(f"http://localhost:{under_test.port}/")
            assert await page.evaluate(attempt, url) == "refused"
