"""What axe finds wrong with a part of a page in a real browser, computed contrast among it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

AXE = Path(__file__).resolve().parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"


def faults(page: Page, part: str) -> list[dict[str, Any]]:
    """The violations of WCAG 2 A and AA within a CSS selector; code editors are not ours."""
    page.add_script_tag(path=AXE)
    found: list[dict[str, Any]] = page.evaluate(
        """async part => {
          const { violations } = await window.axe.run(
            { include: [document.querySelector(part)], exclude: [['.cm-editor']] },
            { runOnly: ['wcag2a', 'wcag2aa'] }
          );
          return violations.map(({ id, nodes }) => ({ id, where: nodes.map(node => node.html) }));
        }""",
        part,
    )
    return found
