"""The keys about the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.config.files import ConfigError
from pai_backend.config.load import load


def test_a_kubeconfig_is_found_from_wherever_the_backend_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["--kubernetes-kubeconfig", "lab.yaml", "--kubernetes-context", "lab", "--kubernetes-namespace", "team-a"]
    kubernetes = load(given).settings.kubernetes
    assert kubernetes.kubeconfig == tmp_path / "lab.yaml"
    assert (kubernetes.context, kubernetes.namespace, kubernetes.requests_at_once) == ("lab", "team-a", 32)
    assert load([]).settings.kubernetes.kubeconfig is None


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--kubernetes-namespace", "Team"),
        ("--kubernetes-namespace", "a_b"),
        ("--kubernetes-namespace", "-a"),
        ("--kubernetes-namespace", "a" * 64),
        ("--kubernetes-context", ""),
        ("--kubernetes-requests-at-once", "0"),
    ],
)
def test_what_no_cluster_can_have_is_refused_with_its_place(flag: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{flag}: kubernetes"):
        load([flag, value] if not value.startswith("-") else [f"{flag}={value}"])
