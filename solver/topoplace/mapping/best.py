"""The best answer known while a method runs, kept for whoever interrupts or watches it."""

from __future__ import annotations

from collections.abc import Callable

from topoplace.mapping.graph import IntArray
from topoplace.mapping.mapped import outcome_of
from topoplace.solving import Bound, Outcome, stronger


class BestSoFar:
    """The best mapping and the highest bound that a method has reported so far.

    Methods report every improvement (`Options.report`); a report that improves nothing is
    ignored, so that they need not compare. Each change is one assignment: an interrupt sees the
    old answer or the new one.

    Parameters
    ----------
    watch
        Called with this object after every improvement.
    """

    def __init__(self, watch: Callable[[BestSoFar], None] | None = None) -> None:
        self._watch = watch
        self._answer: tuple[IntArray, int] | None = None
        self._bound: Bound | None = None

    @property
    def nodes(self) -> IntArray | None:
        """The node of every task in the best mapping reported; None before the first."""
        return self._answer[0] if self._answer else None

    @property
    def value(self) -> int | None:
        """The hop-bytes of that mapping, in bytes x hops."""
        return self._answer[1] if self._answer else None

    @property
    def bound(self) -> Bound | None:
        """The highest bound reported."""
        return self._bound

    @property
    def outcome(self) -> Outcome:
        """What is known, as the outcome of a method that was ended early."""
        return outcome_of(self.nodes, hit=True, bound=self.bound)

    def report(self, nodes: IntArray | None, value: int | None, bound: Bound | None = None) -> None:
        """Keep what is better than all reported before.

        Parameters
        ----------
        nodes, value
            Node of every task, shape ``(num_tasks,)`` (copied), and its hop-bytes; both None to
            report a bound alone.
        bound
            A bound on the hop-bytes of any mapping.
        """
        improved = False
        if nodes is not None and value is not None and (self.value is None or value < self.value):
            self._answer = (nodes.copy(), value)
            improved = True
        highest = stronger(self._bound, bound)
        if highest is not self._bound:
            self._bound = highest
            improved = True
        if improved and self._watch is not None:
            self._watch(self)
