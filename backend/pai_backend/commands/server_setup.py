"""The texts that make a server of a machine: the backend's configuration, and its unit of systemd. Pure.

Source of the unit: systemd.service(5), systemd.kill(5); of what it must say, docs/quick-start-server.md.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FIRST_UID, UIDS = 2_000_000, 1000
"""Accounts of users where tasks are plain processes: uids that nothing on a server has."""
_HEAD = "# Written by `python -m pai_backend setup`. All keys: docs/configuration.md\n"


@dataclass(frozen=True)
class Answers:
    """What the administrator of a server has decided."""

    admin: str
    people: tuple[str, ...]
    """Who may sign in besides."""
    gpus: tuple[int, ...] | None
    """Indices of those that jobs may have; None: all."""
    data_dir: Path
    files: Path
    """Where jobs leave what is to stay."""
    api_port: int
    ssh_port: int
    domain: str
    """The name by which others reach the server; empty: they do not."""
    certificate: Path | None
    key: Path | None
    proxy: str
    """Address of a proxy in front that ends https; empty: there is none."""
    runtime_image: str
    """Tasks run in containers with it; empty: as processes, each user's as an account of its own."""

    @property
    def url(self) -> str:
        """Where the API is for people; the proxy's has the port of https."""
        if not self.domain:
            return f"http://127.0.0.1:{self.api_port}"
        return f"https://{self.domain}" if self.proxy else f"https://{self.domain}:{self.api_port}"


def configuration(answers: Answers) -> str:
    """The file of the backend, in YAML."""
    values: dict[str, Any] = {
        "cluster_name": answers.domain.partition(".")[0] or "server",
        "data_dir": str(answers.data_dir),
        "user": answers.admin,
        "api": _api(answers),
        "gateway": {"port": answers.ssh_port, **_reached(answers)},
        "engine": _engine(answers),
        "storage": {"default_uri": str(answers.files)},
    }
    if answers.runtime_image:
        mounts = [{"source": str(answers.files)}]
        values["containers"] = {"runtime_image": answers.runtime_image, "mounts": mounts}
    return _HEAD + yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _api(answers: Answers) -> dict[str, Any]:
    api: dict[str, Any] = {"port": answers.api_port}
    if answers.domain:
        api |= {"host": "0.0.0.0", "public_url": answers.url, "service_domain": answers.domain}
    if answers.proxy:
        api |= {"proxies": [answers.proxy]}
    if answers.certificate is not None:
        api |= {"tls": {"certificate": str(answers.certificate), "key": str(answers.key)}}
    return api


def _reached(answers: Answers) -> dict[str, str]:
    return {"host": "0.0.0.0", "public_host": answers.domain} if answers.domain else {}


def _engine(answers: Answers) -> dict[str, Any]:
    engine: dict[str, Any] = {"kind": "containers" if answers.runtime_image else "local"}
    if not answers.runtime_image:
        engine |= {"accounts": {"first_uid": FIRST_UID, "count": UIDS}}
    if answers.gpus is not None:
        engine |= {"nodes": [{"name": "server", "simulated": False, "gpu_indices": list(answers.gpus)}]}
    return engine


def unit(python: str, config: Path) -> str:
    """The unit of systemd: tasks go on while the backend restarts or is replaced."""
    start = shlex.join([python, "-m", "pai_backend", "serve", "--config", str(config)])
    return f"""\
# Written by `python -m pai_backend setup`.
[Unit]
Description=jupyter-pai
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={start}
ExecReload=kill -USR2 $MAINPID
Restart=always
KillMode=process
Delegate=yes

[Install]
WantedBy=multi-user.target
"""


def next_steps(answers: Answers, unit_file: Path | None, config: Path, python: str) -> str:
    """What is to be done now, as lines of a shell, and what a reboot does."""
    start = (
        ["systemctl daemon-reload", f"systemctl enable --now {unit_file.name}"]
        if unit_file is not None
        else [shlex.join([python, "-m", "pai_backend", "serve", "--config", str(config)]) + " &"]
    )
    url = answers.url if answers.domain and not answers.proxy else f"http://127.0.0.1:{answers.api_port}"
    signed_in = [f"export PAI_URL={url}", f"export PAI_TOKEN=$(cat {shlex.quote(str(answers.data_dir / 'token'))})"]
    people = [f"pai user add {name}" for name in answers.people]
    told = "\n".join(f"  {line}" for line in [*start, *signed_in, *people])
    after = (
        "At a reboot systemd starts the backend again. Jobs that ran have ended then, and are started again where their"
        "\ndocuments say so; addresses, files and logs stay."
        if unit_file is not None
        else "Without systemd nothing starts the backend after a reboot."
    )
    return f"Start it, and let people in:\n\n{told}\n\n{after}\n"
