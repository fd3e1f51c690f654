"""Building the runtime bundle: what is put into every task's container, whatever its image.

``python -m backend.runtime.bundle`` in the root of the checkout, or ``make runtime``. Start reading in ``tree``: what
is in the bundle. ``debian`` knows what comes from this machine's packages, ``image`` writes images. Needs Go, gcc,
patchelf and the packages in ``debian.PROGRAMS``; nothing of ours, and no container tool. ``docs/runtime.md`` tells why.
"""
