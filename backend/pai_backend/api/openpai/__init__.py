"""OpenPAI's shapes: what its REST interface answers, so that programs written for it work unchanged.

``wire`` has the shapes, ``states`` the words, ``jobs`` and ``events`` make them from the model; all pure. Handlers
choose between these and our own (``pai_backend.api.wire``) by the request's ``Accept``. Start with ``jobs``.
Sources: the rest-server of microsoft/pai v1.8 for REST v2 and of v0.14 for REST v1.
"""
