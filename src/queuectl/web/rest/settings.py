"""Settings over REST: what is in force and where it comes from. An environment variable of the server counts here."""

import os
from typing import Annotated

from fastapi import APIRouter, Path

from queuectl import settings
from queuectl.actions import control
from queuectl.errors import BadInput, NotFound, UnknownName
from queuectl.store import config
from queuectl.web.given import Given
from queuectl.web.rest.asking import Fields, only
from queuectl.web.rest.documenting import documented, listed
from queuectl.web.visitor import Admin, Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    Shape = dict[str, object]

_BODY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["value"],
    "properties": {"value": {"type": ["string", "number", "boolean"], "description": "as `config set` takes it"}},
}
_SETTING = {
    "key": "max_retries",
    "value": "3",
    "source": "default",
    "default": "3",
    "meaning": "runs after the first until a job is buried",
}

Key = Annotated[str, Path(description="the setting, with '-' or '_'")]
router = APIRouter(prefix="/settings", tags=["settings"])


@router.get("", **documented(answer=listed("settings", "config-list"), example={"settings": [_SETTING]}))
def list_settings(stores: Given, _visitor: Reader) -> "Shape":
    """List every setting: value, source, default and meaning."""
    return {"settings": settings.setting_shapes(stores.read(config.stored), os.environ)}


@router.get(
    "/{key}", **documented(answer="config-get", example={"key": "max_retries", "value": "3", "source": "default"})
)
def get_setting(key: Key, stores: Given, _visitor: Reader) -> "Shape":
    """Return the value in force."""
    return {**settings.setting_shape(_found(key), stores.read(config.stored), os.environ)}


@router.put(
    "/{key}",
    **documented(
        answer="config-set",
        example={"key": "max_retries", "value": "5"},
        body=_BODY,
        body_example={"value": "5"},
    ),
)
def set_setting(key: Key, fields: Fields, stores: Given, visitor: Admin) -> "Shape":
    """Store a value, for all workers of the fleet; it is answered as it is stored."""
    if "value" not in only(fields, ["value"]):
        raise BadInput("to what? value is missing", hint='send {"value": "5"}')
    name, stored = control.set_setting(stores.database, _found(key), _text(fields["value"]), who=visitor.name)
    return {"key": name, "value": stored}


@router.delete(
    "/{key}",
    **documented(answer="config-unset", example={"key": "max_retries", "value": "3", "was_stored": True}),
)
def unset_setting(key: Key, stores: Given, visitor: Admin) -> "Shape":
    """Forget a stored value; the default holds again."""
    name = settings.setting_key(_found(key))
    was_stored = control.unset_setting(stores.database, name, who=visitor.name)
    return {"key": name, "value": settings.shown(name, settings.SETTINGS[name].default), "was_stored": was_stored}


def _found(key: str) -> str:
    """Return a name that a setting has, as it was given; here one that none has is a path with nothing at it."""
    try:
        settings.setting_key(key)
    except UnknownName as error:
        raise NotFound(error.message, hint=error.hint) from None
    return key


def _text(value: object) -> str:
    """Return a value as a person would type it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise BadInput("value is to be a text, a number, true or false", hint='send {"value": "5"}')
    return str(value)
