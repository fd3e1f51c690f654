"""Write the Grafana dashboard of the chart: ``python -m tools.dashboard``; with ``--check`` fail when it is stale."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

PLACE: Final = Path(__file__).resolve().parents[1] / "deploy" / "helm" / "jupyter-pai" / "files" / "dashboard.json"
WIDTH, HEIGHT = 12, 8
"""Of a panel, in Grafana's grid of 24 columns."""

PANELS: Final[tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]] = (
    (
        "GPUs by virtual cluster",
        "short",
        (("sum by (virtual_cluster, state) (pai_gpus)", "{{virtual_cluster}} {{state}}"),),
    ),
    ("GPUs of nodes", "short", (("sum by (gpu_type, state) (pai_node_gpus)", "{{gpu_type}} {{state}}"),)),
    ("GPUs by user", "short", (("topk(15, sum by (user) (pai_user_gpus))", "{{user}}"),)),
    ("Idle GPUs by user", "short", (("topk(15, sum by (user) (pai_idle_gpus) > 0)", "{{user}}"),)),
    (
        "Jobs that wait and run",
        "short",
        (
            ("sum by (virtual_cluster) (pai_queue_jobs)", "{{virtual_cluster}} waiting"),
            ("sum by (virtual_cluster) (pai_running_jobs)", "{{virtual_cluster}} running"),
        ),
    ),
    (
        "Waiting time of jobs that started",
        "s",
        tuple(
            (
                f"histogram_quantile({quantile}, sum by (le) (rate(pai_job_wait_seconds_bucket[1h])))",
                f"p{round(quantile * 100)}",
            )
            for quantile in (0.5, 0.95)
        ),
    ),
    ("Oldest waiting job", "s", (("max by (virtual_cluster) (pai_queue_oldest_seconds)", "{{virtual_cluster}}"),)),
    ("Jobs that ended", "short", (("sum by (state) (increase(pai_job_ends_total[1h]))", "{{state}}"),)),
    ("Tasks that ended, by reason", "short", (("sum by (reason) (increase(pai_task_exits_total[1h]))", "{{reason}}"),)),
    ("Nodes", "short", (("sum by (state) (pai_nodes_by_state)", "{{state}}"),)),
    (
        "API: time to answer",
        "s",
        (("histogram_quantile(0.95, sum by (le) (rate(pai_api_request_seconds_bucket[5m])))", "p95"),),
    ),
    (
        "SSH logins",
        "short",
        (("sum(increase(pai_gateway_logins_total[5m]))", "logins"), ("sum(pai_gateway_sessions)", "open")),
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": title,
            "datasource": {"type": "prometheus", "uid": "${source}"},
            "gridPos": {"x": number % 2 * WIDTH, "y": number // 2 * HEIGHT, "w": WIDTH, "h": HEIGHT},
            "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
            "targets": [
                {"refId": chr(65 + place), "expr": expr, "legendFormat": legend}
                for place, (expr, legend) in enumerate(targets)
            ],
        }
        for number, (title, unit, targets) in enumerate(PANELS)
    ]
    source = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "uid": "jupyter-pai",
        "title": "jupyter-pai",
        "tags": ["jupyter-pai"],
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [source]},
        "panels": panels,
    }


def main() -> int:
    """Write it, or compare it."""
    text = json.dumps(dashboard(), indent=2) + "\n"
    if "--check" in sys.argv[1:]:
        return int(not PLACE.is_file() or PLACE.read_text(encoding="utf-8") != text)
    PLACE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
