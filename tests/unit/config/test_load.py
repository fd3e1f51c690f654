"""Reading the configuration: where values come from, and what mistakes are told."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from pai_backend.config.files import ConfigError
from pai_backend.config.keys import without_secrets
from pai_backend.config.load import load
from pai_backend.config.settings import ProcessRole, Settings
from pai_backend.store.cipher import new_key


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine may decide a test."""
    import os

    for name in list(os.environ):
        if name.upper().startswith("PAI_BACKEND_"):
            monkeypatch.delenv(name)


def write(tmp_path: Path, text: str, name: str = "backend.yaml") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return str(path)


def refused(*arguments: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as error:
        load(arguments)
    return error.value.lines


def test_defaults_are_those_of_an_embedded_backend() -> None:
    settings = load([]).settings
    assert settings.processes == (
        (ProcessRole.API, ProcessRole.CONTROLLER),
        (ProcessRole.GATEWAY,),
        (ProcessRole.AGENT,),
    )
    assert (settings.api.host, settings.api.port, settings.gateway.port) == ("127.0.0.1", 0, 0)
    assert settings.database_url == f"sqlite:///{settings.data_dir}/pai.sqlite"
    assert settings.token_path == settings.data_dir / "token"


def test_a_flag_beats_a_variable_beats_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, "cluster_name: from-file\napi: {port: 1000, host: 10.0.0.1}\nuser: from-file\n")
    monkeypatch.setenv("PAI_BACKEND_API__PORT", "2000")
    monkeypatch.setenv("PAI_BACKEND_USER", "from-variable")
    settings = load(["--config", file, "--api-port", "3000"]).settings
    assert settings.cluster_name == "from-file"
    assert settings.user == "from-variable"
    assert (settings.api.host, settings.api.port) == ("10.0.0.1", 3000)


def test_the_file_may_be_named_by_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_BACKEND_CONFIG", write(tmp_path, "cluster_name: named\n"))
    assert load([]).settings.cluster_name == "named"


def test_yaml_and_toml_mean_the_same(tmp_path: Path) -> None:
    yaml = write(tmp_path, "engine:\n  nodes:\n    - {name: carol, gpus: {type: TITANX, count: 1}}\n")
    toml = write(
        tmp_path, '[[engine.nodes]]\nname = "carol"\ngpus = {type = "TITANX", count = 1}\n', name="backend.toml"
    )
    assert load(["--config", yaml]).settings.engine == load(["--config", toml]).settings.engine


SECRET = "0123456789abcdef"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
@pytest.mark.parametrize(
    ("text", "line", "name"),
    [
        (f"user: bob\napi:\n  tokens: [{{user: bob, token: {SECRET}}}]\n", 3, "api.tokens"),
        (f"secret_key: {'A' * 43}=\n", 1, "secret_key"),
        ("database: postgresql://pai:hidden@db/pai\n", 1, "database"),
        ("database: postgresql://db/pai?user=pai&password=hidden\n", 1, "database"),
        ("database: postgresql://db/pai?sslpassword=hidden\n", 1, "database"),
        ("user: bob\nstorage:\n  options: {s3: {key: a, secret: hidden}}\n", 3, "storage.options"),
    ],
)
def test_a_file_with_secrets_that_others_may_read_is_refused(
    tmp_path: Path, text: str, line: int, name: str, mode: int
) -> None:
    file = write(tmp_path, text)
    load(["--config", file])
    Path(file).chmod(mode)
    (said,) = refused("--config", file)
    assert said.startswith(f"{file}:{line}: {name} is secret, and other users may read the file (mode {mode:o}).")
    assert f"chmod 600 {file}" in said
    assert "hidden" not in said
    assert SECRET not in said


