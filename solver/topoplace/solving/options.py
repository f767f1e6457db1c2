"""What a user may set for a solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topoplace.result import Interference
from topoplace.solving.outcome import Bound, Number
from topoplace.solving.progress import Incumbent, Watch


@dataclass(frozen=True)
class Options:
    """What a user may set for a solve; some of it is for mappings alone.

    Attributes
    ----------
    time_limit
        Seconds; None for the method's own limit, or none.
    interference
        Of placements on tori: which jobs may share links.
    thorough
        Of placements on tori: whether what is left of the time limit goes into bounds of the later
        levels. Without it a limit only ends what would go on for longer.
    seed
        Of whatever a method draws at random.
    cell
        Of mappings: tasks of a cell of `grid-order`, per virtual dimension.
    column_major
        Of mappings: whether `grid-order` varies the first dimension fastest (``-C``).
    max_depth
        Of mappings: largest extent of a pencil window along the pencils.
    start
        Of mappings: the node of every task that a local search starts from.
    watch
        Called with the `Progress` of a solve a few times a second, and at its end.
    incumbent
        Takes what a method reports; `solve` sees to it.
    """

    time_limit: float | None = None
    interference: Interference = Interference.STRICT
    seed: int = 0
    thorough: bool = False
    cell: tuple[int, ...] | None = None
    column_major: bool = False
    max_depth: int | None = None
    start: NDArray[np.int64] | None = None
    watch: Watch | None = None
    incumbent: Incumbent | None = None

    def report(
        self, solution: Any, values: Sequence[Number], bounds: Sequence[Bound | None] = ()
    ) -> None:
        """Report a solution, or bounds alone, in case the solve ends here and now.

        See `Incumbent.report`.
        """
        if self.incumbent is not None:
            self.incumbent.report(solution, values, bounds)

    def say(self, phase: str, level: int = 0, bound: Number | None = None) -> None:
        """Tell what the method is doing (see `Incumbent.say`)."""
        if self.incumbent is not None:
            self.incumbent.say(phase, level, bound)
