"""What a task is given when it starts: environment variables, job info, directories, and the plan for an engine.

Pure: from values to values; may import ``pai_backend.model`` alone; no clock, no file, no network.
``plan`` puts it together, start reading there; ``directories`` has the variables of a job, ``room`` says how many of
them a process can be given, ``job_info`` is what is made once for a whole job.
"""
