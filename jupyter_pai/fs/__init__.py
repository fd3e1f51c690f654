"""Files of storages from where the user is: ``pai upload``, ``pai fs`` and their magics.

``places`` tells what a word means, ``backend_files`` are the backend's calls, ``upload`` and ``download`` move files
through them, ``direct`` goes to a storage without the backend. Nothing here prints; progress is a callback.
May import ``pai_backend.storage`` where a storage is reached directly, and only then: it brings fsspec along.
"""
