"""``python -m pai_backend doctor``: whether a server is set up so that people can rely on it; ``pai doctor --server``.

Each check looks at one thing that a configuration says and the machine must have. It changes nothing, and needs no
backend that runs; one that does is asked how it is.
"""

from __future__ import annotations

import argparse
import configparser
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from cryptography import x509

from pai_backend.config.files import ConfigError
from pai_backend.config.load import load
from pai_backend.config.settings import Settings
from pai_backend.engine.providers import provider
from pai_backend.platform.runtime_files import read_json

EXIT_BLOCKED, EXIT_CONFIG = 1, 2
LITTLE_BYTES = 5 * 2**30
SOON = timedelta(days=14)
ANSWER_S = 10.0
CDI = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Where descriptions of devices lie: the Container Device Interface."""


@dataclass(frozen=True)
class Finding:
    """Something to be changed; what is ``blocking`` keeps people from working, or lets the wrong ones in."""

    what: str
    remedy: str
    blocking: bool = True


@dataclass(frozen=True)
class CheckResult:
    """What was looked at, and what was found; nothing when all is well."""

    name: str
    findings: tuple[Finding, ...]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"command line: {message}")


def main(arguments: Sequence[str]) -> int:
    """Check what the configuration says and print it; exit code 1 when something blocks, 2 for the configuration."""
    parser = _Parser(
        prog="python -m pai_backend doctor",
        description="Check a server. All keys of the backend can be given, as to serve.",
        allow_abbrev=False,
    )
    parser.add_argument("--unit", metavar="FILE", type=Path, default=Path("/etc/systemd/system/jupyter-pai.service"))
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    try:
        own, others = parser.parse_known_args(list(arguments))
        checked = check(load(others).settings, own.unit)
    except ConfigError as error:
        for line in error.lines:
            sys.stderr.write(f"pai_backend: {line}\n")
        return EXIT_CONFIG
    works, text = not any(each.blocking for one in checked for each in one.findings), report(checked)
    if own.json:
        answer = {"works": works, "checks": [asdict(each) for each in checked], "report": text}
        text = json.dumps(answer, ensure_ascii=False) + "\n"
    sys.stdout.write(text)
    return 0 if works else EXIT_BLOCKED


def check(settings: Settings, unit: Path | None) -> list[CheckResult]:
    """All checks, in the order in which to deal with them. ``unit``: of systemd; None where none is wanted."""
    looks: dict[str, Callable[[Settings], Iterator[Finding]]] = {
        "data directory": _data_directory,
        "ports": _ports,
        "ways in": _ways_in,
        "certificate": _certificate,
        "engine": _engine,
        "GPUs": _gpus,
    }
    found = [CheckResult(name, tuple(look(settings))) for name, look in looks.items()]
    if unit is not None:
        found.append(CheckResult("reboot", tuple(_unit(unit))))
    return [*found, CheckResult("backend", tuple(_running(settings)))]


def report(checked: Sequence[CheckResult]) -> str:
    """For people: a line for each thing that is well, and three for each that is not."""
    lines = []
    for each in checked:
        if not each.findings:
            lines.append(f"ok       {each.name}")
        for finding in each.findings:
            word = "wrong" if finding.blocking else "notice"
            lines += [f"{word:8} {each.name}: {finding.what}", f"         {finding.remedy}"]
    return "\n".join(lines) + "\n"


def _data_directory(settings: Settings) -> Iterator[Finding]:
    place = settings.data_dir
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK | os.X_OK):
        yield Finding(f"{place} cannot be written to", "Run as its owner, or name another `data_dir`.")
        return
    free = shutil.disk_usage(place).free
    if free < LITTLE_BYTES:
        yield Finding(
            f"{free / 2**30:.1f} GiB are free for {settings.data_dir}",
            "Free some, or bound what finished tasks leave: `engine.keep_bytes`, `engine.keep_days`.",
            blocking=free < settings.disk_reserve_bytes,
        )


def _ports(settings: Settings) -> Iterator[Finding]:
    if _supervisor(settings) is not None:
        return  # it has them itself
    for key, host, port in (
        ("api", settings.api.host, settings.api.port),
        ("gateway", settings.gateway.host, settings.gateway.port),
    ):
        if port == 0:
            yield Finding(
                f"{key}.port is any free one", f"Set `{key}.port`: a firewall can pass a fixed one.", blocking=False
            )
            continue
        try:
            socket.create_server((host, port)).close()
        except OSError as error:
            what = os.strerror(error.errno) if error.errno else str(error)
            yield Finding(
                f"{key}.port {port} on {host}: {what}", f"End what listens there, or set another `{key}.port`."
            )


def _ways_in(settings: Settings) -> Iterator[Finding]:
    api, public = settings.api, urlsplit(settings.api.public_url or "")
    behind_proxy = public.scheme == "https" and api.tls.certificate is None
    if _is_loopback(api.host) and not public.netloc:
        yield Finding(
            "only this machine reaches the API",
            "Others come by `ssh -L`, or set `api.host`, `api.tls` and `api.public_url`.",
            blocking=False,
        )
    if not _is_loopback(api.host) and api.tls.certificate is None and not behind_proxy:
        yield Finding(
            f"passwords pass the network in clear text: {api.host} speaks http",
            "Set `api.tls.certificate` and `api.tls.key`, or `api.public_url` to that of a proxy that ends https.",
        )
    if behind_proxy and not api.proxies:
        yield Finding(
            "a guessed password locks out all who come by the proxy",
            "Set `api.proxies` to its address, so that `X-Forwarded-For` counts.",
            blocking=False,
        )
    if public.hostname and not _is_loopback(public.hostname) and _is_loopback(settings.gateway.host):
        yield Finding(
            "only this machine reaches SSH into jobs", "Set `gateway.host` and `gateway.public_host`.", blocking=False
        )


def _certificate(settings: Settings) -> Iterator[Finding]:
    tls = settings.api.tls
    if tls.certificate is None or tls.key is None:
        return
    from pai_backend.api.tls import CertificateError, ServerCertificate

    try:
        ServerCertificate(tls.certificate, tls.key)
        leaf = x509.load_pem_x509_certificates(tls.certificate.read_bytes())[0]
    except (CertificateError, OSError, ValueError) as error:
        yield Finding(str(error), "Name the files of a certificate and its key, in PEM.")
        return
    left = leaf.not_valid_after_utc - datetime.now(UTC)
    if left < SOON:
        words = f"ends on {leaf.not_valid_after_utc:%Y-%m-%d}" if left > timedelta() else "has ended"
        yield Finding(f"{tls.certificate} {words}", "Renew it; the files are read again.", blocking=left <= timedelta())
    names = _names(leaf)
    host = urlsplit(settings.api.public_url or "").hostname
    domain = settings.api.service_domain
    for wanted, remedy in (
        (host, "People's clients refuse it: get one for this name."),
        (
            f"*.{domain}" if domain != "localhost" else None,
            "Services at names of their own need it; get one for it, too.",
        ),
    ):
        if wanted and wanted not in names and f"*.{wanted.partition('.')[2]}" not in names:
            yield Finding(f"{tls.certificate} is not for {wanted}", remedy, blocking=wanted == host)


def _names(certificate: x509.Certificate) -> set[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return {*map(str.lower, found.get_values_for_type(x509.DNSName)), *addresses}


def _engine(settings: Settings) -> Iterator[Finding]:
    kind = provider(settings.engine.kind)
    try:
        kind.check(settings)
    except ValueError as error:
        yield Finding(str(error), "See docs/configuration.md for the key.")
        return
    if settings.engine.kind == "containers":
        yield from _containers(settings)
    elif settings.engine.accounts.given and os.geteuid() != 0:
        yield Finding("tasks cannot run as accounts of their users: this is not root", "Run it as root.")
    elif kind.tasks_run_as_backend(settings):
        yield Finding(
            "tasks of all users run as the backend's own account",
            "Set `engine.accounts`, or `engine.kind: containers`; else any task reads what is another's.",
            blocking=os.geteuid() == 0,
        )


def _containers(settings: Settings) -> Iterator[Finding]:
    given = settings.containers
    if shutil.which("runc") is None and shutil.which("crun") is None:
        yield Finding("Podman has no runtime", "Install the package runc.")
    asked = [given.podman, "image", "exists", str(given.runtime_image)]
    try:
        missing = subprocess.run(asked, capture_output=True, timeout=60, check=False).returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Finding(f"{given.podman} does not answer: {type(error).__name__}", "Try `podman info`.")
        return
    if missing:
        yield Finding(
            f"the runtime image {given.runtime_image} is not here",
            "Load it: `podman load --input runtime.tar` (docs/quick-start-server.md).",
            blocking=given.pull == "never" or str(given.runtime_image).startswith("localhost/"),
        )
    for mount in given.mounts:
        if not Path(mount.source).is_dir():
            yield Finding(
                f"{mount.source} of `containers.mounts` is not a directory", f"Make it: `mkdir -p {mount.source}`."
            )


def _gpus(settings: Settings) -> Iterator[Finding]:
    from pai_backend.engine.local.nodes import detect_machine

    if not provider(settings.engine.kind).runs_here or (gpus := detect_machine().gpus) == ():
        return
    there = {gpu.index for gpu in gpus}
    for node in settings.engine.nodes:
        if gone := sorted(set(node.gpu_indices or ()) - there):
            yield Finding(
                f"{node.name} is to have GPU {gone[0]}, and the driver shows {', '.join(map(str, sorted(there)))}",
                "Name those in `gpu_indices`, or look with `nvidia-smi`.",
            )
    described = [path for folder in CDI if folder.is_dir() for path in folder.iterdir()]
    if settings.engine.kind == "containers" and not described:
        yield Finding(
            f"containers get none of the {len(gpus)} GPUs: nothing describes them",
            "Run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`.",
        )


def _unit(unit: Path) -> Iterator[Finding]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys have capitals
    try:
        parser.read_string(unit.read_text(encoding="utf-8"))
    except FileNotFoundError:
        yield Finding(
            f"nothing starts the backend after a reboot: {unit} is not there",
            "`python -m pai_backend setup` writes it.",
            blocking=False,
        )
        return
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        yield Finding(f"{unit} cannot be read: {error}", "`python -m pai_backend setup --force` writes it again.")
        return
    service = parser["Service"] if parser.has_section("Service") else {}
    for key, wanted, what in (
        ("KillMode", "process", "a restart of the backend ends all jobs"),
        ("Delegate", "yes", "tasks cannot be held to their memory"),
    ):
        if service.get(key) != wanted:
            yield Finding(f"{what}: {unit} has no {key}={wanted}", f"Add `{key}={wanted}` to its section Service.")


def _running(settings: Settings) -> Iterator[Finding]:
    if _supervisor(settings) is None:
        yield Finding("it does not run", "`systemctl start jupyter-pai`, or `serve`.", blocking=False)
        return
    url = str((read_json(settings.data_dir / "runtime" / "api.json") or {}).get("url") or "")
    try:
        troubles = _troubles(f"{url.rstrip('/')}/readyz")
    except (OSError, ValueError, KeyError, TypeError) as error:
        troubles = [f"{url or 'its API'} does not answer: {error}"]
    for trouble in troubles:
        yield Finding(trouble, "See its log.")


def _troubles(address: str) -> list[str]:
    """What the backend says that keeps it from being ready. Raises OSError, ValueError for what is not its answer."""
    own = ssl.create_default_context()
    own.check_hostname, own.verify_mode = False, ssl.CERT_NONE  # its certificate is for the name that others use
    try:
        with urllib.request.urlopen(address, timeout=ANSWER_S, context=own):
            return []
    except urllib.error.HTTPError as error:
        told = json.loads(error.read())["checks"]
        return [f"{each['name']}: {each['message']}" for each in told if not each["ok"]]


def _supervisor(settings: Settings) -> int | None:
    """The process id of a backend that runs with this data directory."""
    pid = (read_json(settings.data_dir / "runtime" / "supervisor.json") or {}).get("pid")
    if not isinstance(pid, int):
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:  # it lives, as another user
        return pid
    return pid


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
