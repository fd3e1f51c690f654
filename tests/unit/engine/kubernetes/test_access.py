"""Finding the cluster: what is wrong is said with place, reason and remedy, and never with a token."""

from __future__ import annotations

import base64
import json
import logging
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pai_backend.engine.kubernetes import access as access_module
from pai_backend.engine.kubernetes import credential_program
from pai_backend.engine.kubernetes.access import Access, Credentials, find_cluster
from pai_backend.engine.kubernetes.client import ApiClient, connect
from pai_backend.engine.kubernetes.failures import AccessError
from tests.support.command_lines import command_lines_with
from tests.support.kubeconfigs import kubeconfig

TOKEN = "s3cr3t-token-of-alice"
SERVER = "https://127.0.0.1:6443"


def write(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def plugin(folder: Path, body: str) -> dict[str, Any]:
    """A credential program of Python as the user of a kubeconfig; it counts its runs in ``runs``."""
    script = folder / "plugin.py"
    script.write_text(f"open({str(folder / 'runs')!r}, 'a').write('x')\n{body}")
    api = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": api, "command": sys.executable, "args": [str(script)], "interactiveMode": "Never"}}


def gives(token: str, expires: str | None = None) -> str:
    status = {"token": token, **({"expirationTimestamp": expires} if expires else {})}
    said = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(json.dumps(said))})"


async def bearer(credentials: Credentials) -> str | None:
    client = ApiClient(credentials)
    try:
        return (await client.authorization()).get("authorization")
    finally:
        await client.aclose()


@pytest.mark.asyncio
async def test_a_kubeconfig_gives_server_namespace_and_token(tmp_path: Path) -> None:
    found = await find_cluster(Access(write(tmp_path / "config", kubeconfig(SERVER, token=TOKEN))))
    assert found.configuration.host == SERVER
    assert found.namespace == "team"
    assert await bearer(found) == f"Bearer {TOKEN}"
    assert TOKEN not in repr(found)
    other = await find_cluster(Access(tmp_path / "config", namespace="mine"))
    assert other.namespace == "mine"


@pytest.mark.asyncio
async def test_a_proxy_of_the_kubeconfig_is_used(tmp_path: Path) -> None:
    document = kubeconfig(SERVER, token=TOKEN, cluster={"proxy-url": "http://127.0.0.1:3128"})
    found = await find_cluster(Access(write(tmp_path / "config", document)))
    assert found.configuration.proxy == "http://127.0.0.1:3128"


@pytest.mark.asyncio
async def test_certificates_are_checked_unless_the_file_says_otherwise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = await find_cluster(Access(write(tmp_path / "config", kubeconfig(SERVER, token=TOKEN))))
    assert found.configuration.verify_ssl is True
    assert caplog.text == ""
    document = kubeconfig(SERVER, token=TOKEN, cluster={"insecure-skip-tls-verify": True})
    found = await find_cluster(Access(write(tmp_path / "config", document)))
    assert found.configuration.verify_ssl is False
    assert "is not checked" in caplog.text


def changed(**entries: Any) -> dict[str, Any]:
    return {**kubeconfig(SERVER, token=TOKEN), **entries}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("document", "context", "expected"),
    [
        ("a: [b", None, ":1: the kubeconfig is not valid YAML"),
        ("a:\n  - b: c\n d: e\n", None, ":3: the kubeconfig is not valid YAML"),
        ("- a list", None, "the kubeconfig holds no keys and values"),
        ("\x00", None, "characters that YAML does not allow"),
        (changed(contexts="x"), None, "contexts of the kubeconfig must be a list"),
        (changed(users=[{"user": {}}]), None, "users of the kubeconfig must be a list"),
        (changed(**{"current-context": ""}), None, "names no current-context; set kubernetes.context to one of here"),
        ({}, None, "names no current-context; set kubernetes.context to one of no context at all"),
        (kubeconfig(SERVER, token=TOKEN), "there", "there is no context there; it has here. See kubernetes.context"),
        (changed(clusters=[]), None, "names the cluster lab, which does not exist"),
        (changed(users=[]), None, "names the user me, which does not exist"),
        (kubeconfig("", token=TOKEN), None, "no usable server; it must be like https://HOST:6443"),
        (kubeconfig("10.0.0.1:6443", token=TOKEN), None, "no usable server"),
        (kubeconfig("https://[::1:6443", token=TOKEN), None, "no usable server"),
        (kubeconfig("https://10.0.0.1:api", token=TOKEN), None, "no usable server"),
        (kubeconfig("http://10.0.0.1:8080", token=TOKEN), None, "plain http, which exposes credentials"),
        (kubeconfig(SERVER, user={"tokenFile": "/nowhere"}), None, "the user of the context here gives no usable"),
        (
            kubeconfig(SERVER, token=TOKEN, cluster={"certificate-authority": "/nowhere"}),
            None,
            "gives no usable credentials",
        ),
        (kubeconfig(SERVER, user={"exec": {"command": "no-such-program", "apiVersion": "v1"}}), None, "No such file"),
        (kubeconfig(SERVER, user={"exec": {"command": "a\0b", "apiVersion": "v1"}}), None, "it is not a command"),
        (kubeconfig(SERVER, user={"exec": {"apiVersion": "v1"}}), None, "the command (none) cannot be run"),
    ],
)
async def test_a_wrong_kubeconfig_is_told_with_its_place_and_without_its_secrets(
    tmp_path: Path, document: Any, context: str | None, expected: str
) -> None:
    path = write(tmp_path / "config", document)
    with pytest.raises(AccessError) as error:
        await find_cluster(Access(path, context))
    assert str(path) in str(error.value)
    assert expected in str(error.value)
    assert TOKEN not in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None


