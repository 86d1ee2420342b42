"""Given: what handlers are handed beside what was asked: the stores of the app, the shared view, the end."""

import asyncio
from typing import Annotated

from fastapi import Depends, Request

from queuectl.web.examining import Examinations
from queuectl.web.figures import Figures
from queuectl.web.logins import Logins
from queuectl.web.reach import Reach
from queuectl.web.snapshot import Board
from queuectl.web.stores import Stores


def stores_of(request: Request) -> Stores:
    """Return the stores of the app."""
    found = request.app.state.stores
    assert isinstance(found, Stores)
    return found


def board_of(request: Request) -> Board:
    """Return the view of the store that all dashboards share."""
    found = request.app.state.board
    assert isinstance(found, Board)
    return found


def figures_of(request: Request) -> Figures:
    """Return what takes long to count."""
    found = request.app.state.figures
    assert isinstance(found, Figures)
    return found


def examinations_of(request: Request) -> Examinations:
    """Return what examines the store."""
    found = request.app.state.examinations
    assert isinstance(found, Examinations)
    return found


def closing_of(request: Request) -> asyncio.Event:
    """Return what is set when the server was asked to stop: a stream ends then, else it would hold up the stop."""
    found = request.app.state.closing
    assert isinstance(found, asyncio.Event)
    return found


def logins_of(request: Request) -> Logins:
    """Return who is let in."""
    found = request.app.state.logins
    assert isinstance(found, Logins)
    return found


def reach_of(request: Request) -> Reach:
    """Return how the server is reached."""
    found = request.app.state.reach
    assert isinstance(found, Reach)
    return found


Given = Annotated[Stores, Depends(stores_of)]
SharedBoard = Annotated[Board, Depends(board_of)]
SharedExaminations = Annotated[Examinations, Depends(examinations_of)]
SharedFigures = Annotated[Figures, Depends(figures_of)]
