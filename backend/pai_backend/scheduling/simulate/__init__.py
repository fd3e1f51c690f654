"""What if? A trace of arrivals is replayed through the real queue and the real cells. Pure: the clock is the trace's.

    report = replay(read_config(config), read_trace(trace))
    report.utilisation, report.vcs[0].waits.p95_s        # figures
    picture(report)                                      # an SVG: who used the GPUs, who waited for them

``trace`` reads, ``replay`` plays, ``meter`` sums up what is used while time passes, ``report`` is the answer,
``picture`` draws it. docs/scheduling.md, "Simulating", describes the format and what is left out.
"""

from pai_backend.scheduling.simulate.picture import picture
from pai_backend.scheduling.simulate.replay import replay
from pai_backend.scheduling.simulate.report import Report
from pai_backend.scheduling.simulate.trace import Arrival, read_trace

__all__ = ["Arrival", "Report", "picture", "read_trace", "replay"]
