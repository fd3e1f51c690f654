"""What handlers of the Jupyter server share that ask the backend something and answer in JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any, cast

from jupyter_server.base.handlers import APIHandler

from jupyter_pai.backend_link import BackendLink
from jupyter_pai.errors import USAGE, ClientError
from pai_backend.model.text import Text


def invalid(message: str, hint: str = "") -> ClientError:
    """The error for a request that cannot be understood."""
    return ClientError(message, code="InvalidParametersError", hint=hint, status=400)


class AnsweringHandler(APIHandler):
    """Answers with a value, or with an error of the wire's form."""

    link: BackendLink

    def initialize(self, link: BackendLink) -> None:
        """Called by tornado with the arguments of the route."""
        self.link = link

    async def answer(self, work: Awaitable[object]) -> None:
        """Answer with what the work gives."""
        try:
            value = await work
        except ClientError as error:
            self.set_status(error.status or (400 if error.exit_code == USAGE else 503))
            self.finish(json.dumps(error.body()))
        else:
            self.finish(json.dumps(value))

    def asked(self) -> dict[str, Any]:
        """The body, an object. Raises ClientError."""
        try:
            value = json.loads(self.request.body or b"{}")
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise invalid(Text("The body is not a JSON object."))
        return cast(dict[str, Any], value)


def member(value: dict[str, Any], name: str, kind: type[Any], default: Any) -> Any:
    """A member of a request of this type. Raises ClientError."""
    found = value.get(name, default)
    if found is not default and (not isinstance(found, kind) or (kind is int and isinstance(found, bool))):
        raise invalid(Text("{name} is not of the type {type}.", name=name, type=kind.__name__))
    return found
