"""Undirected graphs whose files list every edge at both of its ends."""

from __future__ import annotations

from topoplace.errors import InputError
from topoplace.snapshot.application import GraphApplication


class Edges:
    """The arcs read so far; an edge is complete when it was seen from both ends.

    Parameters
    ----------
    file
        For messages.
    num_tasks
        Number of vertices.
    base
        Number of the first vertex, for messages.
    """

    def __init__(self, file: str, num_tasks: int, base: int) -> None:
        self.file, self.num_tasks, self.base = file, num_tasks, base
        self._weights: dict[tuple[int, int], tuple[int, str]] = {}
        self._once: set[tuple[int, int]] = set()

    def add(self, source: int, target: int, weight: int, field: str) -> None:
        """Add an arc between vertices counted from 0.

        Raises
        ------
        InputError
            For a loop, an edge listed again at the same end, or other weights at its two ends.
        """
        if source == target:
            raise self._error("no edge from a vertex to itself", field, source, target)
        edge = (min(source, target), max(source, target))
        if edge not in self._weights:
            self._weights[edge] = (weight, field)
            self._once.add((source, target))
            return
        if (target, source) not in self._once:
            raise self._error("each edge once at each of its ends", field, source, target)
        if self._weights[edge][0] != weight:
            found = f"{self._weights[edge][0]} and {weight}"
            raise InputError(
                f"the same weight at both ends of edge {self._name(*edge)}",
                file=self.file,
                field=field,
                value=found,
            )
        self._once.remove((target, source))

    def graph(self) -> GraphApplication:
        """Return one message per edge, of its weight in bytes, from its lower to its higher end.

        Raises
        ------
        InputError
            If an edge was seen from one end only.
        """
        if self._once:
            source, target = min(self._once)
            _, field = self._weights[min(source, target), max(source, target)]
            raise self._error("each edge at both of its ends", field, source, target)
        edges = sorted(self._weights)
        return GraphApplication(
            num_tasks=self.num_tasks,
            sources=[source for source, _ in edges],
            targets=[target for _, target in edges],
            bytes=[self._weights[edge][0] for edge in edges],
        )

    def _error(self, expected: str, field: str, source: int, target: int) -> InputError:
        return InputError(expected, file=self.file, field=field, value=self._name(source, target))

    def _name(self, source: int, target: int) -> str:
        return f"{source + self.base}-{target + self.base}"
