"""The proxy's own answers: a small page for people, the common error body for programs. Pure.

A page needs only itself (no external resource, see its Content-Security-Policy). While waiting may help, it
looks once a second whether anything changed and then loads its own address again; the Refresh header does the same
without scripts.
"""

from __future__ import annotations

import base64
import hashlib
import html
from dataclasses import dataclass, field
from http import HTTPStatus

from pai_backend.access.proxy.fields import HeaderFields
from pai_backend.access.proxy.refusal import Refusal, Refused, Texts
from pai_backend.model.errors import ErrorBody
from pai_backend.model.job import Job

RELOAD_S = 5
PAGE_HEADER = "X-Pai-Page"
LINK_HEADER = "X-Pai-Link"

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:12vh auto;max-width:38rem;padding:0 1rem}"
    "body{color:#222;background:#fff}"
    "h1{font-size:1.4rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{color:#666}"
    "dd{margin:0;overflow-wrap:anywhere}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}dt{color:#999}}"
)
# A look that fails means that the backend is away; the next look, or the Refresh header, goes on.
_SCRIPT = (
    "setInterval(()=>fetch(location.href,{method:'HEAD',cache:'no-store',headers:{Accept:'text/html'}}).then(r=>{"
    f"if(r.headers.get('{PAGE_HEADER}')!==document.documentElement.dataset.page)location.reload()"
    "},()=>0),1000)"
)
_LINK_SCRIPT = (
    "const t=location.hash.slice(1);history.replaceState(null,'',location.pathname);"
    f"fetch(location.pathname,{{method:'POST',headers:{{'{LINK_HEADER}':t}},cache:'no-store'}})"
    ".then(r=>r.ok).catch(()=>false)"
    ".then(ok=>{if(ok)location.replace('/');else document.getElementById('over').hidden=false})"
)
_LINK_TEXTS = {
    "en": Texts("Shared with you", "Opening the service. This needs JavaScript."),
    "zh": Texts("共享给您的服务", "正在打开服务。需要启用 JavaScript。"),
}


