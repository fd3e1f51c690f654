"""``python -m pai_backend setup``: five questions, then the configuration and the unit of systemd of a server.

What is given as a flag is not asked; without a terminal nothing is. Nothing is written before a backend would take it,
and no file is replaced that is not asked for.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from pai_backend.api.people_queries import NAME_PATTERN
from pai_backend.commands.server_check import check, report
from pai_backend.commands.server_setup import Answers, configuration, next_steps, unit
from pai_backend.config.files import ConfigError
from pai_backend.config.load import load

EXIT_INVALID = 2
CONFIG = Path("/etc/jupyter-pai/backend.yaml")
UNIT = Path("/etc/systemd/system/jupyter-pai.service")
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+")
Ask = Callable[[str, str], str]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"command line: {message}")


def main(arguments: Sequence[str]) -> int:
    """Ask, write, check and say what to do; exit code 2, and one line a fault, when that cannot be."""
    try:
        given = _parser().parse_args(list(arguments))
        answers = _answers(given, _ask if sys.stdin.isatty() else _default)
        text = configuration(answers)
        service = None if given.no_unit else given.unit
        service_text = unit(sys.executable, given.output)
        if given.print:
            sys.stdout.write(
                f"# {given.output}\n{text}" + ("" if service is None else f"\n# {service}\n{service_text}")
            )
            return 0
        files = {given.output: text, **({} if service is None else {service: service_text})}
        _write(files, force=given.force)
        answers.files.mkdir(parents=True, exist_ok=True)
        settings = load(["--config", str(given.output)]).settings
    except ConfigError as error:
        for line in error.lines:
            sys.stderr.write(f"pai_backend: {line}\n")
        return EXIT_INVALID
    for path in files:
        sys.stdout.write(f"Wrote {path}.\n")
    checked = check(settings, service)
    sys.stdout.write(f"\n{report(checked)}\n{next_steps(answers, service, given.output, sys.executable)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m pai_backend setup",
        description="Write the configuration and the systemd unit of a server. What no flag says is asked.",
        allow_abbrev=False,
    )
    parser.add_argument("--admin", metavar="NAME", help="Who administers, by the token in the data directory.")
    parser.add_argument("--people", metavar="NAME,NAME", help="Who may sign in besides.")
    parser.add_argument("--gpus", metavar="all|none|0,1", help="Which GPUs jobs may have.")
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="Where database, keys, logs and tasks lie.")
    parser.add_argument("--files", metavar="DIR", type=Path, help="Where jobs leave what is to stay.")
    parser.add_argument("--api-port", metavar="N", type=int, help="The port of the API.")
    parser.add_argument("--ssh-port", metavar="N", type=int, help="The port of SSH into jobs.")
    parser.add_argument("--domain", metavar="NAME", help="By which others reach this server; empty: they do not.")
    parser.add_argument("--certificate", metavar="FILE", type=Path, help="Of the domain and *.domain, in PEM.")
    parser.add_argument("--key", metavar="FILE", type=Path, help="Of the certificate, in PEM.")
    parser.add_argument("--proxy", metavar="ADDRESS", default="", help="Of a proxy in front that ends https instead.")
    parser.add_argument(
        "--runtime-image", metavar="IMAGE", help="Default: that which Podman has. Empty: no containers."
    )
    parser.add_argument("--output", metavar="FILE", type=Path, default=CONFIG, help=f"Default: {CONFIG}.")
    parser.add_argument("--unit", metavar="FILE", type=Path, default=UNIT, help=f"Default: {UNIT}.")
    parser.add_argument("--no-unit", action="store_true", help="Write no unit of systemd.")
    parser.add_argument("--force", action="store_true", help="Replace files that are there.")
    parser.add_argument("--print", action="store_true", help="Print the files and write none.")
    return parser


def _ask(question: str, default: str) -> str:
    shown = f" [{default}]" if default else ""
    return input(f"{question}{shown}: ").strip() or default


def _default(_question: str, default: str) -> str:
    return default


def _answers(given: argparse.Namespace, ask: Ask) -> Answers:
    """What is given, and what is asked for the rest. Raises ConfigError for what cannot be."""
    admin = _user(given.admin or ask("Who administers this server?", os.environ.get("SUDO_USER") or "admin"), "--admin")
    people = given.people if given.people is not None else ask("Who else may sign in? Names, with commas", "")
    gpus = given.gpus or ask("Which GPUs may jobs have? all, none, or numbers such as 0,1", "all")
    data_dir = given.data_dir or Path(ask("Where do database, keys, logs and tasks lie?", "/var/lib/jupyter-pai"))
    files = given.files or Path(ask("Where do jobs leave what is to stay?", "/srv/pai"))
    api_port = given.api_port or _number(ask("The port of the API?", "8750"), "--api-port")
    ssh_port = given.ssh_port or _number(ask("The port of SSH into jobs?", "2222"), "--ssh-port")
    domain = given.domain if given.domain is not None else ask("The name by which others reach it (empty: none)?", "")
    certificate, key = given.certificate, given.key
    if domain and not given.proxy and certificate is None:
        certificate = Path(
            ask("The certificate of that name, a file?", f"/etc/letsencrypt/live/{domain}/fullchain.pem")
        )
        key = key or Path(ask("Its key, a file?", f"/etc/letsencrypt/live/{domain}/privkey.pem"))
    image = given.runtime_image if given.runtime_image is not None else _runtime_image()
    return _checked(
        Answers(
            admin=admin,
            people=tuple(_user(name.strip(), "--people") for name in people.split(",") if name.strip()),
            gpus=_indices(gpus),
            data_dir=data_dir,
            files=files,
            api_port=api_port,
            ssh_port=ssh_port,
            domain=domain.lower(),
            certificate=certificate if domain else None,
            key=key if domain else None,
            proxy=given.proxy if domain else "",
            runtime_image=image,
        )
    )


def _checked(answers: Answers) -> Answers:
    """Raises ConfigError for answers that do not go together."""
    for name, path in (("--data-dir", answers.data_dir), ("--files", answers.files)):
        if not path.is_absolute():
            raise ConfigError(f"{name}: {path} is not an absolute path; a service has no directory of its own")
    if answers.domain and not _HOST.fullmatch(answers.domain):
        raise ConfigError(f"--domain: {answers.domain[:100]!r} is not a host name such as gpu.lab.example.org")
    if answers.api_port == answers.ssh_port:
        raise ConfigError(f"--ssh-port: {answers.ssh_port} is the port of the API; name another")
    if (answers.certificate is None) != (answers.key is None):
        raise ConfigError("--key: a certificate and its key belong together; name both files")
    return answers


def _user(name: str, flag: str) -> str:
    if not re.fullmatch(NAME_PATTERN, name):
        raise ConfigError(f"{flag}: {name[:100]!r} is not a user name; take letters, digits, dots, - and _")
    return name


def _number(text: str, flag: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) < 65536):
        raise ConfigError(f"{flag}: {text[:40]!r} is not a port; take a number from 1 to 65535")
    return int(text)


def _indices(text: str) -> tuple[int, ...] | None:
    if text in ("all", "none"):
        return None if text == "all" else ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise ConfigError(f"--gpus: {text[:60]!r} is none of all, none, and numbers such as 0,1")
    return tuple(dict.fromkeys(map(int, parts)))


def _runtime_image() -> str:
    """That which Podman has, the newest; empty where there is none, and tasks are processes."""
    if shutil.which("podman") is None:
        return ""
    command = ["podman", "images", "--sort", "created", "--format", "{{.Repository}}:{{.Tag}}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    named = [line for line in done.stdout.splitlines() if re.search(r"/runtime:[^<]", line)]
    return named[0] if named else ""


def _write(files: dict[Path, str], *, force: bool) -> None:
    """Write all or none, readable by us alone. Raises ConfigError."""
    for path in files:
        if path.exists() and not force:
            raise ConfigError(f"{path} is there; --force replaces it")
    parts = {}
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
            parts[part] = path
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        load(["--config", next(iter(parts))])  # what a backend would refuse is told now, and nothing is changed
        for part, path in parts.items():
            os.replace(part, path)
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from None
    finally:
        for part in parts:
            Path(part).unlink(missing_ok=True)
