"""What OpenAPI says is so: random requests get answers of the kinds that it names."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

schemathesis = pytest.importorskip("schemathesis")
from service.processes import Process, a_process  # noqa: E402
from service.yard_ground import write_data  # noqa: E402

LIMITS = """
[service]
postgres = false
[service.limits]
statements_per_s = 1_000_000
open_results = 10_000
request = "200 kB"
"""
CHECKS = (
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
)


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """A server, what it says of itself, and a query.

    The server is a process of its own: Hypothesis goes over the modules of this process, and an
    import in a thread of the server would disturb it.
    """
    folder = tmp_path_factory.mktemp("openapi")
    data, config = folder / "data", folder / "yard.toml"
    data.mkdir()
    write_data(data)
    config.write_text(LIMITS)
    with a_process(folder, data, "--config", config, lives_s=3_600.0) as server:
        sql = {"sql": "SELECT n, t FROM numbers"}
        query = httpx.post(f"{server.url}/v1/queries", json=sql, headers=token_of(server)).json()
        document = httpx.get(f"{server.url}/openapi.json").json()
        yield server, document, query["id"]
        assert "Traceback" not in server.log()


def token_of(server: Process) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token}"}


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
    headers = token_of(server)
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
