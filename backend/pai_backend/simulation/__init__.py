"""What if? A trace is replayed through the real queue and the real cells. Pure: the clock is the trace's.

    report = replay(read_config(config), read_trace(trace), Rules(policy))
    report.utilisation, report.vcs[0].waits.p95_s        # figures
    picture(report)                                      # an SVG: who used the GPUs, who waited for them

``trace`` has the words, ``reading`` reads them, ``fitting`` holds them against the configuration, ``replay`` plays,
``life`` follows one group, ``meter`` sums up what is used while time passes, ``report`` is the answer, ``summing``
makes it and ``picture`` draws it. ``command`` is ``python -m pai_backend simulate``. docs/scheduling.md, "Simulating",
describes the format and what is left out.
"""

from pai_backend.simulation.picture import picture
from pai_backend.simulation.reading import read_trace
from pai_backend.simulation.replay import Rules, replay
from pai_backend.simulation.report import Comparison, Report
from pai_backend.simulation.trace import Arrival, Trace

__all__ = ["Arrival", "Comparison", "Report", "Rules", "Trace", "picture", "read_trace", "replay"]
