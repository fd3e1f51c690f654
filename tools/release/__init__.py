"""What ``make release`` makes from a commit: distributions, chart, bill of materials, sums and provenance.

The same commit gives the same bytes: times are those of ``SOURCE_DATE_EPOCH``, or of the commit. Nothing is uploaded
from here; ``.github/workflows/release.yml`` does that.
"""
