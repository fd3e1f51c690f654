"""A whole backend with a bound on images: what a job's image becomes after the job, as a user and the audit see it."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from pai_backend.testing.free_ports import free_ports
from tests.integration.containers.test_images import address
from tests.support.backend_process import backend, until
from tests.support.page_shell import LONG_S, PageShell
from tests.support.played_registry import PASSWORD, USER
from tests.support.podman_site import PodmanSite

__all__ = ["address"]

PAGE = """
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{name: made, type: dockerimage, uri: {image}}}
taskRoles:
  worker:
    dockerImage: made
    resourcePerInstance: {{cpu: 1, memoryMB: 128, gpu: 0}}
    commands: ["{command}"]
"""
WAITS = "until [ -e /pai/work/end ]; do read -t 0.1 _ <> <(:) || :; done"
"""In an image with a single file there is no ``sleep``."""


def test_the_image_of_a_job_goes_after_it_and_is_fetched_again(site: PodmanSite, address: str, tmp_path: Path) -> None:
    image = f"{address}/team/made:1"
    login = tmp_path / "auth.json"
    both = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    login.write_text(json.dumps({"auths": {address: {"auth": both}}}))
    registries = os.environ["CONTAINERS_REGISTRIES_CONF"]  # the registry's fixture set it
    environment = {**site.environment, "REGISTRY_AUTH_FILE": str(login), "CONTAINERS_REGISTRIES_CONF": registries}
    api_port, ssh_port = free_ports(2)
    config = tmp_path / "backend.yaml"
    containers = {"runtime_image": site.runtime_image, "images": {"most_bytes": 1}}
    settings = {"engine": {"kind": "containers"}, "containers": containers}
    config.write_text(json.dumps({**settings, "api": {"port": api_port}, "gateway": {"port": ssh_port}}))
    shell = PageShell(tmp_path, environment)
    with backend(tmp_path / "data", ["--config", str(config)], environment) as running:
        signed_in = f"export PAI_URL={running.url} PAI_TOKEN=$(cat {tmp_path}/data/token)\n"

        def ran(name: str, command: str) -> None:
            (tmp_path / f"{name}.yaml").write_text(PAGE.format(name=name, image=image, command=command))
            shell(f"{signed_in}pai submit {tmp_path / name}.yaml")

        ran("waits", WAITS)
        until(lambda: "RUNNING" in shell(f"{signed_in}pai show waits"), LONG_S)
        listed = shell(f"{signed_in}pai images")
        assert image in listed
        assert "in use" in listed
        assert "cannot be removed" in shell.attempt(f"{signed_in}pai images remove {image}").stderr
        shell(f"{signed_in}pai stop waits")
        until(lambda: image not in shell(f"{signed_in}pai images"), 3 * LONG_S)
        assert f"image.removed {image}" in " ".join(shell(f"{signed_in}pai audit list --type 'image.*'").split())
        assert site.runtime_image in shell(f"{signed_in}pai images")
        ran("again", "echo again")
        until(lambda: "SUCCEEDED" in shell(f"{signed_in}pai show again"), LONG_S)
