"""A job document in another protocol: the same meaning as far as the other one can say it, and a list of the rest.

``to_v1`` and ``to_v2`` take a document that was read and give text and the list. What the target cannot say is
listed with its place; nothing is dropped in silence. What would be no readable document is refused instead.
Pure, as all of ``protocol``. Start with ``v2`` and ``v1``, one writer each; ``shell`` has what goes before a
command, ``names`` and ``qizhi`` what is renamed.
"""

from pai_backend.protocol.convert.result import Converted
from pai_backend.protocol.convert.v1 import to_v1
from pai_backend.protocol.convert.v2 import to_v2

__all__ = ["Converted", "to_v1", "to_v2"]
