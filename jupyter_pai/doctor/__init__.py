"""Which programs will work with a running task, found out by doing what they do.

``probes`` and ``forwarding`` replay the protocol steps of each program with this machine's OpenSSH, side by
side and bounded in time; ``clients`` judges what was seen, purely; ``findings`` has the words. Start reading in
``examining``. Nothing here may leave a file or process behind in the task.
"""
