"""Placements by an integer program over kinds of places, with the contents of one as a path.

For 560 racks of 18 kinds, the program decides how many racks of each kind are filled with which
pieces of requests; it need not decide whose pieces they are, and in which of the racks. The
contents of a place are a path in a graph whose nodes are amounts taken and whose arcs are pieces,
so that the places of a kind are a flow (Valério de Carvalho 1999, for bins). A segment lies in one
place here, so requests with larger ones wait, as do those that are exclusive, apart, spread or
limited; other methods handle hosts with several resources, and levels above racks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model

from topoplace import clock
from topoplace.placement.hierarchy.kinds import Place, rules_of
from topoplace.placement.hierarchy.layout import Layout
from topoplace.placement.hierarchy.problem import gains_of
from topoplace.placement.hierarchy.tables import Uses
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState

_MOST_ARCS = 30_000
_WORK = 4.0
"""CP-SAT's deterministic time for each of two levels; one of them is about half a second."""

_PARAMETERS = "random_seed: {} num_workers: 1 linearization_level: 2 catch_sigint_signal: false"

_Piece = tuple[int, int]
"""The kind of units, of the layout's, and their number."""


@dataclass(frozen=True)
class _Arc:
    """A piece in a place, with the amounts taken before and after it."""

    node: int
    after: int
    piece: _Piece


