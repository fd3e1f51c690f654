"""``make demo-lab``: the seeds' experiments are seen as they must be, and drawn."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_lab_is_seen_and_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "lab.svg"
    command = [sys.executable, str(ROOT / "examples" / "demo_lab.py"), "--picture", str(picture), "--seconds", "0.5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    seen = [line.rpartition("s  ")[2] for line in lines if line.endswith(": as it must be")]
    names = ["VC safety", "Priority", "Opportunistic", "Gang", "Incremental", "4 GPUs"]
    assert seen == [f"{name}: as it must be" for name in names]
    assert any("4 SKUs exceed the maximum of 2" in line for line in lines)
    drawn = picture.read_text(encoding="utf-8")
    assert len(re.findall(r"<title>", drawn)) >= 15
    assert "preempted</title>" in drawn
