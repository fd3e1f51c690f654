"""Files, sockets and logs of the operating system, as the processes of a backend use them.

Standard library only: nothing here knows of jobs.
"""
