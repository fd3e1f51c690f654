"""Who is who: names, tokens, passwords, and files that hold them."""

from __future__ import annotations

import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.attack.site import (
    ADMIN,
    LIMIT_S,
    OTHER,
    OWNER,
    PASSWORD,
    PROXY,
    PYTHON,
    VICTIM,
    Site,
    document,
    new_key,
    ok,
    token_of,
)
from tests.support.backend_process import until

UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


def ended(sock: socket.socket) -> bool:
    """Read until the other side closes; raises TimeoutError when it does not."""
    while sock.recv(65_536):
        pass
    return True


@pytest.mark.attack(13, "a job that is named as another's uid answers in its place")
@pytest.mark.parametrize("operation", ["", "/config", "/events", "/ssh", "/why"])
def test_a_uid_means_its_job_and_nothing_else(site: Site, operation: str) -> None:
    with site.http(OWNER) as owner, site.http(OTHER) as other, site.http(ADMIN) as admin:
        name = f"mine{operation.strip('/')}"
        uid = ok(owner.post("/api/v2/jobs", content=document(name, "sleep 1000"))).json()["uid"]
        taken = other.post("/api/v2/jobs", content=document(uid, "sleep 1000"))
        assert taken.status_code == 400, taken.text
        for client in (owner, admin):
            assert ok(client.get(f"/api/v2/jobs/{uid}")).json()["username"] == OWNER
            assert client.get(f"/api/v2/jobs/{uid}{operation}").status_code == 200
        ok(admin.put(f"/api/v2/jobs/{uid}/executionType", json={"value": "STOP"}))
        until(lambda: owner.get(f"/api/v2/jobs/{name}").json()["state"] == "STOPPED", LIMIT_S)


@pytest.mark.attack(15, "a session's token does not open a service, or is shown to the task")
@pytest.mark.parametrize("way", ["header", "query"])
def test_a_token_opens_a_service_and_stays_outside(site: Site, echo: str, way: str) -> None:
    with site.http(OWNER) as client, site.http(None) as stranger:
        made = ok(client.post("/api/v2/tokens/application")).json()["token"]
        headers = {"Authorization": f"Bearer {made}"}
        path = f"/s/{echo}/page?a=1" + (f"&token={made}" if way == "query" else "")
        answer = stranger.get(path, headers=headers, follow_redirects=True)
        assert answer.status_code == 200, answer.text
        assert made not in answer.text
        assert "page?a=1" in answer.text
        came_from = {"Referer": f"{site.backend.url}/s/{echo}/?a=1&token={made}"}
        loaded = stranger.get(f"/s/{echo}/app.js", headers=headers | came_from)
        assert (loaded.status_code, made in loaded.text) == (200, False), "the page's address holds it"


@pytest.mark.attack(16, "guesses of a password are not slowed, or tell which names there are")
def test_guesses_end_in_a_lock_and_tell_no_names(site: Site) -> None:
    def guess(name: str) -> tuple[int, str]:
        with site.http(None) as stranger:
            answer = stranger.post("/api/v2/authn/basic/login", json={"username": name, "password": "wrong"})
        return answer.status_code, answer.json()["code"]

    for name in (VICTIM, "nobody"):
        said = {guess(name) for _ in range(15)}  # each refusal that counts makes the next pause longer
        assert said == {(400, "IncorrectPasswordError"), (429, "TooManyRequestsError")}


@pytest.mark.attack(16, "guesses lock out all who come by the same proxy, or a stranger is whoever they say")
def test_a_lock_is_for_whom_a_proxy_of_ours_names(site: Site) -> None:
    def sign_in(peer: str, forwarded_for: str, password: str) -> int:
        with httpx.Client(
            base_url=site.backend.url, transport=httpx.HTTPTransport(local_address=peer), timeout=LIMIT_S
        ) as client:
            body = {"username": VICTIM, "password": password}
            headers = {"X-Forwarded-For": forwarded_for}
            return client.post("/api/v2/authn/basic/login", json=body, headers=headers).status_code

    assert 429 in {sign_in(PROXY, "203.0.113.5", "wrong") for _ in range(10)}
    assert sign_in(PROXY, "203.0.113.6", PASSWORD) == 200
    assert 429 in {sign_in("127.0.0.8", f"203.0.113.{number}", "wrong") for number in range(10, 20)}


