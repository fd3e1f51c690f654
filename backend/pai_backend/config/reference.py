"""The reference page of all keys: ``python -m pai_backend.config.reference`` prints ``docs/configuration.md``."""

from __future__ import annotations

import sys

from pai_backend.config.keys import Key, keys

_HEAD = """# Configuration

<!-- Made by `python -m pai_backend.config.reference`; a test holds it current. -->

`python -m pai_backend serve --config FILE` reads a YAML file (or TOML, by the suffix `.toml`). An environment variable
beats the file, a flag beats both. `PAI_BACKEND_CONFIG` names the file when `--config` does not. Lists and objects are
written as JSON in variables and flags. A relative path in the file starts at the file's directory, elsewhere at the
working directory. An unknown key, a wrong type or a value out of its limits ends the program with
exit code 2 and one line that names the place. Keys that hold secrets have no flag, because flags are seen in the list
of processes.

```yaml
{example}```
"""

_EXAMPLE = """\
cluster_name: laptop
engine:
  nodes:
    - {name: carol, gpus: {type: TITANX, count: 1}}
    - {name: dan, gpus: {type: TITANX, count: 1}}
virtual_clusters: [default, research]
"""

_TAIL = """
## Flags without a key

| flag | meaning |
|---|---|
| `--config FILE` | The configuration file. |
| `--role ROLE[,ROLE]` | Run these roles in this process, alone; several machines or containers share one database so. |
| `--ready-fd N` | Write one line of JSON, `{"url", "pid"}`, to this inherited descriptor when everything answers. |

## Files of a data directory

All are for their owner only (0600, directories 0700).

| file | what |
|---|---|
| `backend.lock` | Locked by the supervisor: one backend for one data directory. Holds its process id. |
| `controller.lock` | Locked by the controller, with SQLite: its lease cannot be taken while it lives. |
| `runtime/supervisor.json` | `{pid, started, version}` |
| `runtime/api.json` | `{pid, url, started, version}`, written when the API answers, removed at a clean end. |
| `runtime/gateway.json` | `{pid, host, port}` |
| `runtime/agent.json` | `{pid}` |
| `api.port`, `gateway.port` | The ports chosen where the key says 0, so that addresses stay. |
| `token` | Bearer token of `user`. |
| `secret.key`, `secret.key.lock` | Keys of the database: [secrets](secrets.md). **Keep a copy apart from it.** |
| `pai.sqlite` | The database, unless `database` names another. |
| `fs/` | The default file system, unless `storage.default_uri` names another. |
| `uploads/` | What is uploaded to a default file system elsewhere, until it is complete. |
| `engine/` | The local engine's tasks and their logs. |

## Exit codes of `serve`

| code | meaning |
|---|---|
| 0 | Ended as asked (SIGTERM or SIGINT). |
| 1 | Ended by a fault; the log says which. |
| 2 | The configuration is wrong, or a configured port is in use. |
| 3 | A backend with this data directory is running already. |
"""


def example() -> str:
    """The example file of the page, valid as it stands."""
    return _EXAMPLE


def reference() -> str:
    """The whole page as Markdown."""
    lines = [_HEAD.replace("{example}", _EXAMPLE), "## Keys\n"]
    for key in keys():
        lines.append(_entry(key))
    return "\n".join(lines) + _TAIL


def _entry(key: Key) -> str:
    flag = f"`{key.flag}`" if key.flag else "none (secret)"
    default = f"`{key.default}`" if key.default else "none"
    return (
        f"### `{key.name}`\n\n{key.meaning}\n\n"
        f"Type: {key.kind}. Default: {default}. Flag: {flag}. Variable: `{key.variable}`.\n"
    )


if __name__ == "__main__":
    sys.stdout.write(reference())
