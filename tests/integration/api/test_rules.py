"""The API judges by the cluster configuration in force, also where another process decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.api.context import CellRules
from pai_backend.api.rules import FRESH_S, LiveRules
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0
from tests.support.api_site import ALICE, ROOT, running_api
from tests.support.lab_config import ONE_VC, TWO_VCS, two_vcs
from tests.support.stores import opened


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def put_in_force(store: Store, text: str) -> None:
    lease = await store.leadership.acquire("controller", 60, T0, force=True)
    assert lease is not None
    made = await store.configs.record(text, "root", T0, (await store.configs.state()).number)
    await store.configs.took_force(made.version, "{}", T0, lease.epoch)


def names(rules: LiveRules) -> list[str] | None:
    return None if rules.now.config is None else list(rules.now.config.virtual_clusters)


@pytest.mark.asyncio
async def test_the_settings_count_until_a_version_is_in_force_and_a_look_lasts_a_second(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/pai.sqlite") as store:
        clock = Clock()
        rules = LiveRules(store, CellRules(two_vcs(), {"bob": ("vc1",)}), clock)
        await rules.refresh()
        assert names(rules) == ["default", "vc1"]
        await put_in_force(store, ONE_VC)
        clock.now += FRESH_S / 2
        await rules.refresh()
        assert names(rules) == ["default", "vc1"]
        clock.now += FRESH_S
        await rules.refresh()
        assert (names(rules), rules.version) == (["default"], 1)
        assert rules.now.grants == {"bob": ("vc1",)}
        await put_in_force(store, TWO_VCS)
        await rules.refresh(at_once=True)
        assert names(rules) == ["default", "vc1"]


@pytest.mark.asyncio
async def test_an_empty_text_is_derived_and_one_that_cannot_be_read_keeps_the_last_rules(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(f"sqlite:///{tmp_path}/pai.sqlite") as store:
        rules = LiveRules(store, CellRules(two_vcs()))
        await put_in_force(store, "physicalCluster: 7")
        await rules.refresh(at_once=True)
        assert names(rules) == ["default", "vc1"]
        assert "version 1, cannot be read" in caplog.text
        await put_in_force(store, "")
        await rules.refresh(at_once=True)
        assert names(rules) is None


@pytest.mark.asyncio
async def test_documents_are_judged_by_what_another_process_has_put_in_force(tmp_path: Path) -> None:
    async with running_api(tmp_path) as api, api.client(ALICE) as client, api.client(ROOT) as admin:
        assert "vc1" not in (await client.get("/api/v2/virtual-clusters")).json()
        await put_in_force(api.store, TWO_VCS)
        assert (await admin.get("/api/v2/cluster/config")).json()["version"] == 1
        await api.ctx.live_rules.refresh(at_once=True)
        assert list((await client.get("/api/v2/virtual-clusters")).json()) == ["default", "vc1"]
        assert [cell["cellAddress"] for cell in (await client.get("/api/v2/cluster/cells")).json()["physicalCluster"]]


@pytest.mark.asyncio
async def test_a_change_without_a_controller_is_recorded_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_backend.api.services.configuring.PATIENCE_S", 0.05)
    async with running_api(tmp_path) as api, api.client(ROOT) as admin:
        config = "/api/v2/cluster/config"
        answer = await admin.post(config, params={"expectedVersion": 0}, content=TWO_VCS)
        assert (answer.status_code, answer.json()["appliedVersion"], answer.json()["inForce"]) == (200, 1, False)
        shown = (await admin.get(config)).json()
        assert (shown["version"], shown["newestVersion"]) == (0, 1)
        (recorded,) = (await admin.get(f"{config}/history")).json()["data"]
        assert (recorded["state"], recorded["by"], recorded["since"]) == ("recorded", "root", None)
        for given, status in (("seven", 400), ('"0"', 409), ("*", 400), ("1", 200)):
            answer = await admin.post(config, headers={"If-Match": given}, content=ONE_VC)
            assert answer.status_code == status, given
        states = [each["state"] for each in (await admin.get(f"{config}/history")).json()["data"]]
        assert states == ["recorded", "skipped"]
