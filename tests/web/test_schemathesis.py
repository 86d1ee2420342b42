"""The whole REST API under generated requests, good and bad: no 5xx, and every answer as it is described."""

import json
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import SearchStrategy, one_of
from schemathesis import Case, GenerationMode, SerializationContext
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi import checks

from tests.program import Cli
from tests.web.serving import Site

STREAMS = "/api/v1/events"
EACH = 2
"""How many good and how many bad requests an operation gets; the same ones in every run."""
# What is there, under every name that a path may ask for, so that good requests meet something.
NAME = "fuzzed"
THERE = {"id": NAME, "name": NAME, "key": "max_retries"}
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
STEADY = settings(
    max_examples=EACH,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schemathesis.serializer("application/x-ndjson")
def _lines(_context: SerializationContext, value: object) -> bytes:
    return value.encode(errors="replace") if isinstance(value, str) else json.dumps(value).encode()


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_no_request_breaks_the_server_or_gets_an_answer_that_is_not_described(site: Site, cli: Cli) -> None:
    schema = schemathesis.openapi.from_url(f"{site.url}/openapi.json").exclude(path=STREAMS)
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    # What has run comes first: other requests delete it.
    operations.sort(key=lambda each: not each.path.endswith(("/output", "/dlq/retry")))
    met: dict[str, set[int]] = {}
    _have_something(site)
    site.post("/api/v1/jobs", {"command": "exit 23", "max_retries": 0})
    cli.drain()

    with requests.Session() as session:
        for operation in operations:
            _have_something(site)
            asked = Asked(site, session, operation, met.setdefault(operation.label, set()))
            asked.examples()
            asked.good()
            asked.bad()

    described = site.get("/openapi.json").json()["paths"]
    assert len(met) == sum(len(methods) for path, methods in described.items() if path != STREAMS)
    assert set().union(*met.values()) >= {200, 201, 404, 409, 422}
    assert [label for label, statuses in met.items() if not statuses & {200, 201, 206, 409}] == []


class Asked:
    """The requests of one operation, and the statuses they met."""

    def __init__(
        self, site: Site, session: requests.Session, operation: APIOperation[Any, Any, Any, Any], met: set[int]
    ) -> None:
        self._site = site
        self._session = session
        self._operation = operation
        self._met = met
        names = [each.name for each in operation.path_parameters]
        self._there = {name: THERE[name] for name in names} or None

    def examples(self) -> None:
        """Send what the description gives as examples."""
        if examples := self._operation.get_strategies_from_examples():
            self._send(one_of(examples))

    def good(self) -> None:
        """Send what fits the description, to what is there."""
        self._send(self._operation.as_strategy(GenerationMode.POSITIVE, path_parameters=self._there))

    def bad(self) -> None:
        """Send what does not fit it."""
        self._send(self._operation.as_strategy(GenerationMode.NEGATIVE))

    def _send(self, cases: SearchStrategy[Case[Any]]) -> None:
        @STEADY
        @given(case=cases)
        def send(case: Case[Any]) -> None:
            if case.query:
                case.query.pop("follow", None)  # it would not end
            answer = case.call_and_validate(base_url=self._site.url, session=self._session, checks=CHECKS, timeout=60)
            self._met.add(answer.status_code)

        try:
            send()
        except Unsatisfiable:
            pass  # it takes nothing that could be bad


def _have_something(site: Site) -> None:
    """Have something of every kind again, whatever the requests before have done to it."""
    site.post("/api/v1/jobs", {"id": NAME, "command": "true", "group": NAME, "queue": NAME})
    site.ask("PUT", f"/api/v1/limits/{NAME}", {"slots": 2})
    site.post("/api/v1/schedules", {"name": NAME, "every": "1h", "job": {"command": "true"}})
    site.post("/api/v1/tokens", {"name": NAME, "role": "read"})
