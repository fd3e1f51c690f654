"""A real Kubernetes cluster for tests and for play, on one machine, without Docker and without the Internet.

The control plane runs as plain processes, each node in namespaces of its own with real containerd and kubelet; hundreds
more may be simulated by kwok. Needs root on Linux, and what ``tools/system-packages kubernetes`` installs; the programs
are built by ``tools/kubernetes-binaries``. Nothing of jupyter-pai is imported here. Start reading in ``cluster.py``.
"""
