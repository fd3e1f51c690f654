"""helm as an administrator runs it, with the chart of this checkout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes.cluster.commands import Ended, attempt, run
from tests.kubernetes.cluster.kubectl import Json

CHART = Path(__file__).resolve().parents[3] / "deploy" / "helm" / "jupyter-pai"
VERSION = "1.34.4"  # of Kubernetes, which helm asks a cluster for when there is one
NEEDED: dict[str, Any] = {
    "image": {"repository": "registry.example.com/jupyter-pai", "tag": "1"},
    "runtimeImage": "registry.example.com/jupyter-pai-runtime:1",
    "secretName": "jupyter-pai",
}
"""The least that has to be set."""


class Helm:
    """One helm, the chart, and a directory for files of values."""

    def __init__(self, program: Path, place: Path, kubeconfig: Path | None = None) -> None:
        self._program, self._place, self._kubeconfig = program, place, kubeconfig

    async def lint(self, values: Mapping[str, Any]) -> Ended:
        """Lint the chart with these values, strictly."""
        return await attempt(self._program, "lint", "--strict", CHART, *self._values(values))

    async def template(self, values: Mapping[str, Any], namespace: str = "pai", kinds: Sequence[str] = ()) -> Ended:
        """Render it, whatever comes of it, for a cluster that has these kinds besides its own."""
        words: Sequence[str | Path] = ("template", "pai", CHART, "--namespace", namespace, "--kube-version", VERSION)
        also = [f"--api-versions={each}" for each in kinds]
        return await attempt(self._program, *words, *also, *self._values(values))

    async def objects(self, values: Mapping[str, Any], namespace: str = "pai", kinds: Sequence[str] = ()) -> list[Json]:
        """The objects of it. Fails when it does not render."""
        ended = await self.template(values, namespace, kinds)
        assert ended.code == 0, ended.err
        return [each for each in yaml.safe_load_all(ended.out) if each is not None]

    async def __call__(self, *words: str, values: Mapping[str, Any] | None = None, limit_s: float = 300.0) -> str:
        """What another command prints, on the cluster. Raises CommandFailed."""
        where = [f"--kubeconfig={self._kubeconfig}"] if self._kubeconfig is not None else []
        given = self._values(values) if values is not None else []
        return await run(self._program, *where, *words, *given, limit_s=limit_s)

    def _values(self, values: Mapping[str, Any]) -> list[str | Path]:
        file = self._place / "values.yaml"
        file.write_text(yaml.safe_dump(dict(values)))
        return ["--values", file]
