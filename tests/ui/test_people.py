"""The page of users: an administrator adds one, who signs in with what is shown, groups, disables and removes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.axe import faults
from tests.support.backend_process import backend
from tests.support.lab_site import running_lab
from tests.ui.conftest import TIMEOUT_MS, open_panel

NODE = {"name": "carol", "gpus": {"type": "TITANX", "count": 1}, "cpus": 8, "memory_mb": 32768}


def test_an_administrator_adds_changes_disables_and_removes_a_user(
    tmp_path: Path, browser: Browser, shoot: Callable[[Page, str], None]
) -> None:
    (tmp_path / "lab").mkdir()
    given = ["--engine-nodes", json.dumps([NODE]), "--engine-trust-all-users", "true"]
    with backend(tmp_path / "backend", given) as shared:
        told = {"PAI_URL": shared.url, "PAI_TOKEN": shared.token}
        with running_lab(tmp_path / "lab", told) as lab:
            page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
            page.set_default_timeout(TIMEOUT_MS)
            open_panel(page, lab)
            page.evaluate("window.jupyterapp.commands.execute('pai:show-people')")
            people = page.locator(".jp-pai-Cluster:visible")
            people.get_by_role("button", name="Add User…").click()
            dialog = page.get_by_role("dialog")
            dialog.get_by_label("Name").fill("ann")
            dialog.get_by_label("E-mail").fill("ann@example.org")
            dialog.get_by_role("button", name="Add").click()
            expect(dialog).to_contain_text("It is shown this once.")
            password = dialog.locator("code").inner_text()
            assert password not in people.inner_text()
            dialog.get_by_role("button", name="Close").click()
            row = people.get_by_role("table", name="Users").get_by_role("row", name="ann")
            expect(row).to_contain_text("Must set a password")
            assert sign_in(shared.url, password) == (200, True)
            row.get_by_role("button", name="Edit ann").click()
            dialog.get_by_label("Virtual clusters that they manage").fill("default")
            dialog.get_by_role("button", name="Save").click()
            expect(row).to_contain_text("Manages default")
            assert faults(page, ".jp-pai-Cluster:not(.lm-mod-hidden)") == []
            shoot(page, "users")
            adds_changes_and_removes_a_group(page, people, shoot)
            finds_users(people)
            row.get_by_role("button", name="Disable ann").click()
            expect(dialog).to_contain_text("Active jobs: none.")
            dialog.get_by_role("button", name="Disable").click()
            expect(row).to_contain_text("Disabled")
            assert sign_in(shared.url, password)[0] == 403
            row.get_by_role("button", name="Remove ann").click()
            dialog.get_by_role("button", name="Remove").click()
            expect(row).to_have_count(0)
            assert sign_in(shared.url, password)[0] == 400


def adds_changes_and_removes_a_group(page: Page, people: Locator, shoot: Callable[[Page, str], None]) -> None:
    """What the group grants is what its member may use."""
    dialog = page.get_by_role("dialog")
    groups = people.get_by_role("table", name="Groups")
    member = people.get_by_role("table", name="Users").get_by_role("row", name="ann")
    people.get_by_role("button", name="Add Group…").click()
    dialog.get_by_label("Name", exact=True).fill("vision")
    dialog.get_by_label("Members, with commas").fill("ann, eve")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("alert")).to_contain_text("eve")
    assert faults(page, ".jp-Dialog") == []
    dialog.get_by_label("Members, with commas").fill("ann")
    dialog.get_by_label("Description").fill("Cameras.")
    dialog.get_by_label("Virtual clusters, with commas").fill("default")
    dialog.get_by_role("button", name="Add").click()
    row = groups.get_by_role("row", name="vision")
    expect(row).to_contain_text("1: ann")
    expect(member.get_by_role("cell").nth(2)).to_have_text("vision")
    row.get_by_role("button", name="Edit the group vision").click()
    dialog.get_by_label("Virtual clusters that members manage").fill("default")
    dialog.get_by_role("button", name="Save").click()
    expect(row.get_by_role("cell").nth(3)).to_have_text("default")

    everyone = groups.get_by_role("row", name="default").first
    expect(everyone).to_contain_text("all users")
    everyone.get_by_role("button", name="Edit the group default").click()
    dialog.get_by_label("All virtual clusters").uncheck()
    dialog.get_by_role("button", name="Save").click()
    expect(everyone.get_by_role("cell").nth(2)).to_have_text("")
    everyone.get_by_role("button", name="Edit the group default").click()
    dialog.get_by_label("All virtual clusters").check()
    dialog.get_by_role("button", name="Save").click()
    expect(everyone.get_by_role("cell").nth(2)).to_have_text("all")
    assert faults(page, ".jp-pai-Cluster:not(.lm-mod-hidden)") == []
    shoot(page, "groups")

    row.get_by_role("button", name="Remove the group vision").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
    expect(member.get_by_role("cell").nth(2)).to_have_text("")


def finds_users(people: Locator) -> None:
    """By a part of the mail address, in whatever case."""
    rows = people.get_by_role("table", name="Users").locator("tbody tr")
    search = people.get_by_label("Filter by name or e-mail")
    count = rows.count()
    search.fill("ANN@EX")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("ann")
    search.fill("")
    expect(rows).to_have_count(count)


def sign_in(url: str, password: str) -> tuple[int, bool]:
    """What the API answers to a sign-in, and whether it wants another password."""
    login = {"username": "ann", "password": password}
    answer = httpx.post(f"{url}/api/v2/authn/basic/login", json=login, timeout=60)
    return answer.status_code, bool(answer.json().get("mustChangePassword"))