@pytest.mark.asyncio
async def test_a_file_that_is_not_there_or_not_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        AccessError, match=r"missing: the kubeconfig cannot be read: No such file.*kubernetes\.kubeconfig"
    ):
        await find_cluster(Access(tmp_path / "missing"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AccessError, match="binary: the kubeconfig is not UTF-8 text"):
        await find_cluster(Access(tmp_path / "binary"))


@pytest.mark.asyncio
async def test_a_certificate_that_is_none_is_told(tmp_path: Path) -> None:
    document = kubeconfig(SERVER, token=TOKEN, cluster={"certificate-authority-data": "bm9uc2Vuc2U="})
    with pytest.raises(AccessError, match="a certificate or key in it cannot be used"):
        await connect(Access(write(tmp_path / "config", document)))


def certificate(name: str) -> dict[str, str]:
    """A client certificate and its key, as a kubeconfig holds them."""
    key = ec.generate_private_key(ec.SECP256R1())
    who, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), datetime.now(UTC)
    unsigned = x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
    unsigned = unsigned.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = unsigned.sign(key, hashes.SHA256()).public_bytes(pem)
    texts = (("client-certificate-data", public), ("client-key-data", secret))
    return {key: base64.b64encode(text).decode() for key, text in texts}


@pytest.mark.asyncio
async def test_a_renewed_client_certificate_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "config", kubeconfig(SERVER, user=certificate("old")))
    client = await connect(Access(path))
    try:
        before = client.session
        await client.authorization()
        assert client.session is before
        write(path, kubeconfig(SERVER, user=certificate("new")))
        monkeypatch.setattr(access_module, "REFUSED_S", 0.0)
        assert await client.renew_credentials()
        await client.authorization()
        assert client.session is not before
        assert before.closed
    finally:
        await client.aclose()


@pytest.mark.asyncio
async def test_a_library_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes_asyncio", None)
    with pytest.raises(AccessError, match="pip install kubernetes_asyncio aiohttp"):
        await find_cluster(Access())


@pytest.mark.asyncio
async def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "first", {"current-context": "here"})
    second = write(tmp_path / "second", {**kubeconfig(SERVER, token=TOKEN), "current-context": "other"})
    paths = os.pathsep.join([str(first), str(tmp_path / "missing"), str(second)])
    found = await find_cluster(Access(), environ={"KUBECONFIG": paths})
    assert found.configuration.host == SERVER
    with pytest.raises(AccessError, match="cannot be read"):
        await find_cluster(Access(), environ={"KUBECONFIG": str(tmp_path / "missing")})


@pytest.mark.asyncio
async def test_without_anything_the_message_says_what_can_be_done(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"no Kubernetes cluster is known.*set kubernetes\.kubeconfig"):
        await find_cluster(Access(), environ={"HOME": str(tmp_path)}, service_account=tmp_path)
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", kubeconfig(SERVER, token=TOKEN))
    found = await find_cluster(Access(), environ={"HOME": str(tmp_path)}, service_account=tmp_path)
    assert found.configuration.host == SERVER


