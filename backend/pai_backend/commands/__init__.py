"""What an administrator runs by ``python -m pai_backend COMMAND``: one module a command, but for ``serve``.

Nothing imports a command but ``__main__``, which loads only the one that is asked for.
"""
