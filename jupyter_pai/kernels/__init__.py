"""Kernels that run in tasks: the provisioner for ``jupyter_client``, kernel specs of running jobs, and reattachment.

``task`` is what is sent into a task. Nothing here imports ``pai_backend`` or the labextension's handlers of jobs.
"""
