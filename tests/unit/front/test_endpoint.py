"""Which backend is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_pai import endpoint
from jupyter_pai.errors import InvalidDocument


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    client = tmp_path / "client.toml"
    client.write_text('url = "https://file.example.org"\ntoken = "f"\n')
    found = endpoint.remote_endpoint({"PAI_URL": "https://env.example.org/", "PAI_TOKEN": "e"}, client)
    assert (found.url, found.token) == ("https://env.example.org", "e") if found else pytest.fail("nothing found")


def test_a_token_can_be_in_a_file_beside_the_client_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    client = tmp_path / "client.toml"
    client.write_text('url = "https://pai.example.org"\ntoken_file = "token"\n')
    found = endpoint.remote_endpoint({}, client)
    assert found is not None
    assert found.token == "secret"
    assert "secret" not in repr(found)


def test_a_context_comes_before_all_else_and_leads_to_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "config_dir", lambda: tmp_path)
    (tmp_path / "contexts").mkdir()
    (tmp_path / "contexts" / "lab.toml").write_text('url = "https://lab.example.org/"\ntoken_file = "token"\n')
    (tmp_path / "contexts" / "token").write_text("t\n")
    (tmp_path / "contexts" / "self.toml").write_text('context = "self"')
    given = {"PAI_URL": "https://env.example.org", "PAI_TOKEN": "e", "PAI_DATA_DIR": str(tmp_path)}
    lab = endpoint.Endpoint("https://lab.example.org", "t")
    assert endpoint.remote_endpoint({**given, "PAI_CONTEXT": "lab"}) == lab
    assert endpoint.remote_endpoint({**given, "PAI_CONTEXT": "local"}) is None
    (tmp_path / "client.toml").write_text('context = "lab"')
    assert endpoint.remote_endpoint({}) == lab
    for name, message in (("none", "no context 'none'"), ("../contexts/lab", "no context"), ("self", "url is missing")):
        with pytest.raises(InvalidDocument, match=message):
            endpoint.remote_endpoint({"PAI_CONTEXT": name})


def test_nothing_configured_means_the_private_backend(tmp_path: Path) -> None:
    assert endpoint.remote_endpoint({}, tmp_path / "client.toml") is None


def test_a_named_data_directory_means_the_backend_that_lives_there(tmp_path: Path) -> None:
    client = tmp_path / "client.toml"
    client.write_text('url = "https://pai.example.org"\ntoken = "t"\n')
    assert endpoint.remote_endpoint({"PAI_DATA_DIR": str(tmp_path)}, client) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('token = "t"', "url is missing"),
        ('url = "https://x"', "token or token_file is missing"),
        ('url = "https://x"\nuser = "me"', "unknown key 'user'"),
        ("url = ", "cannot be read"),
        ('url = "ftp://x"\ntoken = "t"', "is not an http:// or https:// URL"),
        ('url = "http://[::1"\ntoken = "t"', "is not an http:// or https:// URL"),
        ('url = "http://x:http"\ntoken = "t"', "is not an http:// or https:// URL"),
        ('url = "https://x"\ntoken_file = "none"', "cannot be read: No such file"),
    ],
)
def test_a_wrong_client_file_is_named_with_the_reason(tmp_path: Path, text: str, message: str) -> None:
    client = tmp_path / "client.toml"
    client.write_text(text)
    with pytest.raises(InvalidDocument, match=message):
        endpoint.remote_endpoint({}, client)


def test_an_address_without_a_token_is_an_error_with_its_remedy() -> None:
    with pytest.raises(InvalidDocument) as caught:
        endpoint.remote_endpoint({"PAI_URL": "https://x"})
    assert caught.value.hint == "Set PAI_TOKEN or PAI_TOKEN_FILE too."


def test_a_configuration_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="which is not a file"):
        endpoint.backend_config({"PAI_BACKEND_CONFIG": str(tmp_path / "none.yaml")})
    assert endpoint.data_dir({"PAI_DATA_DIR": str(tmp_path)}) == tmp_path


def test_the_token_of_a_jupyterhub_is_used_when_that_is_asked_for_alone() -> None:
    hub = {"PAI_URL": "https://pai.example", "JUPYTERHUB_API_TOKEN": "of-the-hub"}
    with pytest.raises(InvalidDocument, match="there is no token"):
        endpoint.remote_endpoint(hub)
    assert endpoint.remote_endpoint({**hub, "PAI_TOKEN_SOURCE": "jupyterhub"}) == endpoint.Endpoint(
        "https://pai.example", "of-the-hub"
    )
    own = {**hub, "PAI_TOKEN_SOURCE": "jupyterhub", "PAI_TOKEN": "own"}
    assert endpoint.remote_endpoint(own) == endpoint.Endpoint("https://pai.example", "own")
    with pytest.raises(InvalidDocument, match="no JUPYTERHUB_API_TOKEN"):
        endpoint.remote_endpoint({"PAI_URL": "https://pai.example", "PAI_TOKEN_SOURCE": "jupyterhub"})
    with pytest.raises(InvalidDocument, match="PAI_TOKEN_SOURCE=other is not known"):
        endpoint.remote_endpoint({**hub, "PAI_TOKEN_SOURCE": "other"})