class Patterns:
    """The program of some requests.

    Parameters
    ----------
    places
        All kinds of places.
    deadline
        When all of it ends, by `topoplace.clock`.

    Raises
    ------
    topoplace.clock.OutOfTimeError
        If it is not written by then.
    """

    def __init__(
        self,
        layout: Layout,
        requests: Sequence[HierarchyRequest],
        places: Sequence[Place],
        deadline: float,
    ) -> None:
        self._layout, self._requests, self._deadline = layout, requests, deadline
        self._model: Any = cp_model.CpModel()
        self._places = [place for place in places if len(place.resources) == 1]
        self._all_places = len(self._places) == len(places) and all(
            place.alone == 0 for place in places
        )
        self._starts: dict[int, Any] = {}
        self._pieces: dict[int, list[dict[_Piece, Any]]] = {}
        for q, request in enumerate(requests):
            clock.check(deadline)
            if self._is_known(request):
                self._add(q, request)
        wanted: dict[_Piece, list[Any]] = defaultdict(list)
        for parts in self._pieces.values():
            for own in parts:
                for piece, number in own.items():
                    wanted[piece].append(number)
        self._arcs = [self._paths(place, sorted(wanted)) for place in self._places]
        given: dict[_Piece, list[Any]] = defaultdict(list)
        for arcs in self._arcs:
            for arc, number in arcs.items():
                given[arc.piece].append(number)
        for piece, numbers in wanted.items():
            self._model.add(sum(numbers) <= sum(given[piece]))
        self._num_pieces = sum(number for numbers in wanted.values() for number in numbers)

    @property
    def knows_all(self) -> bool:
        """Whether all placements are solutions of the program, with the same values."""
        return self._all_places and len(self._starts) == len(self._requests)

    def placements(self, seed: int) -> Iterator[list[tuple[int, Uses]]]:
        """Yield the placement of the largest value found, and one of that value in fewer pieces."""
        if not self._starts or sum(map(len, self._arcs)) > _MOST_ARCS:
            return
        gains = gains_of(self._requests)
        value = sum(gains[q] * start for q, start in self._starts.items())
        for objective in (-value, self._num_pieces):
            seconds = self._deadline - clock.now()
            if seconds <= 0:
                return
            self._model.minimize(objective)
            solver: Any = cp_model.CpSolver()
            solver.parameters.parse_text_format(_PARAMETERS.format(seed % (1 << 31)))
            solver.parameters.max_deterministic_time = _WORK
            solver.parameters.max_time_in_seconds = seconds
            with clock.ended_by(solver.stop_search):
                status = solver.solve(self._model)
            if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                return
            yield self._found(solver)
            self._model.add(objective <= int(solver.value(objective)))
            self._model.clear_hints()
            for index, known in enumerate(solver.response_proto.solution):
                self._model.add_hint(self._model.get_int_var_from_proto_index(index), known)

    # ---- Which requests start, in which pieces

    def _is_known(self, request: HierarchyRequest) -> bool:
        """Return whether the program covers all rules of a request."""
        groups = {part.group for part in request.parts if part.required is not None}
        alone = not groups or len(request.parts) == 1
        return alone and all(
            part.exclusive is None
            and part.spread is None
            and part.at_most is None
            and not part.apart
            for part in request.parts
        )

    def _add(self, q: int, request: HierarchyRequest) -> None:
        starts: list[Any] = []
        found: list[dict[_Piece, Any]] = [{} for _ in request.parts]
        for way in request.ways:
            starts.append(self._model.new_bool_var(""))
            for part, own in enumerate(self._add_way(way, starts[-1])):
                found[part] |= own
        self._model.add(sum(starts) <= 1)
        self._starts[q], self._pieces[q] = sum(starts), found

    def _add_way(self, parts: Sequence[PartState], start: Any) -> list[dict[_Piece, Any]]:
        found = []
        for part in parts:
            kind, step = self._layout.kind_of[part.kind], _step(part)
            most = max((place.rooms[kind] for place in self._places), default=0)
            sizes = range(step, min(part.units, most) + 1, step)
            own = {(kind, n): self._model.new_int_var(0, part.units // n, "") for n in sizes}
            units = sum(n * number for (_, n), number in own.items())
            self._model.add(units == part.units * start)
            if sizes:
                fewest = -(-part.units // sizes[-1])
                self._model.add(sum(own.values()) >= fewest * start)
            found.append(own)
        return found

    # ---- The contents of places

    def _paths(self, place: Place, pieces: Sequence[_Piece]) -> dict[_Arc, Any]:
        """State the flow of a kind of places; return the number of them that have each arc."""
        clock.check(self._deadline)
        most, count = place.capacities[0], len(place.leaves)
        arcs: dict[_Arc, Any] = {}
        into: dict[int, list[Any]] = defaultdict(list)
        into[0] = [count]
        for node in range(most):
            if node not in into:
                continue
            out = []
            for kind, n in pieces:
                after = node + place.taken(self._layout.kinds[kind], n)[0]
                if after <= most and n <= place.rooms[kind]:
                    number = self._model.new_int_var(0, count, "")
                    arcs[_Arc(node, after, (kind, n))] = number
                    into[after].append(number)
                    out.append(number)
            self._model.add(sum(out) <= sum(into[node]))
            if len(arcs) > _MOST_ARCS:
                break
        return arcs

    # ---- What was found

    def _found(self, solver: Any) -> list[tuple[int, Uses]]:
        """Return the requests that start, and where: pieces are given out in their order."""
        given: dict[_Piece, list[int]] = defaultdict(list)
        for place, arcs in zip(self._places, self._arcs, strict=True):
            numbers = {arc: int(solver.value(number)) for arc, number in arcs.items()}
            for leaf, piece in _filled(place, numbers):
                given[piece].append(leaf)
        found = []
        for q, start in self._starts.items():
            if solver.value(start):
                uses: dict[tuple[int, int], int] = defaultdict(int)
                for p, own in enumerate(self._pieces[q]):
                    for piece, number in own.items():
                        for _ in range(solver.value(number)):
                            uses[p, given[piece].pop()] += piece[1]
                found.append((q, tuple(sorted((p, leaf, n) for (p, leaf), n in uses.items()))))
        return found


def _filled(place: Place, numbers: dict[_Arc, int]) -> Iterator[tuple[int, _Piece]]:
    """Yield leaves and pieces of a flow, taken apart into a path for every place."""
    out: dict[int, list[_Arc]] = defaultdict(list)
    for arc, number in numbers.items():
        out[arc.node] += [arc] * number
    for leaf in place.leaves:
        node = 0
        while out[node]:
            arc = out[node].pop()
            yield leaf, arc.piece
            node = arc.after


def _step(part: PartState) -> int:
    """Return the size of pieces in a place, so that all domains above it hold whole pieces."""
    return max((size for _, size in rules_of(part)), default=1)