def _allowing(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{_POLICY}; script-src 'sha256-{digest}'"


_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_NAMES = {
    "en": {"job": "Job", "state": "State", "phase": "Phase", "why": "Why", "exit": "Result"},
    "zh": {"job": "作业", "state": "状态", "phase": "阶段", "why": "原因", "exit": "结果"},
}
_LANGUAGE_TAGS = {"en": "en", "zh": "zh-CN"}


@dataclass(frozen=True)
class Reply:
    """A whole answer of our own."""

    status: int
    headers: HeaderFields = field(default_factory=HeaderFields)
    body: bytes = b""

    @property
    def reason(self) -> str:
        """The status in words."""
        return HTTPStatus(self.status).phrase


def language(accept: str) -> str:
    """``zh`` or ``en``, whichever the browser prefers (RFC 9110 §12.5.4); ``en`` when it names neither."""
    ranked = []
    for place, item in enumerate(accept.split(",")):
        tag, _, weight = item.strip().partition(";q=")
        primary = tag.split("-")[0].lower()
        if primary in _NAMES:
            ranked.append((-_quality(weight), place, primary))
    return min(ranked)[2] if ranked else "en"


def _quality(text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 0.0


def redirect(location: str, *, cookie: str = "") -> Reply:
    """Go there with GET."""
    headers = plain_headers()
    headers.add("Location", location)
    if cookie:
        headers.add("Set-Cookie", cookie)
    return Reply(303, headers)


def reached(proof: str) -> Reply:
    """An answer that pages of any origin may read."""
    headers = plain_headers()
    headers.add("Access-Control-Allow-Origin", "*")
    return Reply(200, headers, proof.encode())


def reply(refused: Refused, headers: HeaderFields, request_id: str, *, may_reload: bool) -> Reply:
    """The answer for a refused request: a page when the client asks for HTML, else JSON."""
    if "text/html" in headers.get("Accept", ""):
        return _page(refused, language(headers.get("Accept-Language", "")), may_reload)
    kind = refused.notice.value
    message = f"{kind.en.title}. {refused.detail or _why(refused.job) or kind.en.text}"
    hint = kind.en.text if kind.en.text not in message else ""
    body = ErrorBody(code=kind.code, message=message, hint=hint, request_id=request_id)
    return Reply(
        kind.status, _refusal_headers(refused, "application/json"), body.model_dump_json(by_alias=True).encode()
    )


def _why(job: Job | None) -> str:
    if job is None:
        return ""
    return f"The job {job.id} is {job.state} ({job.phase}){f': {job.why}' if job.why else ''}."


def _page(refused: Refused, lang: str, may_reload: bool) -> Reply:
    kind = refused.notice.value
    texts = kind.zh if lang == "zh" else kind.en
    facts = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in _facts(refused, lang)
    )
    reloads = kind.reloads and may_reload
    stamp = hashlib.sha256(f"{refused.notice.name}{facts}".encode()).hexdigest()[:16]
    body = _html(texts, lang, f"<dl>{facts}</dl>", _SCRIPT if reloads else "", stamp)
    headers = _refusal_headers(refused, "text/html; charset=utf-8")
    headers.add("Content-Security-Policy", _allowing(_SCRIPT))
    headers.add("Content-Language", _LANGUAGE_TAGS[lang])
    headers.add(PAGE_HEADER, stamp)
    if reloads:
        headers.add("Refresh", str(RELOAD_S))
    return Reply(kind.status, headers, body)


def link_page(headers: HeaderFields) -> Reply:
    """Where a link leads: the page takes the token out of its address and asks for a session with it."""
    lang = language(headers.get("Accept-Language", ""))
    over = (Refusal.LINK_OVER.value.zh if lang == "zh" else Refusal.LINK_OVER.value.en).text
    answer = plain_headers("text/html; charset=utf-8")
    answer.add("Content-Security-Policy", _allowing(_LINK_SCRIPT))
    answer.add("Content-Language", _LANGUAGE_TAGS[lang])
    answer.add("Vary", "Accept-Language")
    more = f'<p id="over" role="alert" hidden>{html.escape(over)}</p>'
    return Reply(200, answer, _html(_LINK_TEXTS[lang], lang, more, _LINK_SCRIPT))


def _html(texts: Texts, lang: str, more: str, script: str, stamp: str = "") -> bytes:
    return (
        f'<!doctype html><html lang="{_LANGUAGE_TAGS[lang]}" data-page="{stamp}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{html.escape(texts.title)}</title>'
        f"<style>{_STYLE}</style></head><body><main><h1>{html.escape(texts.title)}</h1>"
        f'<p role="status">{html.escape(texts.text)}</p>{more}</main>'
        f"{f'<script>{script}</script>' if script else ''}</body></html>"
    ).encode()


def _facts(refused: Refused, lang: str) -> list[tuple[str, str]]:
    names = _NAMES[lang]
    facts = []
    if (job := refused.job) is not None:
        facts += [(names["job"], job.id), (names["state"], job.state), (names["phase"], job.phase)]
        if job.why:
            facts.append((names["why"], job.why))
        if job.exit is not None:
            facts.append((names["exit"], job.exit.message))
    if refused.detail:
        facts.append((names["why"], refused.detail))
    return facts


def _refusal_headers(refused: Refused, content_type: str) -> HeaderFields:
    headers = plain_headers(content_type)
    headers.add("Vary", "Accept, Accept-Language, Cookie, Authorization")
    if refused.notice.value.status == HTTPStatus.UNAUTHORIZED:
        headers.add("WWW-Authenticate", 'Bearer realm="jupyter-pai"')
    if refused.notice.value.reloads:
        headers.add("Retry-After", str(RELOAD_S))
    return headers


def plain_headers(content_type: str = "text/plain; charset=utf-8") -> HeaderFields:
    """What all answers of ours say."""
    return HeaderFields(
        {
            "Content-Type": content_type,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
    )
