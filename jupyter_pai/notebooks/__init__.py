"""Notebooks and cells as jobs: what is sent (``packing``), what runs it in the task (``execute``), what comes back
(``results``).

``execute`` is sent as it is and needs nothing of this package. ADR 0044 says why it is one file.
"""
