"""``pai keys``, ``pai share`` and the certificate that is fetched silently, against a running API."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jupyter_pai import broker, certificates, cli
from jupyter_pai.certificates import WantedCertificate, certificate_file, ensure, ensure_certificate, renewed
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import Client
from pai_backend.access.keys import make_ed25519, parse_public_key
from pai_backend.store.auditing import AuditFilter
from tests.integration.api.test_openpai_jobs import submitted
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite
from tests.support.backend_process import until


class Pai:
    """The command line as one of the users."""

    def __init__(self, api: ApiSite, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = patch, capsys
        patch.setenv("PAI_URL", api.url)

    async def __call__(self, *args: object, token: str = ALICE) -> tuple[int, str, str]:
        self._patch.setenv("PAI_TOKEN", token)
        code = await asyncio.to_thread(cli.main, [str(arg) for arg in args])
        said = self._capsys.readouterr()
        assert token not in said.out + said.err
        return code, said.out, said.err

    async def json(self, *args: object, token: str = ALICE) -> Any:
        code, out, err = await self(*args, "--json", token=token)
        assert (code, err) == (0, ""), out
        return json.loads(out)


@pytest.fixture
def pai(api: ApiSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pai:
    return Pai(api, monkeypatch, capsys)


def pair(directory: Path, name: str) -> tuple[Path, str]:
    """The .pub file of a new key and its fingerprint."""
    pem, public = make_ed25519(name)
    (directory / name).write_text(pem)
    (directory / name).chmod(0o600)
    file = directory / f"{name}.pub"
    file.write_text(public)
    return file, parse_public_key(public).fingerprint


def read_by_openssh(certificate: str) -> bytes:
    command = ["ssh-keygen", "-L", "-f", certificate]
    return subprocess.run(command, check=True, timeout=60, capture_output=True).stdout


@pytest.mark.asyncio
async def test_keys_are_registered_rotated_removed_and_audited(pai: Pai, tmp_path: Path) -> None:
    (old, was), (new, becomes), (last, stays) = (pair(tmp_path, name) for name in ("old", "new", "last"))
    assert (await pai.json("keys", "add", old, "--name", "laptop", "--for", "30d"))["fingerprint"] == was
    rotated = await pai.json("keys", "rotate", "laptop", "--to", new)
    assert rotated["replaces"] == was
    assert [key["fingerprint"] for key in await pai.json("keys", "list")] == [was, becomes]
    await pai.json("keys", "rotate", becomes, "--to", last, "--now")
    await pai.json("keys", "remove", "laptop")
    code, out, _ = await pai("keys", "list")
    assert (code, out.split()[0], "not used yet" in out) == (0, stays, True)
    code, out, _ = await pai("audit", "list", "--type", "key.*")
    assert code == 0
    assert [line.split()[1:3] for line in reversed(out.splitlines())] == [
        ["key.registered", was],
        ["key.registered", becomes],
        ["key.registered", stays],
        ["key.removed", becomes],
        ["key.removed", was],
    ]
    code, out, err = await pai("keys", "add", old.with_suffix(""))
    assert (code, out) == (2, "")
    assert "is a private key; nothing was sent" in err
    assert "NoKeyError" not in (await pai("keys", "remove", "laptop"))[1]


@pytest.mark.asyncio
async def test_a_jobs_key_is_written_for_its_owner_alone(pai: Pai, api: ApiSite, tmp_path: Path) -> None:
    async with api.client() as client:
        await submitted(api, client)
    file = tmp_path / "job.ppk"
    assert (await pai("keys", "job", "hello", "--format", "ppk", "-o", file))[0] == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith("PuTTY-User-Key-File-3: ssh-ed25519\n")
    code, _, err = await pai("keys", "job", "hello", "-o", file)
    assert code == 2
    assert "existing files are not overwritten" in err


@pytest.mark.asyncio
async def test_shares_and_certificates(pai: Pai, api: ApiSite, tmp_path: Path) -> None:
    async with api.client() as client:
        await submitted(api, client)
    public, _ = pair(tmp_path, "id")
    made = await pai.json("share", "hello", "--with", "bob", "--for", "2h", "--only", "sftp", "--only", "port:http")
    assert (made["user"], made["only"]) == ("bob", ["sftp", "port:http"])
    assert await pai.json("share", "hello", "--list") == await pai.json("share", token=BOB) == [made]
    issued = await pai.json("keys", "certify", public, "--job", "alice~hello", "--for", "1d", token=BOB)
    assert b"force-command internal-sftp" in await asyncio.to_thread(read_by_openssh, issued["path"])
    assert [each["serial"] for each in await pai.json("keys", "certificates", token=BOB)] == [issued["serial"]]
    await pai.json("keys", "revoke", issued["serial"], token=BOB)
    assert await pai.json("keys", "certificates", token=BOB) == []
    await pai.json("unshare", "hello", "--with", "bob")
    assert await pai.json("share", token=BOB) == []
    assert (await pai("share", "--with", "bob"))[0] == 2
    with pytest.raises(SystemExit):
        await pai("share", "hello", "--with", "bob", "--for", "soon")


@pytest.mark.asyncio
async def test_an_administrator_locks_out_and_changes_the_authority(pai: Pai) -> None:
    assert (await pai("user", "disable", "bob", "--yes"))[0] == 2
    assert await pai.json("user", "disable", "bob", "--yes", token=ROOT) == {"disabled": "bob", "stopped": []}
    assert await pai.json("user", "enable", "bob", token=ROOT) == {"enabled": "bob"}
    (before,) = (await pai.json("keys", "authority"))["keys"]
    (after,) = (await pai.json("keys", "authority", "--rotate", token=ROOT))["keys"]
    assert before.split()[1] != after.split()[1], "nobody has a certificate of the old one"
    events = await pai.json("audit", "list", token=ROOT)
    assert [event["type"] for event in reversed(events)] == ["user.locked-out", "user.let-in", "ca.made", "ca.rotated"]


@pytest.mark.asyncio
async def test_a_certificate_is_fetched_when_there_is_none_that_will_do(api: ApiSite, tmp_path: Path) -> None:
    async with api.client() as client:
        job = await submitted(api, client)
    public, _ = pair(tmp_path, "id")
    identity = public.with_suffix("")

    def fetched() -> list[bytes]:
        texts = []
        with Client(Endpoint(api.url, ALICE)) as client:
            for alias in (None, job.alias):
                assert ensure_certificate(client, identity, alias) == certificate_file(identity)
                texts.append(certificate_file(identity).read_bytes())
            long = WantedCertificate(identity, certificate_file(identity), spare=timedelta(hours=2))
            texts.append(ensure(client, long).read_bytes())
            (mine, *_) = client.thread.run(broker.certificates(client.api))[::-1]
            client.thread.run(broker.revoke(client.api, mine["serial"]))
            texts.append(ensure_certificate(client, identity).read_bytes())
            pair(tmp_path, "id")
            texts.append(ensure_certificate(client, identity).read_bytes())
            return texts

    first, second, third, fourth, fifth = await asyncio.to_thread(fetched)
    assert first == second, "it will do"
    assert third != first, "it ends too soon"
    assert fourth != third, "it was revoked"
    assert fifth != fourth, "it is of another key"
    ours = {name for name in os.listdir(tmp_path) if "id" in name and "sqlite" not in name}
    assert ours == {"id", "id-cert.pub", "id.pub"}, "no draft is left"
    noted = {event.type for event in await api.store.audit.page(AuditFilter("alice"))}
    assert noted == {"job.submitted", "ca.made", "certificate.issued", "certificate.revoked"}
    assert (await api.store.grants.certificates("alice", datetime.now(UTC)))[0].principals == (job.alias,)


@pytest.mark.asyncio
async def test_a_certificate_in_use_is_renewed_before_its_end(
    api: ApiSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with api.client() as client:
        job = await submitted(api, client)
    public, _ = pair(tmp_path, "id")
    identity, path = public.with_suffix(""), tmp_path / "kept" / f"{job.alias}-cert.pub"
    monkeypatch.setattr(certificates, "LOOK_S", 0.05)

    def used() -> list[bytes]:
        with Client(Endpoint(api.url, ALICE)) as client:
            first = ensure(client, WantedCertificate(identity, path, job.uid, job.alias)).read_bytes()
            with renewed(client, WantedCertificate(identity, path, job.uid, job.alias)):
                pass
            unchanged = path.read_bytes()
            with renewed(client, WantedCertificate(identity, path, job.uid, job.alias, spare=timedelta(hours=2))):
                until(lambda: path.read_bytes() != first, 60)
            return [first, unchanged, path.read_bytes()]

    first, unchanged, last = await asyncio.to_thread(used)
    assert first == unchanged, "it lasts long enough"
    assert last != first
    assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
