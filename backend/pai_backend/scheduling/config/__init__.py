"""The cluster's configuration: HiveD's schema read, checked, derived from nodes and written.

Start at :func:`~pai_backend.scheduling.config.read.read_config`; the values are in ``model``. Nothing here
knows of groups or placements.
"""
