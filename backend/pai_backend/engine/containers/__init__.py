"""Tasks as containers of this machine, by Podman: what a server without Kubernetes runs several people's jobs with.

A task is one of the local engine's, with its directory, its shim and its records, but its command runs in a container:
the shim lets Podman make it, and the container's keeper (conmon) becomes its child. In it are the launcher and the SSH
server that pods have, too. ``docs/engine-containers.md`` describes it.
"""
