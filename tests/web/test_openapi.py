"""The description of the REST API: every operation is told in full, and every example fits its schema."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from queuectl.actions.connect import locate
from queuectl.model.edit import EDITABLE
from queuectl.model.fields import FIELDS, PARTS
from queuectl.web.app import make_app


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document as it is served."""
    home = tmp_path_factory.mktemp("home")
    return make_app(locate(None, {"QUEUECTL_HOME": str(home)})).openapi()


def test_every_operation_has_a_summary_an_id_of_its_own_and_an_example(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in _operations(document)]
    assert len(ids) == len(set(ids))
    for method, path, operation in _operations(document):
        where = f"{method} {path}"
        assert operation["summary"].strip(), where
        assert operation["tags"], where
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description"), f"{where}: {parameter['name']}"
        contents = [each["content"] for each in _good(operation) if "content" in each]
        assert contents or "204" in operation["responses"], where
        if "requestBody" in operation:
            contents.append(operation["requestBody"]["content"])
        for media in (media for content in contents for media in content.items()):
            assert media[1].get("example") is not None, f"{where}: {media[0]}"


def test_every_operation_says_what_may_go_wrong(document: dict[str, Any]) -> None:
    for method, path, operation in _operations(document):
        told = set(operation["responses"])
        assert told >= {"400", "401", "403", "422", "429", "503"}, f"{method} {path}"
        assert ("404" in told) or "{" not in path, f"{method} {path}"
        assert ("415" in told and "413" in told) or "requestBody" not in operation, f"{method} {path}"
    assert document["openapi"].startswith("3.1")
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_every_example_fits_its_schema(document: dict[str, Any]) -> None:
    checked = 0
    for method, path, operation in _operations(document):
        bodies = [each["content"] for each in _good(operation) if "content" in each]
        if "requestBody" in operation:
            bodies.append(operation["requestBody"]["content"])
        for content in bodies:
            for media, told in content.items():
                if media == "application/json":
                    schema = {**told["schema"], "components": document["components"]}
                    errors = jsonschema.Draft202012Validator(schema).iter_errors(told["example"])
                    assert [error.message for error in errors] == [], f"{method} {path}"
                    checked += 1
    assert checked > 30


def test_what_a_job_may_be_asked_for_is_described_field_by_field(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    assert set(schemas["job-request"]["properties"]) == {*FIELDS, *PARTS}
    assert set(schemas["job-edit-request"]["properties"]) == {*EDITABLE, "untags", "unset_env", "no_tags"}


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _good(operation: dict[str, Any]) -> list[dict[str, Any]]:
    return [told for status, told in operation["responses"].items() if status.startswith("2")]
