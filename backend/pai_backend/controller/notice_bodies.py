"""Messages as each channel wants them. Pure.

Sources: Slack "Incoming webhooks"; Microsoft Teams "Create incoming webhooks with Workflows" (an Adaptive Card); Feishu
"Custom bot usage guide" and DingTalk "Custom robot access" with their signatures, which each make of the secret and
the time in their own way.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote_plus

from pai_backend.model.notification import Channel, News, Notice
from pai_backend.store.notifications import DeliveryTarget

SHOWN = 20
"""Notices that a text has; of the others it says how many there are."""
JSON = "application/json; charset=utf-8"


@dataclass(frozen=True)
class Posted:
    """A request."""

    url: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    secret: str = ""
    """What it is signed with in our own way."""


def subject(notices: Sequence[Notice]) -> str:
    """One line."""
    if len(notices) == 1:
        (notice,) = notices
        return "A test" if notice.news is News.TEST else f"{notice.name}: {notice.news.value}"
    counted = Counter(notice.news.value for notice in notices)
    return ", ".join(f"{number} {news}" for news, number in counted.most_common())


def text(notices: Sequence[Notice]) -> str:
    """A line for each notice, of many for the first."""
    lines = [f"{notice.at:%Y-%m-%d %H:%M} UTC  {notice.text}" for notice in notices[:SHOWN]]
    if len(notices) > SHOWN:
        lines.append(f"And {len(notices) - SHOWN} more.")
    return "\n".join(lines)


def mail(to: str, sender: str, message: str, notices: Sequence[Notice], now: datetime) -> EmailMessage:
    """A mail, with the same ``Message-ID`` in each try."""
    made = EmailMessage()
    made["From"], made["To"] = sender, to
    made["Subject"] = f"[pai] {subject(notices)}"
    made["Date"] = format_datetime(now)
    made["Message-ID"] = f"<{message}@{sender.rpartition('@')[2]}>"
    made["Auto-Submitted"] = "auto-generated"  # RFC 3834 §5: nothing answers it by itself
    made.set_content(f"{text(notices)}\n\n-- \nYou asked for this by `pai notify`, which also ends it.\n")
    return made


def posted(channel: Channel, target: DeliveryTarget, message: str, notices: Sequence[Notice], now: datetime) -> Posted:
    """The request of every channel but mail."""
    words = f"{subject(notices)}\n{text(notices)}" if len(notices) > 1 else notices[0].text
    match channel:
        case Channel.SLACK:
            return Posted(target.to, _json({"text": _escaped(words)}))
        case Channel.TEAMS:
            return Posted(target.to, _json(_card(words)))
        case Channel.FEISHU:
            return Posted(target.to, _json({"msg_type": "text", "content": {"text": words}, **_feishu(target, now)}))
        case Channel.DINGTALK:
            return Posted(_dingtalk(target, now), _json({"msgtype": "text", "text": {"content": words}}))
    body = {"message": message, "notices": [_shown(notice) for notice in notices]}
    return Posted(target.to, _json(body), {"X-Pai-Message": message}, target.secret)


def refusal(channel: Channel, body: bytes) -> str:
    """What an answer of status 200 refuses all the same; empty: it takes the message."""
    key = {Channel.FEISHU: "code", Channel.DINGTALK: "errcode"}.get(channel)
    if key is None:
        return ""
    try:
        found = json.loads(body)[key]
    except (ValueError, KeyError, TypeError):
        return f"it does not answer as {channel.value} does"
    return "" if found == 0 else f"it answers {key} {str(found)[:20]}"


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _shown(notice: Notice) -> dict[str, object]:
    """A notice for programs; ``id`` is the same whenever it comes."""
    return {
        "id": f"{notice.job or 'test'}-{notice.seq}",
        "job": notice.job,
        "name": notice.name,
        "news": notice.news.value,
        "at": notice.at.isoformat(),
        "text": notice.text,
    }


def _escaped(words: str) -> str:
    """Slack reads these three as marks."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _card(words: str) -> dict[str, Any]:
    blocks = [{"type": "TextBlock", "text": line, "wrap": True} for line in words.splitlines()]
    card = {"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4"}
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": {**card, "body": blocks}}]}


def _feishu(target: DeliveryTarget, now: datetime) -> dict[str, str]:
    """The time and the secret are the key, and what is signed is empty."""
    if not target.secret:
        return {}
    stamp = str(int(now.timestamp()))
    signed = hmac.new(f"{stamp}\n{target.secret}".encode(), b"", hashlib.sha256).digest()
    return {"timestamp": stamp, "sign": base64.b64encode(signed).decode()}


def _dingtalk(target: DeliveryTarget, now: datetime) -> str:
    if not target.secret:
        return target.to
    stamp = str(int(now.timestamp() * 1000))
    signed = hmac.new(target.secret.encode(), f"{stamp}\n{target.secret}".encode(), hashlib.sha256).digest()
    query = f"timestamp={stamp}&sign={quote_plus(base64.b64encode(signed))}"
    return f"{target.to}{'&' if '?' in target.to else '?'}{query}"
