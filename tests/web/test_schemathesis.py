"""The whole REST API under generated requests, good and bad: no 5xx, and every answer as it is described."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
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

from queuectl.actions.connect import Target, locate
from tests.program import running_cli
from tests.web.serving import Site, serving

Met = dict[str, set[int]]
"""The statuses that the requests of each operation met."""

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


@pytest.fixture
def sites(sqlite_target: Target, postgres_url: str, tmp_path: Path) -> Iterator[list[Site]]:
    """The web face of a store of each kind: to think of a request takes longer than to send it twice."""
    environ = {"QUEUECTL_HOME": str(tmp_path / "home-beside"), "QUEUECTL_DATABASE_URL": postgres_url}
    with serving(sqlite_target) as one, serving(locate(None, environ)) as other:
        yield [one, other]


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_no_request_breaks_the_server_or_gets_an_answer_that_is_not_described(
    sites: list[Site], tmp_path: Path
) -> None:
    schema = schemathesis.openapi.from_url(f"{sites[0].url}/openapi.json").exclude(path=STREAMS)
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    # What has run comes first: other requests delete it.
    operations.sort(key=lambda each: not each.path.endswith(("/output", "/dlq/retry")))
    for site in sites:
        _have_something(site)
        site.post("/api/v1/jobs", {"command": "exit 23", "max_retries": 0})
        with running_cli(site.target, tmp_path) as cli:
            cli.drain()

    met: list[Met] = [{} for _ in sites]
    with ExitStack() as stack:
        sessions = [stack.enter_context(requests.Session()) for _ in sites]
        for operation in operations:
            for site in sites:
                _have_something(site)
            statuses = [each.setdefault(operation.label, set()) for each in met]
            asked = Asked([*zip(sites, sessions, statuses, strict=True)], operation)
            asked.examples()
            asked.good()
            asked.bad()

    described = sites[0].get("/openapi.json").json()["paths"]
    for each in met:
        assert len(each) == sum(len(methods) for path, methods in described.items() if path != STREAMS)
        assert set().union(*each.values()) >= {200, 201, 404, 409, 422}
        assert [label for label, statuses in each.items() if not statuses & {200, 201, 206, 409}] == []


class Asked:
    """The requests of one operation, sent to each site over its session, and the statuses they met there."""

    def __init__(
        self, sites: list[tuple[Site, requests.Session, set[int]]], operation: APIOperation[Any, Any, Any, Any]
    ) -> None:
        self._sites = sites
        self._operation = operation
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
            for site, session, met in self._sites:
                answer = case.call_and_validate(base_url=site.url, session=session, checks=CHECKS, timeout=60)
                met.add(answer.status_code)

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
