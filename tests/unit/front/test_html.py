"""Cells: nothing from outside becomes markup."""

from __future__ import annotations

from jupyter_pai.widgets import html
from tests.support.fake_backend import job_body

EVIL = "<script>alert(1)</script>"


def test_whatever_a_job_says_is_escaped() -> None:
    warning = {"code": "x", "message": EVIL, "path": "", "hint": EVIL}
    exit_ = {"status": 1, "message": EVIL, "role": "r", "index": 0}
    job = job_body(EVIL, "j1", why=EVIL, warnings=[warning], exit=exit_, sshCommand=EVIL, state=EVIL)
    job["services"][0]["label"] = EVIL
    job["services"][0]["url"] = f"http://x/{EVIL}"
    job["taskRoles"][0]["taskStatuses"][0].update(role=EVIL, node=EVIL, ports={EVIL: [1]}, phase=EVIL)
    text = html.job_html(job)  # type: ignore[arg-type]
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 10


def test_only_web_addresses_are_links() -> None:
    assert "<a " not in html.link("javascript:alert(1)")
    assert 'rel="noopener noreferrer"' in html.link("http://a.localhost:1/")
    assert '"' not in html.link('http://a/"onx="').split("href=")[1].split('"')[1].replace("&quot;", "")


def test_a_log_is_its_last_lines_without_terminal_codes() -> None:
    text = "\n".join(f"line {number}" for number in range(1000)) + "\n\x1b[31mred\x1b[0m \x1b]0;title\x07<b>\n"
    tail = html.log_tail(text)
    assert len(tail.split("\n")) == html.LOG_LINES + 1
    assert tail.endswith("line 999\nred <b>\n")
    assert "&lt;b&gt;" in html.log_html(text)
    assert html.log_html(" \n") == ""
