"""A host on data as its operator has it: what it reads, what happens there, by which rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from queryard.core.errors import QueryardError, unknown_name
from queryard.core.model import Tenant
from queryard.sim.forecast import Forecast
from queryard.sql.catalog.quoting import written_name

from .admission.limits import Limits
from .admission.tenants import Tenants
from .choosing.state import BY_OPERATOR, PolicyChange, PolicyState
from .expected import Expected
from .facts import QueryView
from .monitor import SessionReport
from .opening import Opened
from .overview import Overview, SessionNodes
from .router import Steering
from .rules import Rules, read_rules
from .why import WaitReport

# What is learnt from queries that have ended: what templates took, how far prices are off, what a
# portfolio knows of its candidates and of queues.
MODELS = ("templates", "prices", "portfolio")
# How long `forecasts` waits for one that is being made.
FORECASTS_S = 2.0


class OperatedHost:
    """It asks nothing itself: a `Session` is one with a client, which does."""

    def __init__(self, opened: Opened) -> None:
        self.host = opened.host
        self.catalog = opened.host.catalog
        self.slots = opened.slots
        self.memory_bytes = opened.memory_bytes
        self.own_bytes = opened.own_bytes
        """What its own instance may use, for temporary tables, frames and writes."""
        self._rules = opened.rules
        # Where it is served: the controls of the server, for other processes of its user.
        self.steering: Steering | None = None

    @property
    def is_here(self) -> bool:
        """Whether this is the process that has opened it, and no fork."""
        return self.host.owner.is_here

    def check_owner(self) -> None:
        """Raise in a forked process: the threads are the other process's."""
        self.host.owner.check()

    # --- looking on --------------------------------------------------------------------------

    def now(self) -> float:
        """The session's clock: seconds since it began. All times it tells are on it."""
        return self.host.now()

    def queries(self) -> tuple[QueryView, ...]:
        """All active queries, the earliest first."""
        return self.host.looking.views()

    def overview(self) -> Overview:
        """All active queries and what holds each, and the cluster, at one moment."""
        return self.host.looking.overview()

    def expected(self, overview: Overview) -> dict[str, Expected]:
        """In how many seconds each query of an overview starts and ends, about; at once."""
        return self.host.looking.expected(overview)

    def forecasts(self) -> dict[str, Forecast]:
        """When each query is expected to start and end, if estimates are right and none arrives."""
        return self.host.looking.forecasts(FORECASTS_S)

    def why(self, query: str) -> WaitReport:
        """What is ahead of an active query, which rule holds it, when it will start and end."""
        return self.host.looking.wait_report(self.host.active_query(query))

    def cluster(self) -> SessionNodes:
        """The nodes on which queries run, and what each does now."""
        backend = self.host.backend
        return SessionNodes(self.host.looking.cluster().nodes, backend.notes(), backend.refused)

    def report(self) -> SessionReport:
        """What the session itself has cost so far, and how often slots overstayed."""
        return self.host.looking.report()

    # --- policies ------------------------------------------------------------------------------

    def use_profile(
        self, profile: str | Mapping[str, Any], *, by: str = BY_OPERATOR, reason: str = ""
    ) -> None:
        """Decide by another policy from now on; what runs is not disturbed.

        `by` and `reason` say what has chosen it, and why, for `policy_state` and the journal.
        """
        self._follow(self._rules.with_profile(profile), by, reason)

    @property
    def profile(self) -> Mapping[str, Any]:
        """The policy in force as a table of parts; under a portfolio, the chosen candidate."""
        rules = self._rules
        return rules.profile if rules.portfolio is None else self.host.policy.profile()

    @property
    def portfolio(self) -> Mapping[str, Any] | None:
        """The portfolio that chooses the policy, as a table; None under a fixed policy."""
        portfolio = self._rules.portfolio
        return None if portfolio is None else portfolio.document

    @property
    def chosen_profile(self) -> str | Mapping[str, Any]:
        """The policy as it was asked for: a name, or a table; `use_profile` takes it again."""
        return self._rules.chosen

    def policy_state(self) -> PolicyState:
        """The policy in force: its name, since when, what has chosen it, and why."""
        return self.host.policy.state()

    def policy_changes(self, limit: int = 100) -> tuple[PolicyChange, ...]:
        """The last changes of the policy, the latest first."""
        return self.host.policy.changes(limit)

    def policy_decisions(self, limit: int = 100) -> list[dict[str, Any]]:
        """The last decisions of a portfolio as plain data, the latest first.

        Each has `at` (Unix seconds), `trigger`, the number of `waiting` queries, the `candidates`
        (each with `name`, `score`, `objectives` and why it was `dropped`), the `chosen` one and the
        `reason`, `took_s`, whether it was `remembered`, the `forecast` score and the `outcome`.
        """
        return self.host.policy.decisions(limit)

    def use_tenants(
        self,
        tenants: Mapping[str, Any] | Sequence[Tenant] | Tenants | None,
        limits: Mapping[str, Any] | Limits | None = None,
        profile: str | Mapping[str, Any] | None = None,
        *,
        by: str = BY_OPERATOR,
        reason: str = "",
    ) -> None:
        """Share by other tenants and hold to other limits from now on, as `connect` takes them.

        What runs is not disturbed. The policy stays unless a `profile` is given. If something is
        wrong, nothing changes.
        """
        chosen = self._rules.chosen if profile is None else profile
        known = self._rules
        rules = read_rules(known.bounds, tenants, limits, chosen, known.on_cluster)
        self._follow(rules, by, reason)
        self.host.limit(rules.limits, rules.tenants.limits)

    def _follow(self, rules: Rules, by: str, reason: str) -> None:
        """Rules count once the host follows their policy."""
        self.host.policy.choose(rules.profile, by, reason, rules.portfolio)
        self._rules = rules

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """The tenants that were named, with their shares."""
        return self._rules.tenants.shares

    @property
    def limits(self) -> Limits:
        """The limits of all tenants together."""
        return self._rules.limits

    @property
    def tenant_limits(self) -> Mapping[str, Limits]:
        """The limits of tenants that have some."""
        return dict(self._rules.tenants.limits)

    def pause(self, by: str = "") -> None:
        """Start no waiting query from now on; what runs goes on, and queries can be submitted.

        `by` says on whose word: `why` tells it of every query that waits. A query that is identical
        to a running one is still answered together with it.
        """
        self.host.pause(by)

    def resume(self) -> None:
        """Let waiting queries start again."""
        self.host.resume()

    @property
    def paused_by(self) -> str | None:
        """On whose word no query starts; None while queries start."""
        return self.host.ask(lambda coordinator: coordinator.kernel.state.paused_by)

    def reset_models(
        self, models: Collection[str] = MODELS, *, before: float | None = None
    ) -> Callable[[], None]:
        """Forget what was learnt from queries that ended before a time (seconds since 1970; now).

        `templates` is what queries of each template took, in the history of earlier sessions, too;
        `prices` is how far predictions from plans and from bytes were off; `portfolio` is what its
        forecasts were worth, and what it has decided for which queue, whenever that was. What waits
        is predicted anew at once. The history itself stays.

        What it returns gives back what was forgotten, in the place of what was learnt since.
        """
        for model in models:
            if model not in MODELS:
                raise QueryardError(unknown_name("model", model, MODELS))
        return self.host.learnt.reset(models, time.time() if before is None else before)

    # --- tables --------------------------------------------------------------------------------

    def register(self, name: str, table: object) -> None:
        """Name another table: a path, a pattern, or a frame (Arrow, pandas, Polars).

        A table that already has the name is replaced. Frames are copied when first used; register
        a frame again after changing it.
        """
        self.host.check_open()
        self.catalog.add(name, table)

    def unregister(self, name: str) -> None:
        """Forget a table that was registered."""
        self.host.check_open()
        self.catalog.remove(name)

    def tables(self) -> tuple[str, ...]:
        """The names of all tables, as SQL writes them; `catalog` knows their columns and files."""
        return tuple(written_name(key) for key in sorted(self.catalog.tables))

    def refresh(self) -> tuple[str, ...]:
        """Look at the files again; the names of tables that have changed."""
        self.host.check_open()
        return self.catalog.refresh()

    def shuffle(
        self, table: str, *, seed: int = 0, progress: Callable[[float], None] | None = None
    ) -> None:
        """Make a shuffled copy of a table, for online queries; it stays until the table changes.

        `progress` hears the share that is done. If a copy of it is being made already, this waits
        for that one. `queryard shuffle` does the same, and removes it.
        """
        from queryard.engine.sampling import copy_places, find_copy, shuffle_in_turn

        self.host.owner.check()
        self.catalog.refresh()
        found = self.catalog[table]
        places = copy_places(self.catalog, found)
        if find_copy(found, places) is None:
            told = progress or (lambda share: None)
            shuffle_in_turn(found, places, seed=seed, progress=told)
