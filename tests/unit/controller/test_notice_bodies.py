"""Messages as the channels want them, and which addresses of users the backend connects to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from ipaddress import ip_network
from urllib.parse import parse_qs, urlsplit

import pytest

from pai_backend.controller.notice_bodies import mail, posted, refusal, subject, text
from pai_backend.controller.posting import is_allowed
from pai_backend.model.notification import Channel, News, Notice
from pai_backend.store.notifications import DeliveryTarget

NOW = datetime(2026, 11, 28, 9, tzinfo=UTC)
URL, SECRET = "https://hooks.example.org/x?token=1", "what-both-know"


def notice(seq: int = 1, news: News = News.FAILED, words: str = "train has failed: <exit> & 1.") -> Notice:
    return Notice("w", "j1", seq, NOW, news, "train", words)


def body(channel: Channel, *notices: Notice, secret: str = SECRET) -> dict[str, object]:
    made = posted(channel, DeliveryTarget(to=URL, secret=secret), "m1", notices or (notice(),), NOW)
    found: dict[str, object] = json.loads(made.body)
    return found


def test_a_mail_is_one_mail_in_each_try() -> None:
    first, again = (mail("ann@example.org", "pai@example.org", "m1", [notice()], NOW) for _ in range(2))
    assert first["Message-ID"] == again["Message-ID"] == "<m1@example.org>"
    assert first["Subject"] == "[pai] train: failed"
    assert first["Auto-Submitted"] == "auto-generated"
    assert first.get_content().startswith("2026-11-28 09:00 UTC  train has failed: <exit> & 1.\n")


def test_many_are_counted_and_the_first_are_told() -> None:
    many = [notice(seq, News.SUCCEEDED if seq % 3 else News.FAILED, f"number {seq}") for seq in range(30)]
    assert subject(many) == "20 succeeded, 10 failed"
    assert text(many).splitlines()[-1] == "And 10 more."
    shown = body(Channel.WEBHOOK, *many)["notices"]
    assert isinstance(shown, list)
    assert [each["id"] for each in shown] == [f"j1-{seq}" for seq in range(30)], "a program gets all"


def test_slack_reads_no_marks_and_a_card_is_adaptive() -> None:
    assert body(Channel.SLACK) == {"text": "train has failed: &lt;exit&gt; &amp; 1."}
    card = body(Channel.TEAMS)["attachments"]
    assert isinstance(card, list)
    assert card[0]["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert [block["text"] for block in card[0]["content"]["body"]] == ["train has failed: <exit> & 1."]


def test_feishu_is_signed_with_time_and_secret_as_the_key() -> None:
    found = body(Channel.FEISHU)
    stamp = str(int(NOW.timestamp()))
    signed = hmac.new(f"{stamp}\n{SECRET}".encode(), digestmod=hashlib.sha256).digest()
    assert (found["timestamp"], found["sign"]) == (stamp, base64.b64encode(signed).decode())
    assert found["content"] == {"text": "train has failed: <exit> & 1."}
    assert "sign" not in body(Channel.FEISHU, secret="")


def test_dingtalk_is_signed_in_its_address() -> None:
    made = posted(Channel.DINGTALK, DeliveryTarget(to=URL, secret=SECRET), "m1", [notice()], NOW)
    asked = parse_qs(urlsplit(made.url).query)
    stamp = str(int(NOW.timestamp()) * 1000)
    signed = hmac.new(SECRET.encode(), f"{stamp}\n{SECRET}".encode(), hashlib.sha256).digest()
    assert asked == {"token": ["1"], "timestamp": [stamp], "sign": [base64.b64encode(signed).decode()]}
    assert posted(Channel.DINGTALK, DeliveryTarget(to=URL), "m1", [notice()], NOW).url == URL


def test_a_status_of_200_can_be_a_refusal() -> None:
    assert refusal(Channel.FEISHU, b'{"code": 0, "msg": "success"}') == ""
    assert refusal(Channel.FEISHU, b'{"code": 19021}') == "it answers code 19021"
    assert refusal(Channel.DINGTALK, b'{"errcode": 310000}') == "it answers errcode 310000"
    assert refusal(Channel.DINGTALK, b"<html>") == "it does not answer as dingtalk does"
    assert refusal(Channel.SLACK, b"ok") == ""


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
        "::1", "::", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "255.255.255.255",
    ],
)  # fmt: skip
def test_a_users_address_never_leads_into_the_backends_network(address: str) -> None:
    assert not is_allowed(address, ())


def test_public_addresses_and_networks_of_the_administrator_are_allowed() -> None:
    for address in ("8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"):
        assert is_allowed(address, ())
    given = [ip_network("10.1.0.0/16"), ip_network("fd00::/8")]
    assert is_allowed("10.1.2.3", given)
    assert is_allowed("::ffff:10.1.2.3", given)
    assert is_allowed("fd00::1", given)
    assert not is_allowed("10.2.0.1", given)
