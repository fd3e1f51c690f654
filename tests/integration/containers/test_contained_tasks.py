"""What containers add: limits that hold, users who are apart, images that are fetched, containers that others end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from pydantic import SecretStr

from pai_backend.engine.base import EngineError, LogStream, TaskPlan, TaskState
from pai_backend.engine.containers.engine import ContainerEngine
from pai_backend.engine.containers.podman import container_name
from pai_backend.model.container_settings import ContainerMount, ContainerSettings
from pai_backend.model.ids import JobUid, TaskUid, task_uid
from pai_backend.model.job import TaskExit
from pai_backend.model.node import Placement
from pai_backend.model.plan import RegistryLogin, StagedInput
from pai_backend.testing.engine_contract.observing import Watching, read_log, watching
from tests.support.backend_process import until
from tests.support.local_engine import NODE
from tests.support.played_registry import PASSWORD, USER, registry
from tests.support.podman_site import BUILD, PodmanSite

PLACEMENT = Placement(node="carol", address="worker-0", machine=NODE.machine)
Plan = Callable[..., TaskPlan]


@pytest.fixture(autouse=True)
def _with_podman(site: PodmanSite, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "engine"


@pytest.fixture
def make(site: PodmanSite, root: Path) -> Callable[..., ContainerEngine]:
    def engine(**settings: object) -> ContainerEngine:
        given = ContainerSettings.model_validate({"runtime_image": site.runtime_image, **settings})
        return ContainerEngine(root, [NODE], given, most_processes=60)

    return engine


@pytest.fixture
def plan(site: PodmanSite) -> Plan:
    def made(command: str, job: str = "j1", *, index: int = 0, **more: object) -> TaskPlan:
        fields = {"job_name": "job", "user": "alice", "role": "worker", "env": {}, "image": site.image, **more}
        uid = task_uid(JobUid(job), 0, index, 0)
        return TaskPlan.model_validate(
            {"uid": uid, "index": index, "command": command, "placement": PLACEMENT, **fields}
        )

    return made


@dataclass(frozen=True)
class Running:
    """A watched engine."""

    engine: ContainerEngine
    watch: Watching

    async def ended(self, plan: TaskPlan) -> TaskExit:
        """How a task ended."""
        seen = await self.watch.state(plan.uid, TaskState.EXITED)
        assert seen.exit is not None
        return seen.exit

    async def said(self, plan: TaskPlan, words: bytes) -> None:
        """Wait until a task has written this."""
        heard = b""
        async for piece in self.engine.logs(plan.uid, LogStream.STDOUT, 0, True):
            heard += piece
            if words in heard:
                return
        raise AssertionError(f"{plan.uid} only said {heard!r}")

    async def log(self, plan: TaskPlan, stream: LogStream = LogStream.STDOUT) -> bytes:
        """What a task has written."""
        return await read_log(self.engine, plan.uid, stream)


@asynccontextmanager
async def running(engine: ContainerEngine, root: Path) -> AsyncIterator[Running]:
    """The engine watched for the length of a block; its tasks are ended with it."""
    async with watching(engine) as watch:
        yield Running(engine, watch)
        for uid in map(TaskUid, sorted(os.listdir(root / "tasks"))):
            await engine.stop(uid, 0.0)
            await watch.state(uid, TaskState.EXITED)
            await engine.forget(uid)


@pytest_asyncio.fixture
async def here(make: Callable[..., ContainerEngine], root: Path) -> AsyncIterator[Running]:
    """An engine as it is set up without more."""
    async with running(make(), root) as made:
        yield made


BOMB = """
import os, time
for made in range(1000):
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError as error:
        print(made, error.strerror, flush=True)
        break