@pytest.mark.attack(17, "a configuration with tokens that everybody may read is taken")
def test_a_file_with_tokens_is_for_its_owner_alone(tmp_path: Path) -> None:
    config = tmp_path / "backend.yaml"
    config.write_text(
        f"api:\n  tokens:\n    - {{user: {OWNER}, token: {token_of(OWNER)}}}\nengine: {{trust_all_users: true}}\n"
    )
    config.chmod(0o644)
    line = [
        PYTHON,
        "-P",
        "-m",
        "pai_backend",
        "rotate-key",
        "--config",
        str(config),
        "--data-dir",
        str(tmp_path / "data"),
    ]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S)
    assert ended.returncode == 2
    assert "chmod 600" in ended.stderr
    assert token_of(OWNER) not in ended.stderr


@pytest.mark.attack(14, "what an application token made outlives it: an SSH key, a stream, a service's cookie")
def test_what_a_token_made_ends_with_it(site: Site, sleeper: str, echo: str, tmp_path: Path) -> None:
    public = new_key(tmp_path / "key")
    host, port = site.gateway()
    line = ["ssh", *site.ssh_options(tmp_path / "key"), "-p", str(port), f"{sleeper}@{host}", "echo in"]

    def printed() -> str:
        return subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL).stdout

    with site.http(OWNER) as client, site.http(None) as browser:
        token = ok(client.post("/api/v2/tokens/application")).json()["token"]
        bearer = {"Authorization": f"Bearer {token}"}
        ok(browser.post("/api/v2/keys", json={"publicKey": public}, headers=bearer))
        ticket = ok(browser.post("/api/v2/jobs/echo/services/web/ticket?role=worker&index=0", headers=bearer)).json()
        browser.get(ticket["pathUrl"])
        assert browser.get(f"/s/{echo}/").status_code == 200
        assert printed() == "in\n"
        ok(client.delete(f"/api/v2/tokens/{token}"))
        until(lambda: browser.get(f"/s/{echo}/").status_code == 401, LIMIT_S)
        until(lambda: printed() == "", LIMIT_S)


@pytest.mark.attack(14, "a user who is locked out goes on by the API: requests, a stream, an upload, sign-in")
def test_a_lock_out_holds_for_every_way(site: Site, echo: str) -> None:
    """The victim has a session; what it has open when the lock-out comes ends, and nothing new begins."""
    login = {"username": VICTIM, "password": PASSWORD}
    with site.http(ADMIN) as admin, site.http(None) as browser, ExitStack() as stack:
        until(lambda: browser.post("/api/v2/authn/basic/login", json=login).status_code == 200, LIMIT_S)
        token = ok(browser.post("/api/v2/authn/basic/login", json=login)).json()["token"]
        bearer = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n"
        stream, upload = (stack.enter_context(socket.create_connection(site.address, LIMIT_S)) for _ in "ab")
        stream.sendall(f"GET /api/v2/events/stream HTTP/1.1\r\n{bearer}{UPGRADE}\r\n".encode())
        assert b" 101 " in stream.recv(4096)
        upload.sendall(f"PUT /api/v2/fs/{VICTIM}/half?size=3 HTTP/1.1\r\n{bearer}Content-Length: 3\r\n\r\na".encode())
        ok(admin.put(f"/api/v2/lockouts/{VICTIM}"))
        try:
            for path in ("jobs", "tokens/check", f"fs/{VICTIM}/half", "users/me", "cluster/nodes"):
                said = browser.get(f"/api/v2/{path}", headers={"Authorization": f"Bearer {token}"})
                assert (said.status_code, said.json()["code"]) == (403, "LockedOutUserError")
            said = browser.post("/api/v2/authn/basic/login", json=login)
            assert (said.status_code, said.json()["code"]) == (403, "LockedOutUserError")
            said = browser.get(f"/s/{echo}/", headers={"Authorization": f"Bearer {token}"})
            assert (said.status_code, said.json()["code"]) == (403, "LockedOutUserError")
            assert ended(stream)
            upload.sendall(b"bc")
            assert upload.recv(4096).startswith(b"HTTP/1.1 403")
        finally:
            ok(admin.delete(f"/api/v2/lockouts/{VICTIM}"))
        assert browser.get("/api/v2/jobs", headers={"Authorization": f"Bearer {token}"}).status_code == 200
