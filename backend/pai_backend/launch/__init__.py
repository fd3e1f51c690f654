"""What a task is given when it starts: environment variables, job info, directories, and the plan for an engine.

Pure: from values to values; may import ``pai_backend.model`` alone; no clock, no file, no network.
``plan`` puts it together, start reading there; ``shared`` and ``environment`` are the variables of a job and
of one task, ``room`` how many of them a process can be given, ``parts`` what is made once for a whole job.
"""