@pytest.mark.asyncio
async def test_a_pod_uses_its_service_account_and_reads_the_token_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("token", "first"), ("ca.crt", "a certificate"), ("namespace", "team-a\n")):
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
    found = await find_cluster(Access(), environ=environ, service_account=tmp_path)
    assert (found.configuration.host, found.namespace) == ("https://10.96.0.1:443", "team-a")
    assert found.configuration.api_key["BearerToken"] == "Bearer first"
    (tmp_path / "token").write_text("second")
    await found.current()
    assert found.configuration.api_key["BearerToken"] == "Bearer first"  # not with every request
    monkeypatch.setattr(access_module, "ROTATED_S", 0.0)
    await found.load()
    (tmp_path / "token").write_text("third")
    await found.current()
    assert found.configuration.api_key["BearerToken"] == "Bearer third"
    (tmp_path / "token").unlink()
    with pytest.raises(AccessError, match="service account cannot be used"):
        await found.current()


@pytest.mark.asyncio
async def test_a_credential_program_runs_once_until_its_token_is_about_to_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = kubeconfig(SERVER, user=plugin(tmp_path, gives("first", hour)))
    found = await find_cluster(Access(write(tmp_path / "config", document)))
    for _ in range(5):
        await found.current()
    assert (tmp_path / "runs").read_text() == "x"
    plugin(tmp_path, gives("second", hour))
    at = time.monotonic() + 3600 - access_module.EARLY_S + 1
    monkeypatch.setattr("time.monotonic", lambda: at)
    await found.current()
    assert found.configuration.api_key["BearerToken"] == "Bearer second"
    assert (tmp_path / "runs").read_text() == "xx"


@pytest.mark.asyncio
async def test_after_a_refusal_credentials_are_fetched_again_but_not_in_a_storm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "config", kubeconfig(SERVER, token="old"))
    found = await find_cluster(Access(path))
    write(path, kubeconfig(SERVER, token="new"))
    assert await found.refused() is False
    now = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: now + access_module.REFUSED_S)
    assert await found.refused() is True
    assert found.configuration.api_key["BearerToken"] == "Bearer new"
    assert await found.refused() is False


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"import sys; sys.exit('cannot log in with {TOKEN}')", "ended with exit code 1; run it by hand to see why"),
        ("print('no JSON')", "did not return an ExecCredential of client.authentication.k8s.io/v1"),
        (gives(""), "did not return an ExecCredential"),
        (gives(TOKEN, "tomorrow"), "did not return an ExecCredential"),
        (gives(TOKEN, "2026-11-21T00:00:00"), "did not return an ExecCredential"),
        (f"print({TOKEN!r}, flush=True); import time; time.sleep(1000)", "gave no credentials within 0.5 s"),
    ],
)
async def test_a_credential_program_that_fails_is_told_without_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, body: str, expected: str
) -> None:
    if "sleep" in body:
        monkeypatch.setattr(credential_program, "COMMAND_S", 0.5)
    document = kubeconfig(SERVER, user=plugin(tmp_path, body))
    with caplog.at_level(logging.DEBUG), pytest.raises(AccessError) as error:
        await find_cluster(Access(write(tmp_path / "config", document)))
    assert expected in str(error.value)
    assert sys.executable in str(error.value)
    assert TOKEN not in str(error.value) + caplog.text
    assert command_lines_with(str(tmp_path / "plugin.py")) == [], "nothing of it is left behind"


@pytest.mark.asyncio
async def test_a_credential_program_may_give_a_certificate_and_is_told_what_it_asks_for(tmp_path: Path) -> None:
    body = """
import json, os
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
status = {"clientCertificateData": json.dumps(info), "clientKeyData": os.environ["ABOUT"]}
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""
    user = plugin(tmp_path, body)
    config = {**user["exec"], "env": [{"name": "ABOUT", "value": "a key"}], "provideClusterInfo": True}
    given = await credential_program.run_program(config, {"server": SERVER, "extensions": []}, tmp_path, "config")
    info = json.loads(base64.b64decode(given.user["client-certificate-data"]))
    assert info["spec"] == {"interactive": False, "cluster": {"server": SERVER}}
    assert base64.b64decode(given.user["client-key-data"]) == b"a key"
    assert "a key" not in repr(given)


@pytest.mark.asyncio
async def test_files_beside_a_kubeconfig_are_found_wherever_the_backend_runs(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    found = await find_cluster(Access(write(tmp_path / "config", kubeconfig(SERVER, user={"tokenFile": "token"}))))
    assert await bearer(found) == f"Bearer {TOKEN}"
