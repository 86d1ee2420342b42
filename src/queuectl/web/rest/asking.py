"""Asking: what REST handlers are handed of a request: its body, read and checked, and no query nobody reads."""

import json
from typing import Annotated, get_origin

from fastapi import Depends, Request
from fastapi.routing import APIRoute

from queuectl.errors import BadInput, UnknownName
from queuectl.web.problems import BadRequest, WrongMedia

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastapi.dependencies.models import Dependant

JSON = "application/json"
MOST_DEPTH = 64
"""No body has more levels than that; Python can read about a thousand, and less where it has to write them again."""
LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines")


def only_known_queries(request: Request) -> None:
    """Refuse a query parameter that the operation does not have, with the nearest that it has, or that comes twice."""
    route = request.scope["route"]
    if not isinstance(route, APIRoute) or not request.query_params:
        return
    known = _queries_of(route.dependant)
    for name in request.query_params:
        if name not in known:
            hint = "" if known else "it takes none"
            raise UnknownName.among("query parameter", name, list(known), hint=hint)
        times = len(request.query_params.getlist(name))
        if times > 1 and not known[name]:
            raise BadInput(f"query parameter {name} is given {times} times", hint="it takes one value: give it once")


def _queries_of(dependant: "Dependant") -> dict[str, bool]:
    """Return the query parameters of a handler and of all that it is handed, with whether each takes many values."""
    found = {each.alias: get_origin(each.field_info.annotation) is list for each in dependant.query_params}
    for each in dependant.dependencies:
        found |= _queries_of(each)
    return found


async def _raw(request: Request) -> bytes:
    return await request.body()


Raw = Annotated[bytes, Depends(_raw)]
"""The body as it came; how long it may be is decided in edge.py."""


def media_of(request: Request) -> str:
    """Return what kind of thing the body says it is."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _json_value(request: Request, raw: Raw) -> object:
    media = media_of(request)
    if raw and media != JSON:
        shown = media or "missing"
        raise WrongMedia(f"the body is to be JSON, but its Content-Type is {shown}", hint=f"send Content-Type: {JSON}")
    return None if not raw.strip() else parse_json(raw)


def _json_object(value: Annotated[object, Depends(_json_value)]) -> "dict[str, object]":
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput("the body is to be a JSON object", hint='write {"name": value, ...}')
    return value


Fields = Annotated[dict[str, object], Depends(_json_object)]
"""The body as a JSON object; {} where none was sent. Which names it may have is said by `only`."""


def only(fields: "dict[str, object]", known: "Sequence[str]") -> "dict[str, object]":
    """Return the fields of a body when it has none but these; else refuse the first, with the nearest name."""
    for name in fields:
        if name not in known:
            raise UnknownName.among("field", name, list(known), hint="" if known else "it takes none")
    return fields


def flag(fields: "dict[str, object]", name: str) -> bool:
    """Return whether a field of a body is true; one that is neither true nor false is refused."""
    value = fields.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise BadInput(f"{name} is to be true or false, not {json.dumps(value)[:80]}")
    return value


def parse_json(raw: "bytes | str") -> object:
    """Read JSON, strictly: no NaN, no number of thousands of digits, no name twice, no text that is none.

    Else say where it breaks.
    """
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        value: object = _DECODER.decode(text.removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not valid UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise BadRequest("broken JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadRequest(f"broken JSON at {where}: {error.msg}") from None
    except ValueError as error:
        told = "a number has too many digits" if "digits" in str(error) else str(error)
        raise BadRequest(f"broken JSON: {told}") from None
    if text.count("[") + text.count("{") > MOST_DEPTH and _is_deep(value):
        raise BadRequest(f"broken JSON: nested too deeply, more than {MOST_DEPTH} levels")
    if "\\u" in text:
        _refuse_no_text(value)
    return value


def _is_deep(value: object) -> bool:
    """Whether something is nested so deeply that whatever handles it might give up half-way."""
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        parts = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [inner for part in parts for inner in part if isinstance(inner, dict | list)]
    return bool(level)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _object(pairs: "list[tuple[str, object]]") -> "dict[str, object]":
    """Return an object; of a name that stands there twice nobody knows which value was meant."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"an object has the name {json.dumps(twice[:80])} more than once")
    return found


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_object)


def _refuse_no_text(value: object) -> None:
    for text in _texts(value):
        if "\0" in text:
            raise BadInput("a text holds a NUL character", hint="no command, name or variable can carry one")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadInput("a text holds half a character (a lone surrogate)", hint="write whole characters") from None


def _texts(value: object) -> "Iterator[str]":
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting.extend([*each.keys(), *each.values()])
        elif isinstance(each, list):
            waiting.extend(each)
