"""The panel has words of its own for all ends of tasks that the backend tells apart."""

from __future__ import annotations

import re
from pathlib import Path

from pai_backend.lifecycle import exits

SOURCE = Path(__file__).parents[3] / "labextension" / "src" / "exit_words.ts"


def test_every_class_of_exits_has_the_words_of_the_backend() -> None:
    source = re.sub(r"\s+", " ", SOURCE.read_text(encoding="utf-8"))
    for found in [*(rule.of for rule in exits.RULES), exits.BY_SIGNAL, exits.FAILED]:
        _, _, case = source.partition(f"case '{found.phrase}': ")
        case = case.partition(" case ")[0].replace("\\'", "'")
        assert found.explanation.replace("{signal}", "%1") in case, found.phrase
        assert found.remedy in case, found.phrase
