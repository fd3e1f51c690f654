"""The processes of a backend: the supervisor, what each process is made of, and the roles that it plays.

Start reading at ``supervisor.py``, which is small and of the standard library only, then ``app.py``. No rule of jobs is
here: roles put together what other rooms have.
"""