"""


@pytest.mark.asyncio
async def test_a_fork_bomb_hits_its_own_limit_alone(here: Running, plan: Plan) -> None:
    bomb = plan(f"exec python3 -c '{BOMB}'", cpus=1, memory_mb=256)
    other = plan("for i in $(seq 40); do sleep 0.1 & done; wait; echo fine", "j2")
    await here.engine.start(bomb)
    await here.engine.start(other)
    assert (await here.ended(other)).code == 0
    await here.ended(bomb)
    made, why = (await here.log(bomb)).split(maxsplit=1)
    assert 40 < int(made) < 60
    assert why == b"Resource temporarily unavailable\n"


@pytest.mark.asyncio
async def test_a_program_that_listens_at_the_other_loopback_alone_is_reached(here: Running, plan: Plan) -> None:
    lines = ["import socket", 'server = socket.create_server(("::1", 8123), family=socket.AF_INET6)']
    lines += ['print("up", flush=True)', "peer = server.accept()[0]", "peer.sendall(peer.recv(99))"]
    served = plan(f"exec python3 -c '{'; '.join(lines)}'")
    await here.engine.start(served)
    await here.said(served, b"up")
    connection = await here.engine.dial(served.placement, served.uid, 8123)
    connection.writer.write(b"hello")
    assert await connection.reader.readexactly(5) == b"hello"
    connection.writer.close()
    assert (await here.ended(served)).code == 0


@pytest.mark.asyncio
async def test_memory_and_shared_memory_are_held_to_the_document(here: Running, plan: Plan) -> None:
    eats = "python3 -c 'x = bytearray(300 * 2**20); print(len(x))'"
    shares = "head -c 20M /dev/zero >/dev/shm/x; stat -fc %b*%S /dev/shm"
    greedy, sharing = plan(eats, memory_mb=64), plan(shares, "j2", shm_mb=8)
    await here.engine.start(greedy)
    await here.engine.start(sharing)
    assert (await here.ended(greedy)).reason == "out-of-memory"
    await here.ended(sharing)
    blocks, size = (await here.log(sharing)).split(b"*")
    assert int(blocks) * int(size) == 8 * 2**20


ATTEMPTS = """
import ctypes, json, os, pathlib, socket, sys
address, pid, root = sys.argv[1], int(sys.argv[2]), sys.argv[3]
found = {}
def attempt(name, action):
    try:
        found[name] = repr(action())
    except BaseException as error:
        found[name] = None
pids = lambda: [int(name) for name in os.listdir("/proc") if name.isdigit()]
commands = lambda: [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids()]
attempt("sees the other's processes", lambda: [line for line in commands() if b"victim" in line][0])
attempt("reads its environment by the machine's number", lambda: open(f"/proc/{pid}/environ").read())
attempt("signals it by the machine's number", lambda: os.kill(pid, 0))
seized = lambda: ctypes.CDLL(None).ptrace(0x4206, pid, None, None) == 0 or 1 / 0  # PTRACE_SEIZE; ends with this process
attempt("traces it", seized)
attempt("reads the engine's directory", lambda: os.listdir(root))
attempt("reads the machine's shadow", lambda: [line for line in open("/etc/shadow") if "$" in line][0])
attempt("reaches its server by address", lambda: socket.create_connection((address, 8000), 2))
attempt("reaches its SSH server by address", lambda: socket.create_connection((address, 2222), 2))
attempt("reaches its server by loopback", lambda: socket.create_connection(("127.0.0.1", 8000), 2))
def abstract():
    way = socket.socket(socket.AF_UNIX)
    way.connect("\\0victim")
    return "connected"
attempt("reaches its abstract socket", abstract)
attempt("mounts the machine's disk", lambda: os.system("mount -t proc proc /mnt 2>/dev/null") == 0 or 1 / 0)
def device():
    os.mknod("/tmp/disk", 0o060600, os.makedev(8, 0))
    return open("/tmp/disk", "rb").read(1)
