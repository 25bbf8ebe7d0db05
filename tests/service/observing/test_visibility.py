"""Whatever there is, a document names no query, text or tenant that its token may not see."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from queryard.estimate.work import Prediction
from queryard.live.choosing.state import PolicyState
from queryard.live.estimates.forecasts import Forecasts
from queryard.live.facts import QueryFacts, Timing
from queryard.live.overview import ClusterView, NodeGlance, Overview, Standing
from queryard.live.request import QueryRequest
from queryard.service.http.observing_stream import joined
from queryard.service.observing.archive import archive_document
from queryard.service.observing.clock import WallClock
from queryard.service.observing.cluster import cluster_document
from queryard.service.observing.ended import EndedQueries, EndedQuery
from queryard.service.observing.now import Moment, Present, View
from queryard.service.observing.visibility import Visibility
from queryard.sim.forecast import Forecast

# Names that are beginnings of others.
TENANTS = ("acme", "acme/emea", "acme/emea/uk", "acmex", "zeta")
HOLDS = ("", "slots", "reader", "entering", "planning", "shared", "memory", "cap", "order")
CLOCK = WallClock(now=lambda: 50.0, unix=lambda: 1_000_050.0)


def a_query(name: str, tenant: str = "acme", **more) -> QueryFacts:
    """What is published of a query."""
    request = QueryRequest(f"SELECT '{name}' -- of:{tenant}:", (), (), "native", tenant)
    prediction = Prediction(1.0, 0, "guess", 2.0)
    values = {"submitted_s": 0.0, "prediction": prediction, "expected_s": 1.0, **more}
    return QueryFacts(id=name, request=request, **values)


@st.composite
def queries_of_all(draw):
    """A query, and how it stands: None if it waits behind others."""
    number = draw(st.integers(0, 10**6))
    tenant = draw(st.sampled_from(TENANTS))
    started = draw(st.booleans())
    facts = a_query(
        f"id{number}of:{tenant}:",
        tenant,
        submitted_s=draw(st.floats(0, 40)),
        started_s=45.0 if started else None,
        shares_with=draw(st.sampled_from(["", "id77of:zeta:"])),
    )
    slots = draw(st.integers(0, 4)) if started else 0
    return facts, Standing(slots, draw(st.sampled_from(HOLDS)), 1e6)


EVERY = st.lists(queries_of_all(), max_size=30, unique_by=lambda each: each[0].id)


def present(queries) -> Present:
    policy = PolicyState("fair", 1.0, "by of:zeta:", "because of:zeta: floods", None)
    waiting = [facts.id for facts, _ in queries if facts.started_s is None]
    overview = Overview(
        now_s=50.0,
        facts=tuple(facts for facts, _ in queries),
        turns={query: (place, place / 2) for place, query in enumerate(waiting[::-1])},
        standings={facts.id: standing for facts, standing in queries},
        slots=4,
        busy_slots=3,
        memory_bytes=1e9,
        reserved_bytes=1e6,
        policy=policy,
        paused_by=None,
    )
    found = {facts.id: Forecast(facts.id, 51.0, 52.0) for facts, _ in queries}
    return Present(overview, Forecasts(found, 49.0), False, 1000, TENANTS)


def of_others(document, visibility: Visibility) -> list[str]:
    text = json.dumps(document)
    return [name for name in TENANTS if f"of:{name}:" in text and not visibility.may_see(name)]


VISIBILITIES = st.sampled_from([*map(Visibility, TENANTS), Visibility(None)])


@given(EVERY, VISIBILITIES, st.integers(1, 10))
def test_the_present_names_what_is_seen_only_and_counts_all_of_it(queries, visibility, limit):
    document = Moment(present(queries), CLOCK).document([], View(visibility, limit))
    assert not of_others(document, visibility)
    seen = [each for each in queries if visibility.may_see(each[0].request.tenant)]
    waiting = sum(facts.started_s is None for facts, _ in seen)
    assert len(document["running"]) == len(seen) - waiting
    assert len(document["waiting"]) + document["more_waiting"] == waiting
    assert all(visibility.may_see(each["name"]) for each in document["tenants"])
    sums = Counter()
    for each in document["tenants"]:
        sums.update({name: each[name] for name in ("waiting", "running", "slots")})
    assert sums["waiting"] == waiting
    assert sums["slots"] == sum(standing.slots for _, standing in seen)
    # Those first whose turn comes first.
    turns = present(queries).overview.turns
    shown = [turns[each["id"]] for each in document["waiting"]]
    assert shown == sorted(shown)


@given(EVERY, VISIBILITIES, st.sampled_from([*TENANTS, "acme/em", "other"]))
def test_a_view_of_one_tenant_lists_its_queries_and_counts_all(queries, visibility, tenant):
    moment = Moment(present(queries), CLOCK)
    whole = moment.document([], View(visibility, 100))
    found = moment.document([], View(visibility, 100, tenant))
    assert found["tenants"] == whole["tenants"]
    for name in ("running", "waiting"):
        wanted = [each for each in whole[name] if Visibility(tenant).may_see(each["tenant"])]
        assert found[name] == wanted
    some = moment.document([], View(visibility, 1, tenant))
    assert some["waiting"] == found["waiting"][:1]
    assert some["more_waiting"] == max(0, len(found["waiting"]) - 1)


@given(EVERY, st.lists(VISIBILITIES, min_size=1, max_size=4))
def test_documents_are_joined_of_queries_that_are_encoded_once(queries, visibilities):
    moment = Moment(present(queries), CLOCK)
    known = {}
    for visibility in visibilities:
        document = moment.document([ended(1, "acme")], View(visibility, 20))
        assert json.loads(joined(document, known)) == document
        # A query that is known is not encoded again.
        again = dict.fromkeys(known, b"0")
        assert json.loads(joined(document, again))["running"] == [0] * len(document["running"])
    seen = {each["id"] for each in document["running"] + document["waiting"]}
    assert seen <= {name for name, _ in known}


def ended(number: int, tenant: str) -> EndedQuery:
    timing = Timing(1.0, 2.0, 3.0 + number, 0.1, 0.1, 0.0, None, "", False)
    return EndedQuery(f"id{number}of:{tenant}:", "SELECT 1", tenant, "finished", timing, None, "")


@given(st.lists(st.sampled_from(TENANTS), max_size=120), VISIBILITIES)
def test_the_last_that_ended_are_the_last_of_those_that_are_seen(tenants, visibility):
    kept = EndedQueries(redacts=False)
    rows = [ended(number, tenant) for number, tenant in enumerate(tenants)]
    for row in rows:
        kept.keep(row)
    seen = [row for row in rows if visibility.may_see(row.tenant)]
    assert kept.last(visibility) == seen[::-1][:20]
    document = Moment(present([]), CLOCK).document(kept.last(visibility), View(visibility, 10))
    assert not of_others(document, visibility)


@given(EVERY, VISIBILITIES)
def test_nodes_count_what_they_do_not_name(queries, visibility):
    names = tuple(facts.id for facts, _ in queries)
    node = NodeGlance("n", "n", False, 4, 3, 1.0, 1e9, 1e6, 0.0, names)
    view = ClusterView(50.0, (node,), {"secret_table": 0.5})
    seen = {facts.id for facts, _ in queries if visibility.may_see(facts.request.tenant)}
    document = cluster_document(view, "local", seen.__contains__, visibility.is_all)
    assert not of_others(document, visibility)
    (found,) = document["nodes"]
    assert len(found["running"]) + found["running_others"] == len(queries)
    assert ("secret_table" in json.dumps(document)) == visibility.is_all


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(TENANTS)), unique=True), VISIBILITIES)
def test_days_sum_up_what_is_seen(days, visibility):
    rows = [
        {
            "day": f"2026-01-0{day}",
            "tenant": tenant,
            "queries": 2,
            "failed": 1,
            "finished": 1,
            "response_s": 0.5,
            "work_s": 0.25,
        }
        for day, tenant in days
    ]
    found = archive_document(rows, visibility)["days"]
    seen = [row for row in rows if visibility.may_see(row["tenant"])]
    assert sum(day["queries"] for day in found) == 2 * len(seen)
    assert sum(day["tenants"] for day in found) == len(seen)
    assert all(day["mean_response_s"] == 0.5 for day in found)
