"""The panel in Chinese, with the language chosen as users choose it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.support.lab_site import running_lab
from tests.ui.conftest import TIMEOUT_MS, open_panel
from tests.ui.test_panel import JUPYTER

LANGUAGE = "@jupyterlab/translation-extension/plugin.jupyterlab-settings"


def test_every_word_of_the_panel_is_chinese(
    tmp_path: Path, browser: Browser, shoot: Callable[[Page, str], None]
) -> None:
    setting = tmp_path / "user-settings" / LANGUAGE
    setting.parent.mkdir(parents=True)
    setting.write_text(json.dumps({"locale": "zh_CN"}))
    with running_lab(tmp_path) as lab:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        open_panel(page, lab, "PAI 作业")
        region = page.get_by_role("region", name="PAI 作业")
        expect(region).to_contain_text("还没有作业。")
        with page.expect_file_chooser() as chooser:
            region.get_by_role("button", name="导入作业文件…").click()
        chooser.value.set_files(JUPYTER)
        shown = page.locator(".jp-pai-Document:visible")
        expect(shown.locator('p[role="status"]')).to_contain_text("可以提交：jupyter_16be8b71（SCM）")
        expect(shown.get_by_role("tab", name="任务角色")).to_be_visible()
        shown.get_by_role("button", name="提交").click()
        job = page.locator(".jp-pai-JobPage:visible")
        expect(job.locator(".jp-pai-Detail-header")).to_contain_text("运行中")
        expect(job.get_by_role("button", name="打开 jupyter")).to_be_enabled()
        expect(job.get_by_role("table", name="任务")).to_contain_text("节点")
        job.get_by_role("tab", name="日志").click()
        expect(job.get_by_role("log")).to_contain_text("Serving notebooks")
        shoot(page, "panel-zh-CN")
        region.get_by_role("button", name="显示谁在使用集群，谁在等待").click()
        cluster = page.locator(".jp-pai-Cluster:visible")
        expect(cluster.get_by_role("table", name="default 的单元")).to_contain_text("机会型")
        expect(cluster.get_by_role("list", name="default 中运行的作业")).to_contain_text("1 个任务")
        expect(cluster.get_by_role("table", name="节点")).to_contain_text("就绪")
        shoot(page, "cluster-zh-CN")
        page.evaluate("window.jupyterapp.commands.execute('pai:show-usage')")
        usage = page.locator(".jp-pai-Usage:visible")
        expect(usage.locator('p[role="status"]')).to_contain_text("（UTC），合计 ")
        expect(usage.get_by_label("时间", exact=True)).to_contain_text("本月")
        expect(usage.get_by_role("slider", name="每天的 GPU 小时")).to_be_visible()
        shoot(page, "usage-zh-CN")
        context.close()
