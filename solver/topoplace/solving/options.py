"""What a user may set for a solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.result import Interference
from topoplace.solving.outcome import Bound

if TYPE_CHECKING:
    from topoplace.mapping.best import BestSoFar


@dataclass(frozen=True)
class Options:
    """What a user may set for a solve; some of it is for mappings alone.

    Attributes
    ----------
    time_limit
        Seconds; None for the method's own limit, or none.
    interference
        Of placements on tori: which jobs may share links.
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
    progress
        Takes a line of what a method has to say of its work; a method may call it often.
    best
        Takes every improvement (`report`); what it holds is the answer if the run is interrupted.
    """

    time_limit: float | None = None
    interference: Interference = Interference.STRICT
    seed: int = 0
    cell: tuple[int, ...] | None = None
    column_major: bool = False
    max_depth: int | None = None
    start: NDArray[np.int64] | None = None
    progress: Callable[[str], None] | None = None
    best: BestSoFar | None = None

    def report(
        self, nodes: NDArray[np.int64] | None, value: int | None, bound: Bound | None = None
    ) -> None:
        """Report an improvement of a mapping (see `BestSoFar.report`) to whoever listens."""
        if self.best is not None:
            self.best.report(nodes, value, bound)

    def say(self, line: str) -> None:
        """Tell whoever listens what the method is doing."""
        if self.progress is not None:
            self.progress(line)
