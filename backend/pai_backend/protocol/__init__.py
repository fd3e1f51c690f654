"""Reading job documents: text in, :class:`~pai_backend.model.spec.JobSpec` out, or every fault with its place.

Pure: no clock, no file, no network, no asyncio; may import ``pai_backend.model`` only. What a document
means for a running task (directories, environment variables) is decided in ``launch``, never here.

Start with ``document`` (the one entry point), then ``v1`` (the field tables and the rules between
fields), ``fields`` (how a table is applied), ``locate`` (JSON with positions). OpenPAI v2 is ``v2`` and the
``v2_`` modules of its parts over ``yaml_tree`` (YAML with positions), with ``template`` for its
tags and ``plugins`` for what runtime plugins become.
"""

from pai_backend.protocol.document import Document, place_of, read_document

__all__ = ["Document", "place_of", "read_document"]
