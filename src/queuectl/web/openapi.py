"""OpenAPI: the document that describes the REST API, made from the handlers and the schema files."""

import json
import os

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from queuectl import schemas
from queuectl.web.problems import PROBLEM
from queuectl.web.rest.documenting import EXAMPLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Shape = dict[str, Any]

OWN_SCHEMAS = os.path.join(os.path.dirname(__file__), "schemas")
COMPONENTS = "#/components/schemas/"
DESCRIPTION = """\
The queue over HTTP: what the command line can do, with the same JSON as `--json`.

Errors are problem documents (RFC 9457) that say what is wrong and, in `hint`, what to do.
From this machine no token is needed; from elsewhere send `Authorization: Bearer TOKEN` (`queuectl token add`).
Lists that have `next` are paged: hand it back as `cursor`.
A query parameter that takes one value is given once (422), and so is a name in a JSON object (400).
"""
_DETAILS = {
    400: "broken JSON at line 1, column 9: Expecting value",
    401: "this needs a token",
    403: "this needs the role operate; yours is read",
    404: "no job '12'",
    408: "the body did not come in time",
    409: "job 12 is completed already",
    413: "the body has more than 2,000,000 bytes",
    415: "the body is to be JSON, but its Content-Type is text/plain",
    416: "the output has 12 bytes",
    422: "unknown field 'comand'; did you mean 'command'?",
    429: "too many failed attempts",
    503: "the database cannot be reached",
}
_TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    503: "Service Unavailable",
}
_HEADERS = {
    401: {"WWW-Authenticate": "how to log in"},
    416: {"Content-Range": "how much there is"},
    429: {"Retry-After": "seconds to wait"},
    503: {"Retry-After": "seconds to wait"},
}


def operation_id(route: APIRoute) -> str:
    """Return the id of an operation: the name of its handler, with what it is about where that does not say so."""
    about = str(route.tags[0]) if route.tags else "api"
    is_told = about.removesuffix("s") in route.name
    return route.name if is_told else f"{route.name}_{about}"


def add_openapi(app: FastAPI) -> None:
    """Have the app describe itself."""
    made: list[Shape] = []

    def describe() -> "Shape":
        if not made:
            made.append(_document(app))
        return made[0]

    app.openapi = describe  # type: ignore[method-assign]


def _document(app: FastAPI) -> "Shape":
    document = get_openapi(title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes)
    for methods in document["paths"].values():
        for method, operation in methods.items():
            _complete(operation, method)
    components = document.setdefault("components", {})
    known = {**components.pop("schemas", {}), **_components()}
    components["responses"] = {f"problem_{status}": _problem(status) for status in _DETAILS}
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "a token of `queuectl token add`"}
    }
    document["security"] = [{}, {"token": []}]
    components["schemas"] = _used(document, known)
    return document


def _complete(operation: "Shape", method: str) -> None:
    """Add to an operation what all have: a summary, and the problems anybody may meet."""
    told = operation.pop("description", operation["summary"])
    first, _, rest = str(told).partition("\n")
    operation["summary"] = first.strip().removesuffix(".")
    if rest.strip():
        operation["description"] = rest.strip()
    _read_examples(operation)
    has_body = "requestBody" in operation
    statuses = {400, 401, 403, 422, 429, 503, *operation.pop("x-problems", ())}
    if method != "get":
        statuses |= {408, 413}
    if has_body:
        statuses.add(415)
    if any(each["in"] == "path" for each in operation.get("parameters", ())):
        statuses.add(404)
    for status in sorted(statuses):
        operation["responses"][str(status)] = {"$ref": f"#/components/responses/problem_{status}"}


def _read_examples(operation: "Shape") -> None:
    """Write the examples out, which came as text so that their nulls were kept."""
    for told in (*operation["responses"].values(), operation.get("requestBody", {})):
        for medium in told.get("content", {}).values():
            if EXAMPLE in medium:
                medium["example"] = json.loads(medium.pop(EXAMPLE))


def _problem(status: int) -> "Shape":
    example = {"type": "about:blank", "title": _TITLES[status], "status": status, "detail": _DETAILS[status]}
    answer: Shape = {
        "description": _TITLES[status],
        "content": {PROBLEM: {"schema": {"$ref": f"{COMPONENTS}problem"}, "example": example}},
    }
    if status in _HEADERS:
        told = _HEADERS[status].items()
        answer["headers"] = {name: {"description": words, "schema": {"type": "string"}} for name, words in told}
    return answer


def _components() -> "Shape":
    """Return every schema under its name, with what the files share among them."""
    found: Shape = {}
    for folder in (schemas.FOLDER, OWN_SCHEMAS):
        for name in schemas.names(folder):
            schema = dict(schemas.load(name, folder))
            for shared, inner in schema.pop("$defs", {}).items():  # type: ignore[attr-defined]
                found[shared] = _linked(inner)
            if name not in ("types", "asked"):  # those have nothing of their own
                found[name] = _linked({key: value for key, value in schema.items() if key not in ("$id", "$schema")})
    return dict(sorted(found.items()))


def _used(document: "Shape", known: "Shape") -> "Shape":
    """Return those schemas that the document names, and those that these name."""
    used: set[str] = set()
    waiting = _named(document)
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting |= _named(known[name])
    return {name: schema for name, schema in known.items() if name in used}


def _named(part: object) -> set[str]:
    if isinstance(part, list):
        return set().union(*map(_named, part))
    if not isinstance(part, dict):
        return set()
    own = part.get("$ref")
    inner = set().union(*map(_named, part.values()))
    return inner | {own.removeprefix(COMPONENTS)} if isinstance(own, str) and own.startswith(COMPONENTS) else inner


def _linked(part: object) -> object:
    """Return a part of a schema with its references as they are within the document."""
    if isinstance(part, list):
        return [_linked(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {key: _link(value) if key == "$ref" else _linked(value) for key, value in part.items()}


def _link(reference: str) -> str:
    file, _, inner = reference.partition("#")
    return COMPONENTS + (inner.rpartition("/")[2] if inner else file.removesuffix(".json"))
