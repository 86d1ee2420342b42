"""Given: what handlers are handed beside what was asked: the stores of the app."""

from typing import Annotated

from fastapi import Depends, Request

from queuectl.web.stores import Stores


def stores_of(request: Request) -> Stores:
    """Return the stores of the app."""
    found = request.app.state.stores
    assert isinstance(found, Stores)
    return found


Given = Annotated[Stores, Depends(stores_of)]