attempt("makes a device of the machine's", device)
attempt("loads a program of the launcher's", lambda: open("/pai/runtime/bin/launch", "r+b"))
attempt("writes its own plan", lambda: open("/pai/plan/command.gz", "r+b"))
attempt("enters the machine's network", lambda: os.open(f"/proc/{pid}/ns/net", os.O_RDONLY))
sockets = ("/run/podman/podman.sock", "/var/run/docker.sock")
attempt("talks to Podman", lambda: [name for name in sockets if os.path.exists(name)][0])
print(json.dumps(found))
"""
FROM_OUTSIDE = {
    "sees the other's processes",
    "reads its environment by the machine's number",
    "signals it by the machine's number",
    "traces it",
    "reads the engine's directory",
    "reaches its server by address",
    "reaches its SSH server by address",
    "enters the machine's network",
}
"""What succeeds for root of the machine, so that it is the container that refuses it."""
VICTIM = """
import socket, time
servers = [socket.create_server(("", port)) for port in (8000, 2222)]
hidden = socket.socket(socket.AF_UNIX)
hidden.bind("\\0victim")
hidden.listen()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.asyncio
async def test_a_user_reaches_nothing_of_anothers_task(here: Running, plan: Plan, root: Path) -> None:
    victim = plan(f"exec python3 -c '{VICTIM}' victim", user="bob", env={"SECRET": "bobs"})
    await here.engine.start(victim)
    await here.said(victim, b"ready")
    [network] = (json.loads(file.read_text()) for file in (root / "networks").iterdir())
    pid = (root / "tasks" / victim.uid / "container" / "init.pid").read_text()
    words = [network["hosts"]["worker-0"], pid, str(root)]
    outside = await asyncio.to_thread(subprocess.check_output, [sys.executable, "-c", ATTEMPTS, *words], timeout=60)
    assert {name for name, how in json.loads(outside).items() if how is not None} >= FROM_OUTSIDE
    # By the file: a command in an argument would find itself among the processes.
    thief = plan(f"cat >t.py <<'END'\n{ATTEMPTS}\nEND\nexec python3 t.py {' '.join(words)}", "j2", user="alice")
    await here.engine.start(thief)
    await here.ended(thief)
    attempts = json.loads(await here.log(thief))
    assert len(attempts) == 16
    assert {name: how for name, how in attempts.items() if how is not None} == {}


@pytest.mark.asyncio
async def test_tasks_of_a_job_have_a_network_of_their_own_which_a_later_job_gets(
    here: Running, plan: Plan, root: Path
) -> None:
    serve = 'python3 -c \'import socket; s = socket.create_server(("", 8000)); s.accept()[0].send(b"peer")\''
    ask = "python3 -c 'import socket; print(socket.create_connection((\"worker-1\", 8000)).recv(9))'"
    asks = plan(f"until {ask} 2>/dev/null; do sleep 0.1; done", job_tasks=2, job_placed=2)
    serves = plan(serve, index=1, job_tasks=2, job_placed=2)
    for each in (asks, serves):
        await here.engine.start(each)
    assert (await here.ended(asks)).code == 0
    assert await here.log(asks) == b"b'peer'\n"
    await here.ended(serves)
    later = [plan("exec sleep 600", name) for name in ("j2", "j3")]
    await here.engine.forget(asks.uid)
    await here.engine.start(later[0])
    assert owners(root) == ["j1", "j2"]
    await here.engine.forget(serves.uid)
    await here.engine.start(later[1])
    assert owners(root) == ["j2", "j3"]


def owners(root: Path) -> list[str]:
    """Jobs that have a network, in order."""
    return sorted(json.loads(file.read_text())["job"] for file in (root / "networks").iterdir())


