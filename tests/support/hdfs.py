"""A real HDFS of one NameNode and one DataNode on loopback, made of Hadoop's own jars.

Both are stopped by process id; everything they keep is in a directory of their own. Permissions are on: the
superuser is whoever runs the tests, and everybody else is who they say they are, as in any HDFS without Kerberos.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pai_backend.testing.free_ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
START_S = 60.0
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_LOG4J = """log4j.rootLogger=INFO,A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d %p %c{2} %m%n
"""


class Hdfs:
    """A running file system."""

    def __init__(self, directory: Path, jars: Path, rpc_port: int, http_port: int) -> None:
        self._directory, self._jars, self._rpc_port, self._http_port = directory, jars, rpc_port, http_port
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._met: set[str] = set()  # addresses of DataNodes; one that was restarted has another port

    @property
    def uri(self) -> str:
        """For the RPC protocol."""
        return f"hdfs://127.0.0.1:{self._rpc_port}"

    @property
    def web_uri(self) -> str:
        """For WebHDFS."""
        return f"webhdfs://127.0.0.1:{self._http_port}"

    def web(self, method: str, path: str, user: str, op: str, **parameters: str) -> httpx.Response:
        """A WebHDFS call, behind the back of what is tested; follows the redirect to the DataNode."""
        url = f"http://127.0.0.1:{self._http_port}/webhdfs/v1{path}"
        with httpx.Client(timeout=60, follow_redirects=True) as client:
            return client.request(method, url, params={"op": op, "user.name": user, **parameters})

    def read(self, path: str) -> bytes:
        """A file's bytes."""
        answer = self.web("GET", path, self.superuser, "OPEN")
        assert answer.status_code == 200, answer.text
        return answer.content

    def status(self, path: str) -> dict[str, object] | None:
        """What the NameNode knows of a path; None when it is not there."""
        answer = self.web("GET", path, self.superuser, "GETFILESTATUS")
        return answer.json()["FileStatus"] if answer.status_code == 200 else None

    def give(self, path: str, user: str, mode: str = "755") -> None:
        """Make a directory that belongs to a user."""
        for op, parameters in (("MKDIRS", {}), ("SETOWNER", {"owner": user}), ("SETPERMISSION", {"permission": mode})):
            answer = self.web("PUT", path, self.superuser, op, **parameters)
            assert answer.status_code == 200, answer.text

    @property
    def superuser(self) -> str:
        """Who may do everything: the user that the processes run as."""
        import getpass

        return getpass.getuser()

    def start(self) -> None:
        """Start both and wait until the DataNode is counted."""
        formatting = self._java(_NAME_NODE, "-format", "-nonInteractive")
        done = subprocess.run(formatting, cwd=self._directory, capture_output=True, timeout=START_S)
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
        self._run("namenode", _NAME_NODE)
        self._run("datanode", _DATA_NODE)
        self._wait()

    def start_data_node(self) -> None:
        """Start the DataNode again, and wait until the NameNode has met the new one."""
        self._run("datanode", _DATA_NODE)
        self._wait()

    def kill_data_node(self) -> None:
        """Cut its power. The NameNode goes on to count it for a while."""
        process = self._processes.pop("datanode")
        process.kill()
        process.wait(60)

    def stop(self) -> None:
        """End both at once: nothing of them is wanted any more."""
        for process in self._processes.values():
            process.send_signal(signal.SIGKILL)
        for process in self._processes.values():
            process.wait(60)
        self._processes.clear()

    def _java(self, program: str, *arguments: str) -> list[str]:
        # WebHDFS reads a private field of java.lang; without that option it answers 500.
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        options += ["--add-opens", "java.base/java.lang=ALL-UNNAMED", "-Djava.net.preferIPv4Stack=true"]
        return ["java", *options, "-cp", f"conf:.:{self._jars}/*", program, *arguments]

    def _run(self, name: str, program: str) -> None:
        with (self._directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self._java(program), cwd=self._directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _wait(self) -> None:
        """Until the NameNode may write to a DataNode that it had not before. Fails when a process has ended.

        A DataNode is counted when it has registered, but has no room until its first heartbeat told of its disks.
        """
        deadline = time.monotonic() + START_S
        while all(process.poll() is None for process in self._processes.values()):
            with contextlib.suppress(httpx.TransportError, KeyError, json.JSONDecodeError):
                facts = self._bean("NameNodeInfo")
                live = json.loads(str(facts["LiveNodes"])).values()
                nodes = {str(node["xferaddr"]) for node in live if node["remaining"] > 0}
                if nodes - self._met and facts["Safemode"] == "":
                    self._met |= nodes
                    return
            if time.monotonic() > deadline:
                pytest.fail(f"HDFS did not answer within {START_S:.0f} s:\n{self._log('namenode')}")
            time.sleep(0.1)
        pytest.fail("\n".join(f"HDFS does not start, {name}:\n{self._log(name)}" for name in ("namenode", "datanode")))

    def _bean(self, name: str) -> dict[str, object]:
        url = f"http://127.0.0.1:{self._http_port}/jmx"
        found = httpx.get(url, params={"qry": f"Hadoop:service=NameNode,name={name}"}, timeout=5).json()["beans"]
        return found[0] if found else {}

    def _log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(errors="replace")[-2000:]


def _configure(directory: Path, rpc_port: int, http_port: int) -> None:
    """Files that make it listen on loopback alone and keep no copies.

    The NameNode counts a DataNode for ten minutes after its last word, as by default: a shorter time takes one on a
    busy machine for lost.
    """
    core = {
        "fs.defaultFS": f"hdfs://127.0.0.1:{rpc_port}",
        "hadoop.tmp.dir": str(directory / "data"),
    }
    hdfs = {
        "dfs.replication": "1",
        "dfs.namenode.http-address": f"127.0.0.1:{http_port}",
        "dfs.namenode.rpc-bind-host": "127.0.0.1",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.fs-limits.min-block-size": "4096",
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
        "dfs.datanode.hostname": "localhost",
        "dfs.client.use.datanode.hostname": "true",
        "dfs.heartbeat.interval": "1",
    }
    for folder in ("conf", "webapps/hdfs", "webapps/datanode", "webapps/static"):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    for name, values in (("core-site.xml", core), ("hdfs-site.xml", hdfs)):
        rows = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items())
        (directory / "conf" / name).write_text(f"<configuration>{rows}</configuration>")
    (directory / "conf" / "log4j.properties").write_text(_LOG4J)


@contextlib.contextmanager
def running_hdfs() -> Iterator[Hdfs]:
    """Make and start one; stop and remove it at the end. Fails, with the remedy, without Java or Maven."""
    if shutil.which("java") is None:
        pytest.fail(
            "Java is not installed: hdfs:// is tested on a real HDFS. `tools/system-packages test` installs it."
        )
    found = subprocess.run([ROOT / "tools" / "hadoop-jars"], capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    directory = Path(tempfile.mkdtemp(prefix="pai-hdfs-"))
    rpc_port, http_port = free_ports(2)
    _configure(directory, rpc_port, http_port)
    hdfs = Hdfs(directory, Path(found.stdout.strip()), rpc_port, http_port)
    try:
        hdfs.start()
        yield hdfs
    finally:
        hdfs.stop()
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def hdfs() -> Iterator[Hdfs]:
    """One for all tests of this process; mark them ``xdist_group("hdfs")``, so that one process has them all."""
    with running_hdfs() as running:
        yield running