@pytest.mark.parametrize("text", ["user: me\n", "api: {port: 1}\n", "database: sqlite:////x/pai.sqlite\n"])
def test_a_file_without_secrets_may_be_read_by_all(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text)
    Path(file).chmod(0o644)
    load(["--config", file])


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o722])
def test_no_other_user_may_replace_what_is_in_the_data_directory(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "data"
    place.mkdir()
    place.chmod(mode)
    (warning,) = load(["--data-dir", str(place)]).warnings
    assert "could replace" in warning
    assert place.stat().st_mode & 0o777 == mode & 0o755
    assert load(["--data-dir", str(place)]).warnings == ()


def test_lists_are_json_in_flags_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_BACKEND_API__TOKENS", '[{"user": "bob", "token": "0123456789abcdef"}]')
    settings = load(["--user", "bob", "--virtual-clusters", '["a", "b"]']).settings
    assert settings.virtual_clusters == ("a", "b")
    assert settings.api.tokens[0].user == "bob"


def test_paths_do_not_depend_on_later_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load(["--data-dir", "here", "--log-dir", "logs", "--api-token-file", "secret"]).settings
    assert settings.data_dir == tmp_path / "here"
    assert (settings.log_dir, settings.token_path) == (tmp_path / "logs", tmp_path / "secret")


def test_relative_paths_of_a_file_start_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "backend.yaml").write_text(
        "data_dir: data\nlog_dir: /var/log/pai\ncluster: {config: cells.yaml}\napi: {token_file: ~/token}\n"
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = load(["--config", "../etc/backend.yaml", "--secret-key-file", "key"]).settings
    assert settings.data_dir == tmp_path / "etc" / "data"
    assert settings.cluster.config == tmp_path / "etc" / "cells.yaml"
    assert settings.log_dir == Path("/var/log/pai")
    assert settings.api.token_file == tmp_path / "token"
    assert settings.secret_key_file == tmp_path / "elsewhere" / "key"


MISTAKES = [
    ("api:\n  prot: 1\n", "{file}:2: api.prot is not known. Did you mean api.port?"),
    ("api:\n\n  port: many\n", "{file}:3: api.port must be a whole number."),
    ("api: 5\n", "{file}:1: api must be an object."),
    ("api: {port: 70000}\n", "{file}:1: api.port must be at most 65535."),
    ("clustername: x\n", "{file}:1: clustername is not known. Did you mean cluster_name?"),
    (
        "engine:\n  nodes:\n    - {name: a}\n    - {name: b, cpu: 3}\n",
        "{file}:4: engine.nodes[1].cpu is not known. Did you mean engine.nodes[1].cpus?",
    ),
    ("engine:\n  nodes:\n    - {cpus: 3}\n", "{file}:3: engine.nodes[0].name is required."),
    ("log_level: loud\n", "{file}:1: log_level must be one of 'debug', 'info', 'warning' or 'error'."),
    ("api:\n  public_url: http://[::1\n", "{file}:2: api.public_url must be a URL such as https://pai.example.org."),
    ("ports: {first: 20000, last: 15000}\n", "{file}:1: ports last must not be below first."),
    ("processes: [[api], [api]]\n", "configuration: processes: the role api is listed twice."),
    ("api: {port: 1}\napi: {port: 2}\n", "{file}:2: the key api is given twice, first in line 1"),
    ("- a\n", "{file}:1: the file must hold keys and values"),
    ("api: [\n", "{file}:2: not valid YAML: expected the node content, but found '<stream end>'"),
]


@pytest.mark.parametrize(("text", "line"), MISTAKES, ids=[text.replace("\n", "|") for text, _ in MISTAKES])
def test_a_mistake_in_a_file_names_key_and_line(tmp_path: Path, text: str, line: str) -> None:
    file = write(tmp_path, text)
    assert refused("--config", file) == (line.format(file=file),)


TOML_MISTAKES = [
    ("[api]\nprot = 1\n", "{file}:2: api.prot is not known. Did you mean api.port?"),
    ('[[engine.nodes]]\nname = "a"\n[[engine.nodes]]\nname = 3\n', "{file}:4: engine.nodes[1].name must be text."),
    ("api.port = true\nx = \n", "{file}:2: not valid TOML: Invalid value"),
]


@pytest.mark.parametrize(("text", "line"), TOML_MISTAKES, ids=[text.replace("\n", "|") for text, _ in TOML_MISTAKES])
def test_a_mistake_in_a_toml_file_names_key_and_line(tmp_path: Path, text: str, line: str) -> None:
    file = write(tmp_path, text, name="backend.toml")
    assert refused("--config", file) == (line.format(file=file),)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    file = write(tmp_path, "api:\n  prot: 1\n  port: x\nusr: me\n")
    lines = refused("--config", file)
    assert set(lines) == {
        f"{file}:2: api.prot is not known. Did you mean api.port?",
        f"{file}:3: api.port must be a whole number.",
        f"{file}:4: usr is not known. Did you mean user?",
    }


def test_a_mistake_in_a_variable_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_BACKEND_API__PORT", "x")
    assert refused() == ("PAI_BACKEND_API__PORT: api.port must be a whole number.",)


def test_a_mistake_in_a_flag_names_the_flag() -> None:
    assert refused("--api-port", "x") == ("--api-port: api.port must be a whole number.",)
    assert refused("--engine-nodes", "[{") == ("--engine-nodes: the value is not valid JSON or YAML.",)
    assert refused("--gateway-prt", "3") == ("--gateway-prt: is not known. Did you mean --gateway-port?",)
    assert refused("--role", "agnet") == (
        "--role: 'agnet' is not a role; roles are api, controller, gateway, agent. Did you mean agent?",
    )


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    assert refused("--config", str(missing)) == (f"{missing}: the file cannot be read: No such file or directory",)


def test_a_variable_that_means_nothing_is_a_warning_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_BACKEND_CLUSTR_NAME", "x")
    assert load([]).warnings == (
        "PAI_BACKEND_CLUSTR_NAME: no key has this variable. Did you mean PAI_BACKEND_CLUSTER_NAME?",
    )


def test_secrets_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_BACKEND_DATABASE", "postgresql+asyncpg://pai:hunter2hunter2@db/pai")
    monkeypatch.setenv("PAI_BACKEND_API__TOKENS", '[{"user": "bob", "token": "hunter2hunter2hunter2"}]')
    settings = load(["--user", "bob"]).settings
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in settings.model_dump_json()
    assert settings.reveal("1").count(b"hunter2hunter2") == 2
    monkeypatch.setenv("PAI_BACKEND_API__TOKENS", '[{"user": "bob", "token": "hunter2"}]')
    (line,) = refused()
    assert line == "PAI_BACKEND_API__TOKENS: api.tokens[0].token must have a length of at least 16."


def _with_secrets(model: type[BaseModel]) -> Iterator[tuple[type[BaseModel], str]]:
    """Every key below ``model`` that is a secret text, with the model that has it."""
    for name, info in model.model_fields.items():
        parts = [info.annotation, *typing.get_args(info.annotation)]
        if any(part is SecretStr or SecretStr in typing.get_args(part) for part in parts):
            yield model, name
        for part in parts:
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _with_secrets(part)


@pytest.mark.parametrize(("model", "name"), sorted(set(_with_secrets(Settings)), key=str))
def test_child_processes_get_each_secret_itself(model: type[BaseModel], name: str) -> None:
    given = model.model_construct(None, **{name: SecretStr("hunter2")})
    assert given.model_dump(mode="json", include={name}, context={"reveal": True}) == {name: "hunter2"}
    assert "hunter2" not in given.model_dump_json(include={name})


def test_variables_with_secrets_are_not_passed_on() -> None:
    environ = {
        "PATH": "/bin",
        "PAI_BACKEND_USER": "alice",
        "PAI_BACKEND_SECRET_KEY": "k",
        "pai_backend_database": "d",
        "PAI_BACKEND_API__TOKENS": "t",
        "PAI_BACKEND_STORAGE__OPTIONS__S3": "s",
    }
    assert without_secrets(environ) == {"PATH": "/bin", "PAI_BACKEND_USER": "alice"}


def test_keys_of_the_database_are_checked_and_split() -> None:
    one, two = new_key(), new_key()
    settings = Settings(secret_key=SecretStr(f"{one}, {two}"))
    assert settings.secret_keys == (one, two)
    assert one not in repr(settings)
    assert one not in settings.model_dump_json()
    assert one in settings.reveal("1").decode()
    for wrong in ("", f"{one},", "hunter2"):
        with pytest.raises(ValidationError) as refusal:
            Settings(secret_key=SecretStr(wrong))
        assert "hunter2" not in str(refusal.value)


HASH = "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA"
SEVERAL = {
    "tokens": f"user: ann\napi: {{tokens: [{{user: bob, token: {SECRET}}}]}}\n",
    "passwords": f"user: ann\napi: {{users: [{{name: ann}}, {{name: bob, password_hash: '{HASH}'}}]}}\n",
    "both": f"user: ann\napi: {{users: [{{name: ann}}], tokens: [{{user: bob, token: {SECRET}, admin: true}}]}}\n",
}


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL)
def test_several_users_of_one_account_must_trust_each_other(tmp_path: Path, text: str) -> None:
    (said,) = refused("--config", write(tmp_path, text))
    assert "engine.trust_all_users: this backend knows 2 users (ann, bob" in said
    assert "the keys, the database and the files of all" in said
    assert "Run a backend for each user, or use engine.kind: kubernetes" in said
    assert load(["--config", write(tmp_path, text), "--engine-trust-all-users", "true"]).settings.engine.trust_all_users


def test_one_user_needs_no_trust_and_tasks_of_a_cluster_are_apart(tmp_path: Path) -> None:
    load(["--config", write(tmp_path, f"user: bob\napi: {{tokens: [{{user: bob, token: {SECRET}}}]}}\n")])
    cluster = "engine: {kind: kubernetes}\nkubernetes: {pods: {runtime_image: image}}\n"
    load(["--config", write(tmp_path, SEVERAL["tokens"] + cluster)])
