"""The ``nvidia-smi`` of a task whose GPUs are simulated: it looks like the real one and says that it is not.

Run as ``python -I -S simulated_smi.py TYPE INDEX,INDEX MEMORY_MB [arguments of nvidia-smi]``. It knows
the plain call, ``-L``, and ``--query-gpu=FIELDS --format=csv[,noheader][,nounits]``.
"""

import sys

_WIDTH = 89


def table(gpu_type: str, indices: list[str], memory_mb: int) -> str:
    """The plain call's table."""
    rule = "+" + "-" * _WIDTH + "+"

    def row(text: str) -> str:
        return f"| {text:<{_WIDTH - 2}} |"

    lines = [rule, row("NVIDIA-SMI (SIMULATED by jupyter-pai)   Driver Version: none   CUDA Version: none"), rule]
    lines.append(row(f"{'GPU':>3}  {'Name':<40} {'Memory-Usage':>22}  {'GPU-Util':>9}"))
    lines.append(rule.replace("-", "="))
    for index in indices:
        memory = f"0MiB / {memory_mb}MiB"
        lines.append(row(f"{index:>3}  {gpu_type + ' (SIMULATED)':<40} {memory:>22}  {'0%':>9}"))
    lines += [rule, row("No GPU is behind this: the node is simulated and computes on the CPU only."), rule]
    return "\n".join(lines)


def listing(gpu_type: str, indices: list[str]) -> str:
    """The answer to ``-L``."""
    return "\n".join(f"GPU {index}: {gpu_type} (SIMULATED) (UUID: GPU-simulated-{index})" for index in indices)


def query(fields: list[str], form: list[str], gpu_type: str, indices: list[str], memory_mb: int) -> str:
    """The answer to ``--query-gpu``. Raises KeyError for a field that is not simulated."""
    unit = "" if "nounits" in form else " MiB"
    lines = [] if "noheader" in form else [", ".join(f + " [MiB]" * f.startswith("memory.") for f in fields)]
    for index in indices:
        values = {
            "name": f"{gpu_type} (SIMULATED)",
            "gpu_name": f"{gpu_type} (SIMULATED)",
            "index": index,
            "uuid": f"GPU-simulated-{index}",
            "gpu_uuid": f"GPU-simulated-{index}",
            "count": str(len(indices)),
            "driver_version": "simulated",
            "memory.total": f"{memory_mb}{unit}",
            "memory.used": f"0{unit}",
            "memory.free": f"{memory_mb}{unit}",
            "utilization.gpu": "0" if "nounits" in form else "0 %",
        }
        lines.append(", ".join(values[field] for field in fields))
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Answer one call; 2 with a sentence on standard error for what is not simulated."""
    gpu_type, indices, memory_mb = argv[0], argv[1].split(","), int(argv[2])
    options = dict(part.partition("=")[::2] for part in argv[3:])
    if not options:
        answer = table(gpu_type, indices, memory_mb)
    elif set(options) <= {"-L", "--list-gpus"}:
        answer = listing(gpu_type, indices)
    elif set(options) == {"--query-gpu", "--format"} and options["--format"].split(",")[0] == "csv":
        fields = [field.strip() for field in options["--query-gpu"].split(",")]
        try:
            answer = query(fields, options["--format"].split(","), gpu_type, indices, memory_mb)
        except KeyError as exc:
            sys.stderr.write(f"nvidia-smi (SIMULATED): the field {exc} is not simulated\n")
            return 2
    else:
        sys.stderr.write(
            "nvidia-smi (SIMULATED): only the plain call, -L and --query-gpu=... --format=csv are simulated\n"
        )
        return 2
    sys.stdout.write(answer + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
