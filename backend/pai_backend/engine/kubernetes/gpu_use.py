"""How much the GPUs of a pod work, as ``nvidia-smi`` tells in its container, where it sees exactly those.

The container toolkit of NVIDIA puts that program into every container that gets GPUs. It is run by the bash of the
runtime bundle, since an image may have no shell; and nothing that it prints is ever quoted: the author of the image may
have put another program in its place. Source: nvidia-smi(1), "SELECTIVE QUERY OPTIONS" and "RETURN VALUE"; NVIDIA
Container Toolkit, "Driver Capabilities".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pai_backend.engine.base import EngineError, GpuUse, GpuWork
from pai_backend.engine.bundle import layout
from pai_backend.engine.kubernetes.channels import CommandExit, execute
from pai_backend.engine.kubernetes.client import ApiClient
from pai_backend.engine.kubernetes.failures import ApiForbidden, ApiNotFound, ClusterError, Malformed, Unreachable

TELL_S: Final = 8  # for the program itself: without persistence mode it loads the driver first
LIMIT_S: Final = 10.0  # with the way there and back
OUTPUT_MAX: Final = 4096  # bytes; a GPU needs 16
LATE, TOO_MUCH, MISSING = 124, 125, frozenset({126, 127})
WHOLE: Final = frozenset({0, 14})  # 14 warns of a GPU's memory of its faults, and all is told (NVIDIA/gpu-operator#285)

# Where it is where PATH does not say: with the container toolkit, on GKE, in Docker Desktop on Windows. GKE's needs its
# library named, too. A program that hangs or never stops talking is killed, and does not stay behind in the container.
# Its exit code comes as a last line, of five bytes at most with what ends the reading: a `wait` for a process
# substitution says 255 now and then (bash 5.2, 1 in 600).
_SCRIPT: Final = """
export PATH="${PATH:+$PATH:}/usr/bin:/usr/local/nvidia/bin:/usr/lib/wsl/lib"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64"
ask() {
  trap 'kill -KILL $!; exit' TERM
  nvidia-smi --query-gpu=index,utilization.gpu,memory.used --format=csv,noheader,nounits &
  wait $!
  printf '\\n%d' $?
}
exec 3< <(ask)
IFS= read -r -N $(($2 + 5)) -t "$1" -u 3 said
case $? in
  0) kill -TERM $!; exit 125 ;;
  1) ;;
  *) kill -TERM $!; exit 124 ;;
esac
printf %s "${said%$'\\n'*}"
exit "${said##*$'\\n'}"
"""

_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        LATE: f"nvidia-smi did not answer within {TELL_S} s",
        TOO_MUCH: f"nvidia-smi says more than {OUTPUT_MAX} bytes, which NVIDIA's does not",
        **dict.fromkeys(
            MISSING,
            "there is no nvidia-smi in its container; GPUs of NVIDIA bring it along, unless the image leaves `utility` "
            "out of NVIDIA_DRIVER_CAPABILITIES",
        ),
        4: "nvidia-smi is not permitted to ask the driver",
        6: "nvidia-smi finds no GPU in its container",
        9: "nvidia-smi finds no driver of NVIDIA",
        12: "nvidia-smi does not find the driver's library",
        15: "nvidia-smi finds a GPU that has fallen off the bus, or cannot be reached otherwise",
        18: "the driver's library in its container is of another version than the driver: it was replaced meanwhile",
    }
)
_SILENT: Final = r"N/A|\[[^][]{1,40}\]"
_LINE: Final = re.compile(
    rf"\s*\d{{1,4}}\s*,\s*(?:(\d{{1,3}})|{_SILENT})\s*(?:,\s*(?:(\d{{1,9}})|{_SILENT})\s*)?", re.ASCII
)


def command(bash: str = layout.BASH, tell_s: float = TELL_S) -> tuple[str, ...]:
    """What is run in the container."""
    return bash, "-c", _SCRIPT, "gpu-use", str(tell_s), str(OUTPUT_MAX)


def told(ran: CommandExit) -> GpuUse:
    """The GPU use that the program printed. Raises EngineError with the reason.

    Lines of another form are remarks of the driver, such as on memory errors. For a GPU in MIG mode it writes ``[N/A]``
    instead of a number.
    """
    found = [match for line in ran.output.splitlines() if (match := _LINE.fullmatch(line))]
    gpus = tuple(GpuWork(*(int(text) if text else None for text in match.groups())) for match in found)
    numbers = [work.percent for work in gpus if work.percent is not None]
    failed = _failure(ran, any_line=bool(found))
    if any(number > 100 for number in numbers):
        numbers, failed = [], failed or "nvidia-smi reports more than 100 percent"
    silent = "NVIDIA's driver does not tell how much a GPU of it works, as it does not for those in MIG mode"
    unread = failed or (silent if len(numbers) < len(found) else "")
    if not numbers:
        raise EngineError(unread)
    return GpuUse(max(numbers), unread, gpus)


def _failure(ran: CommandExit, *, any_line: bool) -> str:
    """Why what it told is not all; empty when it is."""
    if ran.code is None:
        return "no program can be run in its container now"
    if ran.code not in WHOLE:
        return _WORDS.get(ran.code, f"nvidia-smi failed with exit code {ran.code}")
    return "" if any_line else "nvidia-smi reports no GPU"


async def gpu_use(client: ApiClient, pod_path: str) -> GpuUse:
    """How much the GPUs of the pod's task work now. Raises EngineError with the reason when that cannot be known."""
    try:
        return told(await execute(client, pod_path, layout.TASK_CONTAINER, command(), LIMIT_S))
    except ApiForbidden:
        words = "the backend may not run programs in its pod: the role needs `get` and `create` of pods/exec"
        raise EngineError(words) from None
    except ApiNotFound:
        raise EngineError("its pod is gone") from None
    except Malformed:
        raise EngineError("the program in its container is not nvidia-smi") from None
    except Unreachable:
        raise EngineError("its container does not answer") from None
    except ClusterError:
        raise EngineError("the cluster runs no program in its container now") from None
