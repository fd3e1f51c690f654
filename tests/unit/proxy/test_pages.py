"""The proxy's own pages and error bodies."""

from __future__ import annotations

import json

import pytest

from pai_backend.access.proxy.fields import HeaderFields
from pai_backend.access.proxy.pages import language, reply
from pai_backend.access.proxy.refusal import Refusal, Refused
from pai_backend.testing.builders import make_job

BROWSER = {"Accept": "text/html,*/*"}


def page(
    refused: Refused, may_reload: bool = True, headers: dict[str, str] | None = None
) -> tuple[int, HeaderFields, str]:
    answer = reply(refused, HeaderFields(BROWSER | (headers or {})), "id", may_reload=may_reload)
    return answer.status, answer.headers, answer.body.decode()


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "en"),
        ("fr", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-US,en;q=0.9,zh;q=0.8", "en"),
        ("en;q=0.3, zh-TW;q=0.7", "zh"),
        ("zh;q=oops, en;q=0.1", "en"),
    ],
)
def test_the_browsers_language_is_used(accept: str, chosen: str) -> None:
    assert language(accept) == chosen


def test_the_waiting_page_says_what_the_job_does_and_why() -> None:
    job = make_job("lab").model_copy(update={"why": "needs 2 TITANX, <b>1</b> is free"})
    status, headers, text = page(Refused(Refusal.WAITING, job=job))
    assert (status, headers["Refresh"], headers["Retry-After"]) == (503, "5", "5")
    for fact in ("alice~lab", "WAITING", "queued", "needs 2 TITANX, &lt;b&gt;1&lt;/b&gt; is free"):
        assert fact in text
    assert "<b>" not in text
    assert "http" not in text.replace("http-equiv", ""), "a page needs nothing from elsewhere"


def test_the_page_changes_its_stamp_when_the_job_changes() -> None:
    job = make_job("lab")
    stamps = {page(Refused(Refusal.WAITING, job=job.model_copy(update={"why": why})))[1]["X-Pai-Page"] for why in "aab"}
    assert len(stamps) == 2


def test_a_page_is_chinese_for_chinese_browsers() -> None:
    _, headers, text = page(Refused(Refusal.WAITING, job=make_job("lab")), headers={"Accept-Language": "zh-CN"})
    assert headers["Content-Language"] == "zh-CN"
    assert "尚未运行" in text


def test_a_page_of_something_final_does_not_load_itself_again() -> None:
    for notice in Refusal:
        _, headers, text = page(Refused(notice))
        assert ("Refresh" in headers) == ("<script>" in text) == notice.value.reloads
    _, headers, text = page(Refused(Refusal.WAITING), may_reload=False)
    assert "Refresh" not in headers
    assert "<script>" not in text


def test_programs_get_the_common_error_body() -> None:
    for notice in Refusal:
        answer = reply(Refused(notice, job=make_job("lab")), HeaderFields({"Accept": "*/*"}), "id-1", may_reload=True)
        body = json.loads(answer.body)
        assert answer.status == notice.value.status
        assert body["code"] == notice.value.code
        assert body["message"].startswith(notice.value.en.title)
        assert body["requestId"] == "id-1"
        assert "Refresh" not in answer.headers


def test_every_notice_speaks_both_languages() -> None:
    for notice in Refusal:
        kind = notice.value
        assert len({kind.en.title, kind.zh.title, kind.en.text, kind.zh.text}) == 4
        assert kind.zh.title.isascii() is False
