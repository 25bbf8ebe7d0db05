"""A defect of the kernel: every waiting query gets the error, and nothing is left."""

from __future__ import annotations

import threading

import pytest
from engine.native_driving import write_facts

import queryard
from queryard.core.errors import QueryardError


def test_no_caller_waits_for_a_kernel_that_has_failed(tmp_path, monkeypatch):
    write_facts(tmp_path, 1000)
    others = set(threading.enumerate())
    session = queryard.connect(tmp_path, slots=1, memory="2 GB", history=False)
    first = session.submit("SELECT count(*) FROM facts, range(99999999)")

    def fail(*events):
        raise RuntimeError("a mistake")

    kernel = session.host.ask(lambda coordinator: coordinator.kernel)
    monkeypatch.setattr(kernel, "handle", fail)
    second = session.submit("SELECT 1")
    for handle in (first, second):
        with pytest.raises(RuntimeError, match="a mistake"):
            handle.result(30)
        assert (handle.status, handle.ended) == ("failed", True)
    with pytest.raises(QueryardError, match=r"scheduler has failed.*a mistake"):
        session.sql("SELECT 2")
    session.close()
    left = {thread.name for thread in set(threading.enumerate()) - others}
    assert not {name for name in left if name.startswith("queryard-")}
    with pytest.raises(QueryardError, match="closed"):
        session.sql("SELECT 3")
