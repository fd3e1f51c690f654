"""The OpenAPI 3.1 description, made from the route table, the verbs' operations and the models.

Source of the structure: the OpenAPI Specification 3.1.0. Nothing is written by hand that the code knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from pai_backend.api.errors import STATUS
from pai_backend.api.operation import OPERATIONS, Operation
from pai_backend.api.routes import Route
from pai_backend.api.wire import MEDIA_TYPE
from pai_backend.model.errors import (
    ErrorBody,
    Forbidden,
    InvalidParameters,
    LockedOut,
    MustChangePassword,
    NoSuchPath,
    PaiError,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

_REF = "#/components/schemas/{model}"
_SERIALIZE: JsonSchemaMode = "serialization"
_VALIDATE: JsonSchemaMode = "validation"
_DESCRIPTION_OF_ITSELF = Operation("This description.", media_type="application/json")
Json = dict[str, Any]


def describe(routes: Iterable[Route], version: str) -> Json:
    """The whole description as a JSON value."""
    table = [(route, verb, _operation(route, verb)) for route in routes for verb in _verbs(route)]
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [(ErrorBody, _SERIALIZE)]
    for _route, _verb, operation in table:
        wanted += [(model, _SERIALIZE) for model in (operation.answer, operation.ours) if model]
        wanted += [(operation.body, _VALIDATE)] if operation.body else []
    refs, schemas = models_json_schema(list(dict.fromkeys(wanted)), by_alias=True, ref_template=_REF)
    paths: dict[str, Json] = {}
    for route, verb, operation in table:
        paths.setdefault(route.template, {})[verb.lower()] = _entry(route, verb, operation, refs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jupyter-pai backend",
            "version": version,
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _verbs(route: Route) -> list[str]:
    return [verb for verb in route.handler.verbs() if verb != "OPTIONS"]


def _operation(route: Route, verb: str) -> Operation:
    return OPERATIONS.get(getattr(route.handler, verb.lower()), _DESCRIPTION_OF_ITSELF)


def _entry(route: Route, verb: str, operation: Operation, refs: dict[Any, Json]) -> Json:
    entry: Json = {
        "operationId": f"{verb.lower()}{route.handler.__name__.removesuffix('Handler')}{route.variant}",
        "summary": operation.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(operation)],
        "responses": _responses(route, operation, refs),
    }
    if route.handler.public:
        entry["security"] = []
    if operation.body is not None:
        schema = refs[(operation.body, _VALIDATE)]
        entry["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.takes_document:
        content: Json = {
            kind: {"schema": {}} for kind in ("application/json", "application/yaml", "application/octet-stream")
        }
        entry["requestBody"] = {"required": True, "description": operation.document, "content": content}
    if operation.takes_bytes:
        schema = {"application/octet-stream": {"schema": {}}}
        entry["requestBody"] = {"required": True, "description": "The bytes.", "content": schema}
    if operation.stream:
        entry["description"] = f"A WebSocket (RFC 6455); its messages are {operation.stream}."
    return entry


def _path_parameters(route: Route) -> list[Json]:
    words = {"job": "`user~name`, the job's alias, its uid, or the bare name of the caller's own job."}
    return [
        {
            "name": part,
            "in": "path",
            "required": True,
            "description": words.get(part, ""),
            "schema": {"type": "string"},
        }
        for part in route.parts
    ]


def _query_parameters(operation: Operation) -> list[Json]:
    if operation.query is None:
        return []
    schema = operation.query.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": about.pop("description", ""),
            "schema": _inlined(about, definitions),
        }
        for name, about in schema["properties"].items()
    ]


def _inlined(schema: Json, definitions: Json) -> Json:
    """The schema of a parameter with the one kind of reference they have, to an enumeration, resolved."""
    reference = schema.pop("$ref", None)
    if "anyOf" in schema:
        schema = {**schema, "anyOf": [_inlined(each, definitions) for each in schema["anyOf"]]}
    return {**definitions[reference.rpartition("/")[2]], **schema} if reference else schema


def _responses(route: Route, operation: Operation, refs: dict[Any, Json]) -> Json:
    responses: Json = {}
    if operation.stream:
        responses["101"] = {"description": "Switched to WebSocket."}
    else:
        content: Json = {}
        if operation.answer is not None:
            content = {"application/json": {"schema": refs[(operation.answer, _SERIALIZE)]}}
            if operation.ours is not None:
                content[MEDIA_TYPE] = {"schema": refs[(operation.ours, _SERIALIZE)]}
            if operation.or_bytes:
                content["application/octet-stream"] = {"schema": {}}
        elif operation.status != 204:
            content = {operation.media_type: {"schema": {}}}
        about = {"description": operation.summary}
        responses[str(operation.status)] = {**about, "content": content} if content else about
    for status, codes in _errors(route, operation).items():
        schema = {"application/json": {"schema": refs[(ErrorBody, _SERIALIZE)]}}
        responses.setdefault(str(status), {"description": ", ".join(codes), "content": schema})
    return responses


def _errors(route: Route, operation: Operation) -> dict[int, list[str]]:
    """Status -> codes of the errors a verb can answer with, those that every path has included."""
    handler = route.handler
    raises: list[type[PaiError]] = [*operation.raises]
    raises += [NoSuchPath] if route.parts else []  # a part that holds what no name can
    raises += [] if handler.public else [Unauthorized, Forbidden, LockedOut, TooManyRequests, Unavailable]
    raises += [] if handler.public or handler.sets_passwords else [MustChangePassword]
    raises += [InvalidParameters] if operation.query or operation.body else []
    raises += [TooLarge] if operation.body else []
    found: dict[int, list[str]] = {}
    raises.append(PaiError)
    for error in dict.fromkeys(raises):
        found.setdefault(STATUS[error.code], []).append(error.code)
    if handler.__name__ == "ReadyzHandler":
        found.setdefault(503, []).append("not ready; the body is the same as for 200")
    return dict(sorted(found.items()))
