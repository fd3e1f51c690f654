"""The keys about storages: what they default to, refuse, and hide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pai_backend.config.keys import keys
from pai_backend.config.settings import Settings


def settings(storage: dict[str, Any], data_dir: Path = Path("/var/pai")) -> Settings:
    return Settings.model_validate({"data_dir": data_dir, "storage": storage})


def test_the_default_file_system_is_a_plain_directory_of_the_data_directory() -> None:
    assert settings({}).default_fs_uri == "/var/pai/fs"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("/data", "/data"),
        ("file:///data/", "/data"),
        ("hdfs://nn:8020", "hdfs://nn:8020"),
        ("hdfs://nn:8020/", "hdfs://nn:8020"),
        ("hdfs://nn:8020/pai/", "hdfs://nn:8020/pai"),
    ],
)
def test_documents_can_put_a_path_behind_the_default_uri(given: str, told: str) -> None:
    assert settings({"default_uri": given}).default_fs_uri == told


@pytest.mark.parametrize(
    ("storage", "complaint"),
    [
        ({"default_uri": "data"}, "neither an absolute path nor a URI"),
        ({"default_uri": "/"}, "below the root"),
        ({"default_uri": "webhdfs://bob:hunter22@nn:9870"}, "must not hold a password"),
        ({"mounts": [{"name": "a", "uri": "s3://k:hunter22@b"}]}, "must not hold a password"),
        ({"mounts": [{"name": "a", "uri": "/a"}, {"name": "a", "uri": "/b"}]}, "two mounts with the name a"),
        ({"mounts": [{"name": "../a", "uri": "/a"}]}, "pattern"),
        ({"shared": ["a/b"]}, "without a slash"),
        ({"shared": ["Output"]}, "not Output"),
    ],
)
def test_what_cannot_be_used_is_refused(storage: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        settings(storage)


def test_options_reach_child_processes_and_nobody_else() -> None:
    given = settings({"options": {"s3": {"secret": "hunter22", "client_kwargs": {"verify": False}}}})
    assert "hunter22" not in repr(given) + str(given.model_dump()) + given.model_dump_json()
    inherited = json.loads(given.reveal("1"))
    inherited.pop("version")
    options = Settings.model_validate(inherited).storage.options["s3"].get_secret_value()
    assert options == {"secret": "hunter22", "client_kwargs": {"verify": False}}


def test_options_have_no_flag() -> None:
    (key,) = [key for key in keys() if key.name == "storage.options"]
    assert (key.flag, key.kind, key.variable) == (None, "object", "PAI_BACKEND_STORAGE__OPTIONS")


def test_options_can_come_from_a_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pai_backend.config.load import load

    monkeypatch.setenv("PAI_BACKEND_STORAGE__OPTIONS", '{"hdfs": {"dfs.replication": "1"}}')
    loaded = load(["--data-dir", str(tmp_path), "--storage-mounts", '[{"name": "team", "uri": "hdfs://nn/team"}]'])
    storage = loaded.settings.storage
    assert storage.options["hdfs"].get_secret_value() == {"dfs.replication": "1"}
    assert [(mount.name, mount.uri) for mount in storage.mounts] == [("team", "hdfs://nn/team")]
