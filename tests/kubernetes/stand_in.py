"""An image in the place of the runtime bundle: the launcher's contract in shell, by the busybox that comes with it.

It follows docs/engine-kubernetes.md as far as the engine's tests look: in the place of the SSH server something says
its name, and /etc/hosts is left alone. Where the bundle's
own image is to be tested instead, ``PAI_TEST_RUNTIME_IMAGE`` names it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.kubernetes import fixtures
from tests.kubernetes.cluster import images, slots
from tests.kubernetes.cluster.cluster import Cluster, joined
from tests.kubernetes.fixtures import Kubernetes

GIVEN = "PAI_TEST_RUNTIME_IMAGE"
REFERENCE = "localhost/jupyter-pai/runtime-stand-in:1"

INSTALL = """#!/runtime/bin/busybox sh
set -e
/runtime/bin/busybox cp -r /runtime/bin /runtime/commands "$1/"
: >"$2/hosts"
/runtime/bin/busybox chmod 666 "$2/hosts"
"""

BASH = """#!/pai/runtime/bin/busybox sh
exec /pai/runtime/bin/busybox sh "$@"
"""

BANNER = """#!/pai/runtime/bin/busybox sh
printf 'SSH-2.0-stand-in\\r\\n'
"""

LAUNCH = r"""#!/pai/runtime/bin/busybox sh
b=/pai/runtime/bin/busybox
case "$1" in
--is-running) [ ! -e /pai/state/exit.json ]; exit ;;
esac
unpack() {
    seen=$($b readlink /pai/job/..data)
    $b gunzip -c /pai/job/job-info.json.gz >/pai/state/.job-info && $b mv /pai/state/.job-info /pai/state/job-info.json
}
option() { $b tr '\0' '\n' </pai/plan/options | $b sed -n "s/^$1=//p"; }
ended() {  # code signal reason message started
    printf '{"version":1,"code":%s,"signal":%s,"reason":"%s","message":"%s","causer":"user","started":%s,"at":%s}' \
        "$1" "$2" "$3" "$4" "$5" $($b date +%s) >/pai/state/.exit.json
    $b cp /pai/state/.exit.json /dev/termination-log
    $b mv /pai/state/.exit.json /pai/state/exit.json
}
unpack
for directory in $(option directory); do
    said=$($b mkdir -p "$directory" 2>&1) || { ended null null input-failed "$said" null; exit 255; }
done
$b gunzip -c /pai/plan/command.gz >/pai/state/command
$b gunzip -c /pai/plan/environ.gz >/pai/state/environ
if [ $($b wc -c </pai/state/command) -ge 131072 ]; then
    ended null null start-failed "its command is too long" null
    exit 255
fi
port=$(option ssh_port)
[ -z "$port" ] || $b nc -ll -p "$port" -e /pai/runtime/bin/banner 2>/dev/null &
started=$($b date +%s)
$b cat >/pai/state/run <<'END'
b=/pai/runtime/bin/busybox
while IFS= read -r -d '' entry; do export "$entry"; done </pai/state/environ
exec bash -c "$($b cat /pai/state/command)"
END
$b setsid $b sh /pai/state/run </dev/null &
child=$!
trap '[ -n "$stopped" ] || { stopped=1; kill -TERM -$child; }' TERM
while :; do
    [ "$($b readlink /pai/job/..data)" = "$seen" ] || unpack
    $b sleep 0.2
done &
keeper=$!
wait $child; status=$?
while kill -0 $child 2>/dev/null; do wait $child; status=$?; done
kill -KILL -$child 2>/dev/null
for look in 1 2 3 4 5 6 7 8 9; do  # the dead count as well, whom this shell does not reap: not for ever
    kill -0 -$child 2>/dev/null || break
    $b sleep 0.1
done
kill -KILL $keeper
code=$status signal=null reason=exited
if [ $status -gt 128 ]; then code=null signal=$((status - 128)) reason=signalled; fi
if [ -n "$stopped" ]; then reason=stopped; fi
ended $code $signal $reason "" $started
if [ $status != 0 ] && [ -z "$stopped" ] && [ "$(option keep)" = 1 ]; then
    trap 'exit $status' TERM
    $b sleep 3600 & wait
fi
exit $status
"""


def archive_of(place: Path) -> Path:
    """An archive of the image, in a directory."""
    with tempfile.TemporaryDirectory(dir=place) as draft:
        folder, commands = Path(draft) / "runtime" / "bin", Path(draft) / "runtime" / "commands"
        folder.mkdir(parents=True)
        commands.mkdir()
        shutil.copy(str(shutil.which("busybox")), folder / "busybox")
        for name, text in (("install", INSTALL), ("launch", LAUNCH), ("../commands/bash", BASH), ("banner", BANNER)):
            (folder / name).write_text(text)
        for path in (*folder.iterdir(), *commands.iterdir()):
            path.chmod(0o755)
        Path(draft).chmod(0o755)
        made = place / "runtime-stand-in.tar"
        images.pack(Path(draft), REFERENCE, ("/runtime/bin/install",), made)
    return made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def runtime_image(
    kubernetes: Kubernetes, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """The image with the launcher: the one that is named, or the stand-in, loaded onto our own nodes."""
    if given():
        yield given()
        return
    archive = await asyncio.to_thread(archive_of, tmp_path_factory.mktemp("runtime"))
    if not os.environ.get(fixtures.GIVEN):
        await _load(request.getfixturevalue("testbed"), archive)
        yield REFERENCE
    elif kubernetes.kubeconfig.parent.parent == slots.ROOT:
        async with joined(int(kubernetes.kubeconfig.parent.name)) as cluster:
            await _load(cluster, archive)
            yield REFERENCE
    else:
        pytest.skip(f"no image with a launcher for this cluster; name one in {GIVEN}")


async def _load(cluster: Cluster, archive: Path) -> None:
    for node in cluster.nodes.values():
        await node.load_image(archive)


def given() -> str:
    """The image to test with instead, empty for none."""
    return os.environ.get(GIVEN, "")
