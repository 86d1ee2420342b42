"""Documenting: how an operation says what it takes and answers. What all operations share is added in openapi.py.

    @router.post("/{name}/pause", **documented(answer="queue-pause", example={"queue": "mail", ...}))
    def pause_queue(name: str, stores: Given, visitor: Operator) -> Shape:
        \"\"\"Pause a queue.\"\"\"

The first sentence of the docstring is the summary, the rest the description; the name of the function, unique among
all, is the operation's id. A schema is the name of a file in queuectl/schemas or queuectl/web/schemas, or written out.
"""

import json

from fastapi.responses import Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Schema = Mapping[str, object]
    Documented = dict[str, Any]

JSON = "application/json"
EXAMPLE = "x-example"


def ref(name: str) -> "dict[str, object]":
    """Return a schema that is the one with a name."""
    return {"$ref": f"#/components/schemas/{name}"}


def listed(noun: str, items: "str | Schema", *, is_paged: bool = False) -> "dict[str, object]":
    """Return the schema of a list: {noun: [...]}, with `next` where it is paged."""
    properties: dict[str, object] = {noun: {"type": "array", "items": _schema(items)}}
    if is_paged:
        properties["next"] = {
            "type": ["string", "null"],
            "description": "the cursor of the next page; null on the last",
        }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def documented(
    *,
    answer: "str | Schema | None" = None,
    example: object = None,
    status: int = 200,
    about: str = "Done",
    media: str = JSON,
    headers: "Mapping[str, str] | None" = None,
    body: "str | Schema | None" = None,
    body_example: object = None,
    is_body_needed: bool = True,
    more_bodies: "Mapping[str, object] | None" = None,
    more_answers: "Mapping[str, object] | None" = None,
    problems: "Sequence[int]" = (),
    more: "Mapping[int, object] | None" = None,
) -> "Documented":
    """Return what the decorator of a handler takes: what it answers, with an example, and what it reads of a body.

    `problems` are the errors an operation may meet beside those that all may: 404 for what has a name in its path is
    among these. `headers` are those of the answer with what they say; `more` are other answers, written out.
    """
    good: dict[str, object] = {"description": about}
    if answer is not None:
        good["content"] = {media: _medium(answer, example), **(more_answers or {})}
    if headers:
        good["headers"] = {
            name: {"description": words, "schema": {"type": "string"}} for name, words in headers.items()
        }
    extra: dict[str, object] = {"x-problems": list(problems)}
    if body is not None:
        content = {JSON: _medium(body, body_example), **(more_bodies or {})}
        extra["requestBody"] = {"required": is_body_needed, "content": content}
    return {
        **({} if media == JSON else {"response_class": Response}),
        "status_code": status,
        "response_model": None,
        "responses": {status: good, **(more or {})},
        "openapi_extra": extra,
    }


def _medium(schema: "str | Schema", example: object) -> "dict[str, object]":
    """Return a schema with its example as text: whoever makes the document drops every null on the way."""
    return {"schema": _schema(schema), EXAMPLE: json.dumps(example)}


def _schema(schema: "str | Schema") -> "Schema":
    return ref(schema) if isinstance(schema, str) else schema
