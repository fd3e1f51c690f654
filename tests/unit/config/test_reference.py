"""The documentation of the keys is the code's own."""

from __future__ import annotations

from pathlib import Path

import yaml

from pai_backend.config.keys import keys
from pai_backend.config.load import build_parser
from pai_backend.config.reference import example, reference
from pai_backend.config.settings import Settings

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_reference_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run: python -m pai_backend.config.reference > docs/…"


def test_the_example_of_the_page_is_valid() -> None:
    settings = Settings.model_validate(yaml.safe_load(example()))
    assert [node.name for node in settings.engine.nodes] == ["carol", "dan"]


def test_help_documents_every_key_and_its_variable() -> None:
    text = " ".join(build_parser().format_help().split())
    for key in keys():
        assert key.meaning, key.name
        assert key.variable in text.replace(" ", ""), key.name
        assert key.name in text.replace(" ", ""), key.name


def test_keys_with_secrets_have_no_flag() -> None:
    assert {key.name for key in keys() if key.flag is None} == {
        "database",
        "secret_key",
        "api.tokens",
        "api.users",
        "audit.webhook_secret",
        "notifications.smtp_password",
        "storage.options",
    }
