"""Schemas: what the JSON of queuectl looks like, a file per command and per thing, for both faces."""

import json
import os

FOLDER = os.path.dirname(__file__)


def names(folder: str = FOLDER) -> list[str]:
    """Return what there is a schema of."""
    return sorted(name.removesuffix(".json") for name in os.listdir(folder) if name.endswith(".json"))


def load(name: str, folder: str = FOLDER) -> "dict[str, object]":
    """Return the JSON schema with a name."""
    with open(os.path.join(folder, f"{name}.json"), encoding="utf-8") as file:
        found: dict[str, object] = json.load(file)
        return found
