"""A reason in words: one sentence that says what keeps the group, and one remedy. Made from the value alone."""

from __future__ import annotations

from collections.abc import Mapping

from pai_backend.model.waiting import Told, Waiting
from pai_backend.scheduling.explain import texts_en, texts_zh
from pai_backend.scheduling.explain.words import Words

LANGUAGES: Mapping[str, Words] = {"en": texts_en.WORDS, "zh_CN": texts_zh.WORDS}
"""Language tag -> its words."""


def render(waiting: Waiting, language: str) -> Told:
    """The reason in a language of :data:`LANGUAGES`. Raises KeyError for others."""
    words = LANGUAGES[language]
    remedy = words.change(waiting.changes[0]) if waiting.changes else words.remedies[waiting.cause](waiting)
    estimate = words.estimate(waiting) if waiting.starts_at is not None else ""
    return Told(sentence=words.sentences[waiting.cause](waiting), remedy=remedy, estimate=estimate)
