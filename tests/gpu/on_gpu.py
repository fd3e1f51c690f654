"""A program of the tests' tasks, ``on_gpu.py sees|works|rests``: speaks to the GPU by the driver's own library alone.

``sees`` prints the names of all GPUs that it has. ``works`` keeps the first one busy and ``rests`` only holds memory of
it; both say so and go on for ever. It needs Python's standard library and ``libcuda.so.1``, so any image runs it.
Source: the CUDA driver API and PTX ISA 6.0 of NVIDIA's documentation.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from typing import Any

HELD_BYTES = 2 << 30
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
BLOCKS, THREADS, ROUNDS = 2048, 256, 200_000
PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry work(.param .u64 where, .param .u32 rounds)
{
    .reg .pred more;
    .reg .u32 left;
    .reg .f32 number;
    .reg .u64 place;
    ld.param.u64 place, [where];
    ld.param.u32 left, [rounds];
    cvta.to.global.u64 place, place;
    mov.f32 number, 0f3F800000;
again:
    fma.rn.f32 number, number, 0f3F7FFFFF, 0f3F000000;
    sub.u32 left, left, 1;
    setp.ne.u32 more, left, 0;
    @more bra again;
    st.global.f32 [place], number;
    ret;
}
"""


def library() -> Any:
    """The driver's library, or nothing where the task has none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def call(cuda: Any, name: str, *arguments: object) -> None:
    """Call a function of it. Raises SystemExit with the driver's number for what went wrong."""
    if (result := getattr(cuda, name)(*arguments)) != 0:
        raise SystemExit(f"{name}: {result}")


def names() -> list[str]:
    """The names of all GPUs."""
    cuda = library()
    if cuda is None or (began := cuda.cuInit(0)) == NO_DEVICE:
        return []
    assert began == 0, began
    count = ctypes.c_int()
    call(cuda, "cuDeviceGetCount", ctypes.byref(count))
    found = []
    for number in range(count.value):
        name = ctypes.create_string_buffer(100)
        call(cuda, "cuDeviceGetName", name, len(name), number)
        found.append(name.value.decode())
    return found


def memory(size: int) -> tuple[Any, ctypes.c_uint64]:
    """The driver with the first GPU's context, and that much memory of it."""
    cuda, context, place = library(), ctypes.c_void_p(), ctypes.c_uint64()
    call(cuda, "cuInit", 0)
    call(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call(cuda, "cuCtxSetCurrent", context)
    call(cuda, "cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
    return cuda, place


def work() -> None:
    """Compute for ever."""
    cuda, place = memory(HELD_BYTES // 8)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call(cuda, "cuModuleLoadData", ctypes.byref(module), PTX)
    call(cuda, "cuModuleGetFunction", ctypes.byref(function), module, b"work")
    rounds = ctypes.c_uint32(ROUNDS)
    given = (ctypes.c_void_p * 2)(ctypes.addressof(place), ctypes.addressof(rounds))
    print("WORKS", flush=True)
    while True:
        call(cuda, "cuLaunchKernel", function, BLOCKS, 1, 1, THREADS, 1, 1, 0, None, given, None)
        call(cuda, "cuCtxSynchronize")


def main(what: str) -> None:
    """Do one of the three."""
    if what == "sees":
        print("SEES " + json.dumps(names()), flush=True)
    elif what == "works":
        work()
    else:
        held = memory(HELD_BYTES)
        print("RESTS", flush=True)
        threading.Event().wait()
        del held


if __name__ == "__main__":
    main(sys.argv[1])
