"""The counter of the out-of-memory killer, wherever a system keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.engine.local.shim.supervise import oom_kills

EVENTS = "low 0\nhigh 0\nmax 12\noom 3\noom_kill {}\noom_group_kill 0\n"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"
UNIFIED = "0::/user.slice/a b.scope\n"
HYBRID = "4:cpu,memory:/box\n1:name=systemd:/\n0::/init\n"


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        (UNIFIED, {"user.slice/a b.scope/memory.events": EVENTS.format(2)}, 2),
        (
            UNIFIED,
            {
                "user.slice/a b.scope/memory.events": EVENTS.format(5),
                "user.slice/a b.scope/memory.events.local": EVENTS.format(1),
            },
            1,
        ),
        (UNIFIED, {"memory.events": EVENTS.format(4)}, 4),
        ("0::/\n", {"memory.events": EVENTS.format(7)}, 7),
        (HYBRID, {"memory/box/memory.oom_control": CONTROL.format(3)}, 3),
        (HYBRID, {"memory/memory.oom_control": CONTROL.format(6)}, 6),
        (HYBRID, {"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}, None),
        (UNIFIED, {}, None),
        ("nonsense\n", {"memory.events": EVENTS.format(1)}, None),
        (None, {"memory.events": EVENTS.format(1)}, None),
    ],
)
def test_the_counter_is_found_or_not_known(
    tmp_path: Path, membership: str | None, files: dict[str, str], expected: int | None
) -> None:
    for name, text in files.items():
        path = tmp_path / "mount" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if membership is not None:
        (tmp_path / "cgroup").write_text(membership)
    assert oom_kills(str(tmp_path / "mount"), str(tmp_path / "cgroup")) == expected
