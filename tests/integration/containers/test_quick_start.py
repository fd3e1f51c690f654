"""What docs/quick-start-server.md tells to do, done by a shell: from the runtime image to a colleague's first job."""

from __future__ import annotations

from pathlib import Path

from pai_backend.testing.free_ports import free_ports
from tests.support.backend_process import backend, until
from tests.support.page_shell import LONG_S, PageShell, fence
from tests.support.podman_site import BUILD, PodmanSite

PAGE = "docs/quick-start-server.md"
IMAGE = "docker.io/library/python:3.12-slim"


def test_the_first_job_of_a_server_runs_as_the_page_says(site: PodmanSite, tmp_path: Path) -> None:
    shell = PageShell(tmp_path, site.environment)
    load, look = fence(PAGE, "podman load").text.splitlines()
    shell(load.replace("runtime.tar", str(BUILD / "runtime.tar")))
    site.podman("tag", site.image, IMAGE)
    files = tmp_path / "srv"
    assert shell(look).split()
    config, (api_port, ssh_port) = tmp_path / "backend.yaml", free_ports(2)
    own = f" --output {config} --no-unit --data-dir {tmp_path / 'data'} --files {files} --admin root"
    own += f" --api-port {api_port} --ssh-port {ssh_port} </dev/null"
    assert "ok       engine" in shell(fence(PAGE, "python -m pai_backend setup").text.strip() + own)
    with backend(tmp_path / "data", ["--config", str(config)], {**site.environment}) as running:
        people = fence(PAGE, "export PAI_URL").text.replace("http://127.0.0.1:8750", running.url)
        people = people.replace("/var/lib/jupyter-pai", str(tmp_path / "data"))
        assert "once" in shell(people)
        export, token, _ = people.splitlines()
        signed_in = f"{export}\n{token}\n"
        written, commands = fence(PAGE, "cat >hello.yaml").text.split("\nEND\n")
        submit, why, logs, ssh, stop = commands.splitlines()
        assert shell(f"{signed_in}{written}\nEND\n{submit}")
        until(lambda: "hello from worker-0" in shell(f"{signed_in}{logs}"), LONG_S)
        assert "hello" in shell(f"{signed_in}{why}")
        until(lambda: shell.attempt(f"{signed_in}{ssh}").stdout.splitlines()[:1] == ["."], LONG_S)
        shell(f"{signed_in}{stop}")
        until(lambda: "STOPPED" in shell(f"{signed_in}pai show hello"), LONG_S)
