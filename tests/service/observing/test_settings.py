"""Servers that leave values out, or keep no history."""

from __future__ import annotations

import time

from waiting import wait_until

from queryard.service.http import models_observing, models_observing_past
from service.http.serving import a_server
from service.http.test_queries import submitted

SECRET = "SELECT a FROM small WHERE b = 'Ann Smith' AND a / 0 = no_such_column"


def test_a_server_that_redacts_keeps_no_values(tmp_path):
    history = {"history": tmp_path / "history.sqlite"}
    with a_server(tmp_path, session=history, redact=True) as server, server.client("ann") as ann:
        query = submitted(ann, SECRET)
        wait_until(lambda: ann.get("/v1/now").json()["ended"], 20)
        told = ann.get("/v1/now").json()["ended"][0]
        assert told["id"] == query
        assert told["sql"].startswith("SELECT a FROM small WHERE b = ?")
        assert server.yard.session.host.flush_history()
        day = time.strftime("%Y-%m-%d", time.gmtime(told["ended_at"]))
        pages = [
            ann.get("/v1/now").text,
            ann.get(f"/v1/archive/{day}").text,
            ann.get("/v1/performance", params={"by": "template"}).text,
            server.client("root").get("/v1/logs").text,
        ]
        assert query in pages[1]
        assert not [page for page in pages if "Smith" in page]


def test_without_a_history_there_is_a_present_and_an_empty_past(tmp_path):
    with a_server(tmp_path) as server, server.client("root") as root:
        found = root.get("/v1/performance")
        models_observing_past.Performance.model_validate(found.json())
        assert found.json()["queries"] == 0
        assert root.get("/v1/archive").json() == {"days": []}
        day = root.get("/v1/archive/2026-11-18").json()
        models_observing_past.ArchivedDay.model_validate(day)
        assert (day["queries"], day["total"]) == ([], 0)
        models_observing_past.SchedulerState.model_validate(root.get("/v1/scheduler").json())
        models_observing.Series.model_validate(root.get("/v1/series").json())
        models_observing.Now.model_validate(root.get("/v1/now").json())
