"""Reading job documents: text in, :class:`~pai_backend.model.spec.JobSpec` out, or every fault with its place.

Pure: no clock, no file, no network, no asyncio; may import ``pai_backend.model`` only. What a document
means for a running task (directories, environment variables) is decided in ``launch``, never here.

Start with ``document`` (the one entry point), then ``v1`` (the field tables and the rules between
fields), ``fields`` (how a table is applied), ``locate`` (JSON with positions). A further protocol is one
more module beside ``v1`` and one branch in ``document``.
"""

from pai_backend.protocol.document import Document, place_of, read_document

__all__ = ["Document", "place_of", "read_document"]
