"""One run of a mapping method that returns its best answer when its time is up or on Ctrl-C."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from topoplace.cli.progress import Progress
from topoplace.cli.signals import Interrupted, TimeUp, ended_after, rescued
from topoplace.mapping.best import BestSoFar

if TYPE_CHECKING:
    from topoplace.mapping.problem import MappingProblem
    from topoplace.result.mapping import MappingResult
    from topoplace.solving import Options

    Deliver = Callable[[MappingResult], int]

OVERTIME_SECONDS = 0.4
"""How long after its time limit a run may still go on, to end in its own way."""


class MapRun:
    """A mapping method at work.

    Parameters
    ----------
    problem, method, options
        As `map_tasks` takes them; `progress` and `best` of the options are set here.
    progress
        Prints what the method reports; None for a quiet run.
    """

    def __init__(
        self,
        problem: MappingProblem,
        method: str,
        options: Options,
        progress: Progress | None = None,
    ) -> None:
        self.problem, self.method, self.progress = problem, method, progress
        self.best = BestSoFar(progress.improved if progress else None)
        self.options = replace(options, best=self.best, progress=progress.say if progress else None)
        self.began = time.perf_counter()

    def run(self, deliver: Deliver) -> int:
        """Solve, deliver the result, and return what delivering returned.

        If the time limit is over and the method goes on, or on Ctrl-C, the result is the best
        reported so far, with ``limits.hit``. An interrupt before there is any goes on its way.
        """

        def rescue_answer() -> int | None:
            return None if self.best.nodes is None else deliver(self.best_result())

        with rescued(rescue_answer) as rescue:
            try:
                result = self._solve()
            except TimeUp:
                result = self.best_result()
            except Interrupted as interrupt:
                known = interrupt.signal_number == signal.SIGINT and self.best.nodes is not None
                if not (known and rescue.claim()):
                    raise
                result = self.best_result()
            if self.progress is not None:
                self.progress.close()
            return deliver(result)

    def best_result(self) -> MappingResult:
        """Return the best answer so far as a result; a bound known at once is not left out."""
        from topoplace.bounds.mapping import total_bound  # noqa: PLC0415 - heavy
        from topoplace.solving import result_of, stronger  # noqa: PLC0415 - heavy

        bound = stronger(total_bound(self.problem), self.best.bound)
        outcome = replace(self.best.outcome, bounds=(bound,))
        seconds = time.perf_counter() - self.began
        return result_of(self.problem, outcome, self.method, self.options, seconds)

    def _solve(self) -> MappingResult:
        from topoplace.solving import solve  # noqa: PLC0415 - heavy

        limit = self.options.time_limit
        self.began = time.perf_counter()
        over = math.inf if limit is None else limit + OVERTIME_SECONDS
        with ended_after(over, lambda: self.best.nodes is not None):
            return solve(self.problem, self.method, self.options)
