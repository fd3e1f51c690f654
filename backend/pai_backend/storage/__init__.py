"""Job inputs and outputs wherever they are: paths of this machine, HDFS, and whatever else fsspec knows.

May import ``pai_backend.model``; never the store, an engine or a face. What reads or writes blocks, so it is
called in a thread or in a process of its own. ``stage`` runs inside a task, so the modules it needs import
little, and fsspec only for what is not a path of this machine.

Start with ``uris`` (how a place is written) and ``stage`` (what happens before a task's command).
"""
