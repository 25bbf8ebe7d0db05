"""What OpenAPI says is so: random requests get answers of the kinds that it names."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

schemathesis = pytest.importorskip("schemathesis")
from queryard.service.config import ServiceLimits  # noqa: E402
from service.http.serving import a_server  # noqa: E402

CHECKS = (
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
)


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """A server, and what it says of itself."""
    limits = ServiceLimits(statements_per_s=1e6, open_results=10_000, request_bytes=200_000)
    folder = tmp_path_factory.mktemp("openapi")
    with a_server(folder, limits=limits, session={"history": folder / "h.sqlite"}) as made:
        with made.client("root") as root:
            query = root.post("/v1/queries", json={"sql": "SELECT n, t FROM numbers"}).json()["id"]
        document = httpx.get(f"{made.url}/openapi.json").json()
        yield made, document, query


def test_every_answer_has_a_description_and_every_request_an_example(described):
    _, document, _ = described
    assert document["openapi"].startswith("3.")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert all(answer["description"] for answer in operation["responses"].values()), where
            if path not in ("/healthz", "/readyz"):
                assert "401" in operation["responses"], where
    assert document["components"]["schemas"]["QueryBody"]["examples"]
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def random_requests(described, examples: int) -> None:
    server, document, query = described
    # These streams have no end.
    endless = ("/v1/events", "/v1/now/stream")
    document = {
        **document,
        "paths": {name: each for name, each in document["paths"].items() if name not in endless},
    }
    schema = schemathesis.openapi.from_dict(document)
    headers = {"Authorization": f"Bearer {server.secrets['root']}"}
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def check(case):
            if "query" in (case.path_parameters or {}) and len(case.path_parameters["query"]) % 2:
                case.path_parameters["query"] = query
            if isinstance(case.query, dict) and "wait" in case.query:
                case.query["wait"] = 0.05
            case.call_and_validate(
                base_url=server.url, headers=headers, checks=list(CHECKS), timeout=30
            )

        check()


def test_random_requests_get_answers_as_described(described):
    random_requests(described, 4)


@pytest.mark.long
def test_many_random_requests_get_answers_as_described(described):
    random_requests(described, 300)
