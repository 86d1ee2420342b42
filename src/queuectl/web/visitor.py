"""Visitor: who asks, and what they may do. Who they are is found out in guard.py, before any handler runs."""

from typing import Annotated

from fastapi import Depends, Request

from queuectl.model.token import Role
from queuectl.model.value import Value
from queuectl.web.problems import Forbidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Visitor(Value):
    """Who asks: a name for the audit trail, and a role."""

    name: str
    role: Role
    csrf: str = ""
    """What a page must send with each write; empty where no session is used."""

    def may(self, role: Role) -> bool:
        """Whether this visitor may do what a role may."""
        return self.role.covers(role)


def visitor_of(request: Request) -> Visitor:
    """Return who asks."""
    found = request.state.visitor
    assert isinstance(found, Visitor)
    return found


def need(role: Role) -> "Callable[[Request], Visitor]":
    """Return what lets a handler be called by visitors of a role alone."""

    def check(request: Request) -> Visitor:
        visitor = visitor_of(request)
        if not visitor.may(role):
            raise Forbidden(f"this needs the role {role}; yours is {visitor.role}", hint="ask for another token")
        return visitor

    return check


Reader = Annotated[Visitor, Depends(need(Role.READ))]
Submitter = Annotated[Visitor, Depends(need(Role.SUBMIT))]
Operator = Annotated[Visitor, Depends(need(Role.OPERATE))]
Admin = Annotated[Visitor, Depends(need(Role.ADMIN))]
