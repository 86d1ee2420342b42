"""Tokens over REST: who may come in over the network. A secret is told once, in the answer that makes it."""

from typing import Annotated

from fastapi import APIRouter, Path

from queuectl.actions import tokens as acts
from queuectl.errors import BadInput
from queuectl.model.checks import as_duration, as_text, check_name
from queuectl.model.token import Role, token_shape
from queuectl.store import tokens
from queuectl.web.given import Given
from queuectl.web.rest.asking import Fields, only
from queuectl.web.rest.documenting import documented, listed
from queuectl.web.visitor import Admin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

    Shape = dict[str, object]

_BODY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "role"],
    "properties": {
        "name": {"type": "string", "description": "what it is called, here and in the audit trail"},
        "role": {"enum": [role.value for role in Role]},
        "expires": {
            "type": ["string", "number", "null"],
            "description": "how long it is good for: seconds, or as in `30d`; until revoked where it is left out",
        },
    },
}
_TOKEN = {
    "name": "ci",
    "role": "submit",
    "created_at": "2026-11-16T10:00:00.000Z",
    "created_by": "alice@build1",
    "expires_at": "2026-12-16T10:00:00.000Z",
    "expired": False,
    "last_used_at": None,
    "last_used_from": None,
}

Name = Annotated[str, Path(description="the token")]
router = APIRouter(prefix="/tokens", tags=["tokens"])


@router.get("", **documented(answer=listed("tokens", "token-list"), example={"tokens": [_TOKEN]}))
def list_tokens(stores: Given, _visitor: Admin) -> "Shape":
    """List tokens and when each was last used; never a secret, which nobody knows any more."""

    def look(tx: "Tx") -> "list[Shape]":
        return [token_shape(token, tx.now) for token in tokens.all_tokens(tx)]

    return {"tokens": stores.read(look)}


@router.post(
    "",
    **documented(
        answer="token-add",
        example={**_TOKEN, "token": "qctl_c2VjcmV0LXRoYXQtbm9ib2R5LWVsc2UtaGFzLXNlZW4tOik"},
        status=201,
        about="Made; the secret is told this once",
        body=_BODY,
        body_example={"name": "ci", "role": "submit", "expires": "30d"},
        problems=[409],
    ),
)
def add_token(fields: Fields, stores: Given, visitor: Admin) -> "Shape":
    """Make a token and tell its secret, this once."""
    only(fields, ["name", "role", "expires"])
    for name in ("name", "role"):
        if fields.get(name) is None:
            raise BadInput(f"{name} is missing", hint='send {"name": "ci", "role": "submit"}')
    expires = fields.get("expires")
    token, secret = acts.add_token(
        stores.database,
        check_name("token", fields["name"]),
        as_text("role", fields["role"]),
        lasts_ms=None if expires is None else as_duration("expires", expires),
        who=visitor.name,
    )
    return {**token_shape(token, token.created_at), "token": secret}


@router.delete("/{name}", **documented(answer="token-revoke", example={"token": "ci", "revoked": True}))
def revoke_token(name: Name, stores: Given, visitor: Admin) -> "Shape":
    """Remove a token; who is logged in with it is out."""
    acts.revoke_token(stores.database, check_name("token", name), who=visitor.name)
    return {"token": name, "revoked": True}
