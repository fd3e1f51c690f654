"""Which benches a name on the command line means, and that each has floors."""

from __future__ import annotations

import pytest

from bench import __main__ as program
from bench.figures import CannotRun, Figure, load_floors


def test_a_name_means_itself_and_what_goes_on_with_a_dash() -> None:
    assert program.chosen("nodes") == ["nodes"]
    assert program.chosen("kubernetes") == [
        "kubernetes",
        "kubernetes-reacting",
        "kubernetes-scale",
        "kubernetes-starting",
    ]
    assert program.chosen(None) == sorted(program.BENCHES)


def test_every_bench_has_floors_and_every_floor_a_bench() -> None:
    assert load_floors().keys() == program.BENCHES.keys()


async def _lacking() -> list[Figure]:
    raise CannotRun("no Kubernetes cluster can run here; missing: root")


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_a_bench_that_cannot_run_here_is_skipped_with_the_reason_but_not_in_ci(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str, code: int
) -> None:
    monkeypatch.setattr(program, "BENCHES", {"nodes": _lacking})
    monkeypatch.setattr("sys.argv", ["bench", "nodes"])
    monkeypatch.setenv("CI", ci)
    assert program.main() == code
    assert "SKIP nodes: no Kubernetes cluster can run here; missing: root" in capsys.readouterr().err
