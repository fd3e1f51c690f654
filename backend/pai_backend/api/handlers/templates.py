"""Templates and drafts."""

from __future__ import annotations

from typing import ClassVar

from pai_backend.api.base import ALL_VERBS, ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import KeepQuery
from pai_backend.api.services.documents import document_type
from pai_backend.api.services.templates import MAX_BYTES, DraftService, TemplateService, keep
from pai_backend.api.template_wire import DraftList, TemplateList
from pai_backend.model.errors import NoSuchFile, TooLarge
from pai_backend.store import deeds
from pai_backend.store.kept_documents import DocumentKind


class TemplatesHandler(ApiHandler):
    """``/api/v2/templates``."""

    users_own = ALL_VERBS

    @operation(Operation("Job documents to begin with: shipped, the site's, the caller's own.", answer=TemplateList))
    async def get(self) -> TemplateList:
        """The templates."""
        return await TemplateService(self.ctx).list(self.user)


class DraftsHandler(ApiHandler):
    """``/api/v2/drafts``."""

    users_own = ALL_VERBS

    @operation(Operation("Documents that the caller has begun to write.", answer=DraftList))
    async def get(self) -> DraftList:
        """The drafts."""
        return await DraftService(self.ctx).list(self.user)


class _OneKept(ApiHandler):
    """A kept document."""

    kind: ClassVar[DocumentKind]
    service: ClassVar[type[TemplateService | DraftService]]

    def body_limit(self) -> int:
        """Less than for documents that are submitted."""
        return min(MAX_BYTES, self.ctx.site.max_document_bytes)

    @operation(Operation("The document, byte for byte.", media_type="application/json", raises=(NoSuchFile,)))
    async def get(self, name: str) -> None:
        """The document."""
        text, filename = await self.service(self.ctx).document(self.user, name)
        self.write_document(text, document_type(filename, text))

    @operation(
        Operation(
            "Keep a document, its secrets masked, instead of an earlier one of the caller's of this name.",
            audit="template.kept",
            query=KeepQuery,
            takes_document=True,
            status=204,
            raises=(TooLarge,),
        )
    )
    async def put(self, name: str, query: KeepQuery) -> None:
        """Nothing is answered."""
        self._only_templates()
        await keep(self.ctx, self.user, self.kind, name, self.body(), query.filename)

    @operation(Operation("Keep it no longer.", audit="template.removed", status=204, raises=(NoSuchFile,)))
    async def delete(self, name: str) -> None:
        """Nothing is answered."""
        self._only_templates()
        await self.ctx.store.kept_documents.delete(self.user.name, self.kind, name)

    def _only_templates(self) -> None:
        """Drafts are kept while their user types: that is nothing for the audit."""
        if self.kind is DocumentKind.DRAFT:
            deeds.changes_nothing()


class OneTemplateHandler(_OneKept):
    """``/api/v2/templates/{template}``."""

    users_own = ALL_VERBS

    kind, service = DocumentKind.TEMPLATE, TemplateService


class OneDraftHandler(_OneKept):
    """``/api/v2/drafts/{draft}``."""

    users_own = ALL_VERBS

    kind, service = DocumentKind.DRAFT, DraftService
