"""An online query on leased slots: a statement per group of parts, an answer after each.

    tables of dimensions ──▶ parts 1 │ 2 │ 3 4 │ 5 6 7 8 │ … ──▶ the exact answer
                                  answer  answer ─▶ stop: near enough, out of time, not wanted

Each statement adds rows to a temporary table of the instance: per part and group, what the answer
is made of. While the query is the only one of its kind, a statement reads as much as there is time
for until another answer is wanted, so that its fixed costs and the hash tables of joins are paid a
few times only. Statements remain divisible: slots come and go within one as in any native query.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

from queryard.estimate.online import FEW_FILES
from queryard.results.online import OnlineAnswer
from queryard.results.streams import Output, ResultStream

from ..errors import QueryCancelled
from ..meter import Meter
from ..native_query import NativeQuery
from ..places import OnPool
from ..program import Reports
from ..statement import Statement
from ..syntax.classify import Classified, classify
from .circles import Circles
from .pace import Pace
from .refining import Refining
from .statement import OnlineStatement

# A statement may take this long, or this share of the time so far, while no other online query is
# active; beside others, so that each has its turn soon, this long.
ALONE_S, ALONE_SHARE = 0.5, 0.25
BESIDE_S = 0.15
# What is left is read at once if it is no more than this many times as much as there is time for.
REST = 1.4
# A forecast from a few parts is vague: at most so many times what was read is read in all by it.
GROWTH = 3
# An answer that comes this share of the wanted time earlier is not too early.
EARLY = 0.2
# The scheduler is told of parts without an answer if that takes at most this share of a statement.
TELL_SHARE = 0.05
# A statement that takes less, or as the first one reads fewer rows, is handed over in one call.
MOMENT_S, MOMENT_ROWS = 0.05, 500_000
# If the first part lets us expect that fewer rows of the whole table pass, they are all read.
LEAST_ROWS = 2_000
# So many groups with fewer rows each than this in the first part of a hundred, and most have fewer
# than a hundred rows in the whole table.
MANY_GROUPS, ROWS_PER_GROUP = 50, 1.5
# If the tables it joins with leave more rows than this share of the sample's, all is read at once.
LARGEST_DIMENSION = 0.1

_NAMELESS = classify("SELECT 1")[0]


class OnlineQuery(NativeQuery):
    """Statements are made one by one, from what is known after the last."""

    def __init__(
        self, place: OnPool, given: OnlineStatement, output: Output, circles: Circles
    ) -> None:
        super().__init__(place, (), output, ())
        self._given = given
        self._wish = given.wish
        self._circles = circles
        self._report: Reports = _nothing
        self._meter = Meter()
        self._refining = Refining(given.plan, given.sample, given.wish)
        self._to_do = self._refining.setup
        self._parts = len(given.sample.parts)
        # Keeps its sample from being removed.
        self._holding = contextlib.ExitStack()
        # Where it joined the circle; None before its first statement.
        self._joined: int | None = None
        self._read = 0
        self._reading = 0
        self._began_s = self._statement_s = time.monotonic()
        self._statement_held_s = 0.0
        self._pace = Pace()
        # When it last answered; how many parts the scheduler was told of, and their cost.
        self._told_s = 0.0
        self._told_parts = 0
        self._told_work_s = 0.0
        # What it took the last time to find out how far the answer had moved.
        self._tell_s = 0.0
        # The rows of the query itself are put out, because parts of them do not give the answer.
        self._is_whole = False
        self._is_out_of_time = False

    @property
    def asked(self) -> tuple[Classified, Any]:
        return classify(self._given.plan.sql)[0], ()

    def reports_to(self, report: Reports, meter: Meter) -> None:
        self._report, self._meter = report, meter

    def progress(self) -> float:
        """Share of the parts that were read."""
        here = self._current.progress() if self._current is not None else 0.0
        return 1.0 if self.ended else min(1.0, (self._read + here * self._reading) / self._parts)

    # --- statements, from a slot's thread --------------------------------------------------------

    def _next_statement(self) -> Statement:
        if self._joined is None:
            self._holding.enter_context(self._given.sample.held())
            self._joined = self._circles.join(self._given.sample)
            self._refining.begin_at(self._joined)
        self._statement_s, self._statement_held_s = time.monotonic(), self._meter.held_s
        if self._is_whole:
            return self._make(classify(self._given.plan.sql)[0], self.output)
        if self._to_do:
            return self._make(classify(self._to_do[0])[0], _Nowhere())
        self._reading = self._how_many()
        self._circles.reads(self._given.sample, self._joined + self._read)
        return self._of_parts(self._refining.batch(self._read, self._reading))

    def _of_parts(self, sql: str) -> Statement:
        """A statement that reads parts: it names no table of the user's, so none is looked for."""
        rows = self._given.sample.parts[self._read].rows
        short_s = self._pace.seconds(self._reading)
        return Statement(
            self._place.enter(),
            sql,
            _Nowhere(),
            (),
            lambda connection, name: self._supply(_NAMELESS, connection, name),
            short_s < MOMENT_S if short_s else rows < MOMENT_ROWS,
            self._place.shares_instance,
        )

    def _how_many(self) -> int:
        """How many parts the next statement reads: as many as there is time for.

        A query that is to stop at an error reads as much as it will need for that; one that is to
        answer all the time reads twice as much as before.
        """
        if not self._pace.part_s:
            return 1
        left = self._parts - self._read
        most = self._pace.most(self._time_s())
        if self._wish.stop_at is not None:
            wanted = self._refining.needed(self._read, self._wish.stop_at) or GROWTH * self._read
            most = min(most, max(1, min(wanted, GROWTH * max(self._read, 2)) - self._read))
            return min(most, left)
        if not self._wish.every_s:
            most = min(most, 2 * self._reading)
        return left if left <= REST * most else most

    def _time_s(self) -> float:
        """How long the next statement may take."""
        now = time.monotonic()
        if self._circles.active > 1:
            most_s = BESIDE_S
        else:
            due_s = self._told_s + self._wish.every_s - now
            most_s = max(due_s if self._wish.every_s else ALONE_S, ALONE_SHARE * self._served_s)
        if self._wish.within_s is not None:
            most_s = min(most_s, (self._wish.within_s - self._given.log.elapsed_s) / 2)
        return most_s

    @property
    def _served_s(self) -> float:
        return time.monotonic() - self._began_s

    def _advance(self, done: Statement) -> bool:
        if self._is_whole:
            return False
        if self._to_do:
            del self._to_do[0]
            if not self._to_do:
                self._check_dimensions()
            return True
        wall_s = time.monotonic() - self._statement_s
        self._pace.learn(self._reading, wall_s, self._meter.held_s - self._statement_held_s)
        self._read += self._reading
        if not self._given.sample.is_current():
            # Parts of two states do not make an answer.
            self._run_whole("the files of its largest table have changed since it began")
            return True
        if self._read == self._reading and self._must_be_whole():
            return True
        if self._read == self._parts and self._wish.groups:
            self._refining.check_groups(self._place.enter(), self._read)
        if self._read == self._parts and not self._given.plan.merges:
            self._tell()
            self._is_whole = self._given.log.is_whole = True
            return True
        if not self._is_due():
            if self._tell_s <= TELL_SHARE * self._pace.last[1]:
                self._tell()
            return True
        answer = self._answered()
        if not self._is_enough(answer):
            return True
        self._put_out(answer)
        return False

    def _is_due(self) -> bool:
        """Whether to answer now: it costs as much as reading some ten thousand rows."""
        if self._read == self._parts or not self._told_s or self._wish.stop_at is not None:
            return True
        return time.monotonic() - self._told_s >= (1 - EARLY) * self._wish.every_s

    def _check_dimensions(self) -> None:
        """Tables that are joined are there: every statement makes hash tables of them."""
        rows = self._refining.dimension_rows(self._place.enter())
        most = LARGEST_DIMENSION * self._given.sample.total_rows
        if rows > most:
            self._run_whole(
                f"it joins with {rows:,} rows, which every statement would have to go through"
            )

    def _run_whole(self, reason: str) -> None:
        """Give up estimating, and run the query as it is."""
        self._is_whole = self._given.log.is_whole = True
        self._given.log.reason = reason

    def _must_be_whole(self) -> bool:
        """Whether the first part shows that estimates would be of little use."""
        if self._read == self._parts:
            return False
        rows, groups = self._refining.passed(self._place.enter())
        passed = rows * self._parts / self._read
        if passed < LEAST_ROWS:
            self._run_whole(
                f"only about {passed:,.0f} rows have an effect on the answer, too few to estimate "
                "from"
            )
        elif groups >= MANY_GROUPS and rows < ROWS_PER_GROUP * groups:
            self._run_whole(
                f"its groups are small: {rows:,} rows that were read are in {groups:,} groups"
            )
        return self._is_whole

    # --- answers ---------------------------------------------------------------------------------

    def _answered(self) -> OnlineAnswer:
        """Tell the user what the answer is now, and the scheduler how far it moved."""
        connection = self._place.enter()
        log = self._given.log
        if self._read == self._parts:
            answer = self._refining.exact(connection, log.elapsed_s)
        else:
            answer = self._refining.answer(connection, self._read, log.elapsed_s, self._pace.part_s)
        log.put(answer)
        self._told_s = time.monotonic()
        self._tell(answer.error)
        return answer

    def _tell(self, error: float | None = None) -> None:
        """Tell the scheduler how the answer has become better since the last time."""
        began_s = time.monotonic()
        course = self._refining.course(self._place.enter(), self._read)
        moves, left = course.moves(self._told_parts), course.left()
        self._tell_s = time.monotonic() - began_s
        work_s = self._meter.work_s
        core_s = (work_s - self._told_work_s) / len(moves)
        self._told_parts, self._told_work_s = self._read, work_s
        self._report(self._read, moves, core_s, error, left)

    def _is_enough(self, answer: OnlineAnswer) -> bool:
        wish = self._wish
        if answer.exact or self._is_out_of_time:
            return True
        if wish.within_s is not None and self._given.log.elapsed_s >= wish.within_s:
            return True
        if wish.stop_at is None or answer.error is None or self._read < FEW_FILES:
            return False
        return answer.error <= wish.stop_at

    def _put_out(self, answer: OnlineAnswer) -> None:
        """The last answer is the query's answer, also for clients that know of no other."""
        table = answer.arrow()
        self.output.start(table.schema, answer.types)
        for batch in table.to_batches():
            self.output.put(batch)

    def _failed(self, error: BaseException) -> None:
        newest = self._given.log.newest
        if self._is_out_of_time and isinstance(error, QueryCancelled) and newest is not None:
            # It may have been reading what it could not estimate from.
            self._given.log.is_whole = False
            self._put_out(newest)
            self._end(None)
        else:
            self._end(error)

    def _leave(self) -> None:
        self._holding.close()
        if self._joined is not None:
            self._circles.leave(self._given.sample)
            # The instance may be broken: then it is closed, and the tables go with it.
            with contextlib.suppress(Exception):
                connection = self._place.enter()
                for sql in self._refining.teardown:
                    connection.run(sql)
        super()._leave()

    # --- from outside ----------------------------------------------------------------------------

    def poll(self) -> None:
        within_s = self._wish.within_s
        log = self._given.log
        is_late = within_s is not None and log.elapsed_s >= within_s
        statement = self._current
        answered = log.newest is not None
        if is_late and self._is_whole and not answered:
            self._end(self._wish.no_answer(log.reason))
            return
        if is_late and answered and statement is not None and not self._settling:
            # What the statement has read so far is lost.
            self._is_out_of_time = True
            statement.cancel()
            return
        super().poll()


class _Nowhere(ResultStream):
    """A statement that fills a table has no rows for the user."""

    def put(self, batch: Any) -> None:
        pass


def _nothing(
    part: int, moves: Sequence[float], core_s: float, error: float | None, left: float | None
) -> None:
    pass