@pytest.mark.asyncio
async def test_an_image_is_fetched_with_the_documents_login_and_told_meanwhile(
    make: Callable[..., ContainerEngine], plan: Plan, site: PodmanSite, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    with registry(BUILD / "oci") as address:
        trusted = root.parent / "registries.conf"
        trusted.write_text(f'[[registry]]\nlocation = "{address}"\ninsecure = true\n')
        monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(trusted))
        image = f"{address}/team/runtime:1"
        login = RegistryLogin(username=USER, password=SecretStr(PASSWORD), registry_uri=address)
        wrong = login.model_copy(update={"password": SecretStr("guessed")})
        command = "echo ran"
        tasks = [
            plan(command, "j1", image=image, image_login=wrong),
            plan(command, "j2", image=f"{address}/team/nothing:1", image_login=login),
            plan(command, "j3", image=image, image_login=login),
        ]
        async with running(make(), root) as here:
            for task in tasks:
                await here.engine.start(task)
            pulling = await here.watch.state(tasks[2].uid, TaskState.PULLING)
            ends = [await here.ended(task) for task in tasks]
            logs = [await here.log(task, LogStream.ALL) for task in tasks]
        assert pulling.message == f"pulling {image}"
        assert [end.reason for end in ends] == ["image-pull-failed", "image-pull-failed", "exited"]
        assert "unauthorized" in ends[0].message
        assert logs[2].endswith(b"ran\n")
        assert PASSWORD.encode() not in b"".join(logs)
        assert ends[2].code == 0
        for process in psutil.process_iter(["cmdline"]):
            assert PASSWORD not in " ".join(process.info["cmdline"] or [])
        site.podman("rmi", "--force", image)


@pytest.mark.asyncio
async def test_inputs_are_read_with_the_rights_of_the_task(
    make: Callable[..., ContainerEngine], plan: Plan, tmp_path: Path, root: Path
) -> None:
    """The backend is root: what it fetched by itself would be a way to its keys, and to what others have."""
    (tmp_path / "disk" / "alice" / "code").mkdir(parents=True)
    (tmp_path / "disk" / "alice" / "code" / "train.py").write_text("print('trained')")
    (tmp_path / "disk" / "bob").mkdir()
    (tmp_path / "disk" / "bob" / "secret").write_text("bobs")
    (tmp_path / "disk" / "alice" / "link").symlink_to(tmp_path / "disk" / "bob")
    (tmp_path / "disk" / "alice" / "keys").symlink_to(root)
    own = ContainerMount(source=f"{tmp_path}/disk/{{user}}", path="/home/me")

    def fetches(job: str, uri: str) -> TaskPlan:
        return plan("python3 got/train.py; ls -R got", job, inputs=[StagedInput(uri=uri, name="got", max_bytes=10**6)])

    refused = [
        f"{tmp_path}/disk/bob",
        "/home/me/link",
        "/home/me/keys",
        str(root),
        "/root",
        "/etc/ssh",
        "/proc/1/root/root",
    ]
    async with running(make(mounts=[own]), root) as here:
        good = fetches("j0", "/home/me/code")
        bad = [fetches(f"j{1 + number}", uri) for number, uri in enumerate(refused)]
        for each in (good, *bad):
            await here.engine.start(each)
        assert (await here.ended(good)).code == 0, await here.log(good, LogStream.ALL)
        assert (await here.log(good)).startswith(b"trained\n")
        assert {(await here.ended(each)).reason for each in bad} == {"input-failed"}


@pytest.mark.asyncio
async def test_a_mount_is_each_users_own_and_may_be_read_only(
    make: Callable[..., ContainerEngine], plan: Plan, tmp_path: Path, root: Path
) -> None:
    for name in ("alice", "bob", "data"):
        (tmp_path / "disk" / name).mkdir(parents=True)
        (tmp_path / "disk" / name / "whose").write_text(name)
    own = ContainerMount(source=f"{tmp_path}/disk/{{user}}", path="/home/me")
    data = ContainerMount(source=f"{tmp_path}/disk/data", read_only=True)
    task = plan(f"cat /home/me/whose; echo >/home/me/new; echo >{tmp_path}/disk/data/new || echo refused", user="bob")
    async with running(make(mounts=[own, data]), root) as here:
        await here.engine.start(task)
        await here.ended(task)
        assert await here.log(task) == b"bobrefused\n"
    assert (tmp_path / "disk" / "bob" / "new").exists()


CDI = {
    "cdiVersion": "0.5.0",
    "kind": "nvidia.com/gpu",
    "devices": [
        {
            "name": "977",
            "containerEdits": {
                "env": ["PAI_TEST_GPU=977"],
                "deviceNodes": [{"path": "/dev/pai-test-gpu977", "hostPath": "/dev/null"}],
            },
        }
    ],
}


@pytest.fixture
def described_gpu() -> Iterator[None]:
    """A GPU that does not exist, described as NVIDIA's toolkit describes them, beside those that do."""
    spec = Path("/var/run/cdi") / f"jupyter-pai-test-{os.getpid()}.json"
    spec.parent.mkdir(exist_ok=True)
    spec.write_text(json.dumps(CDI))
    yield
    spec.unlink()


@pytest.mark.asyncio
async def test_a_task_gets_the_gpus_of_its_place_by_cdi_and_no_others(
    here: Running, plan: Plan, described_gpu: None
) -> None:
    place = PLACEMENT.model_copy(update={"gpus": (977,), "gpu_type": "TITANX"})
    command = "echo ${PAI_TEST_GPU-none} $NVIDIA_VISIBLE_DEVICES; test -c /dev/pai-test-gpu977 && echo device"
    tasks = [plan(command, "j1", placement=place), plan(command, "j2")]
    unknown = plan(command, "j3", placement=place.model_copy(update={"gpus": (978,)}))
    for each in (*tasks, unknown):
        await here.engine.start(each)
    assert [(await here.ended(each)).reason for each in tasks] == ["exited", "exited"]
    assert [await here.log(each) for each in tasks] == [b"977 none\ndevice\n", b"none none\n"]
    end = await here.ended(unknown)
    assert (end.reason, "nvidia.com/gpu=978" in end.message) == ("start-failed", True)


@pytest.mark.asyncio
async def test_a_container_that_another_client_ends_is_said_to_be(
    here: Running, plan: Plan, root: Path, site: PodmanSite
) -> None:
    stopped, killed, robbed = (plan("echo up; exec sleep 600", f"j{number}") for number in range(1, 4))
    for each in (stopped, killed, robbed):
        await here.engine.start(each)
        await here.said(each, b"up")
    site.podman("stop", "--time=10", container_name(str(root), stopped.uid))
    site.podman("rm", "--force", "--time=0", container_name(str(root), killed.uid))
    conmon = (root / "tasks" / robbed.uid / "container" / "conmon.pid").read_text()
    os.kill(int(conmon), signal.SIGKILL)
    ends = [await here.ended(each) for each in (stopped, killed, robbed)]
    assert [end.reason for end in ends] == ["vanished", "lost", "lost"]
    until(lambda: container_name(str(root), robbed.uid) not in site.podman("ps", "--all"), 20)


@pytest.mark.asyncio
async def test_an_engine_without_podman_says_what_to_install(make: Callable[..., ContainerEngine], plan: Plan) -> None:
    engine = make(podman="podman-that-is-not-here")
    with pytest.raises(EngineError, match="podman-that-is-not-here is not here; install"):
        await engine.start(plan("true"))


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ([], "containers.runtime_image is required"),
        (["--containers-runtime-image", "x", "--containers-podman", "podman-that-is-not-here"], "install the package"),
    ],
)
def test_a_backend_that_lacks_what_containers_need_does_not_start(given: list[str], fault: str) -> None:
    words = [sys.executable, "-P", "-m", "pai_backend", "serve", "--engine-kind", "containers", *given]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[3] / "backend")
    assert done.returncode == 2
    assert fault in done.stderr
