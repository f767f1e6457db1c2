"""Placements by an integer program over kinds of places and of requests.

For 5,600 racks of 18 kinds, the program decides how many racks of each kind are filled with which
pieces of requests; it need not decide whose pieces they are, and in which of the racks. The
contents of a place are a path in a graph whose nodes are amounts taken and whose arcs are pieces,
so that the places of a kind are a flow (Valério de Carvalho 1999, for bins). Equal requests are one
kind, too: the program decides how many of them are split into which pieces. So its size depends on
neither machine nor queue, but on how many different racks and requests there are. A segment lies
in one place here, so requests with larger ones wait, as do those that are exclusive, apart, spread,
limited or contiguous; other methods handle hosts with several resources, and levels above racks.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from topoplace import clock
from topoplace.packing.primal.program import Answer, Program
from topoplace.placement.hierarchy.kinds import Place, rules_of, splits_of
from topoplace.placement.hierarchy.layout import Layout
from topoplace.placement.hierarchy.problem import gains_of
from topoplace.placement.hierarchy.tables import Uses
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState

_MOST_ARCS = 30_000

_WORK = 4.0
"""CP-SAT's deterministic time for each of two levels; one of them is about half a second."""

_PARAMETERS = f"max_deterministic_time: {_WORK} random_seed: {{}} linearization_level: 2"

_Piece = tuple[int, int]
"""The kind of units, of the layout's, and their number."""

_Split = tuple[_Piece, ...]


@dataclass(frozen=True)
class _Arc:
    """A piece in a place, with the amounts taken before and after it."""

    node: int
    after: int
    piece: _Piece


@dataclass(frozen=True)
class _Way:
    """Equal requests with one of their sets of hosts.

    Attributes
    ----------
    members
        The requests.
    starts
        How many of them start so.
    splits
        By part how often it is split in some way. Of a single request with many of these there is a
        number for every piece instead, and it has all of them.
    """

    members: Sequence[int]
    starts: Any
    splits: list[dict[_Split, Any]]


class Patterns:
    """The program of some requests.

    Parameters
    ----------
    kinds
        By request a key, which equal requests share.
    places
        All kinds of places.
    deadline
        When all of it ends, by `topoplace.clock`.

    Attributes
    ----------
    is_solved
        Whether no placement starts more, and none of those that start as much has fewer pieces.

    Raises
    ------
    topoplace.clock.OutOfTimeError
        If it is not written by then.
    """

    def __init__(
        self,
        layout: Layout,
        requests: Sequence[HierarchyRequest],
        kinds: Sequence[Hashable],
        places: Sequence[Place],
        deadline: float,
    ) -> None:
        self._layout, self._requests, self._deadline = layout, requests, deadline
        self._model = Program()
        self._places = [place for place in places if len(place.resources) == 1]
        self._all_places = len(self._places) == len(places) and all(
            place.alone == 0 for place in places
        )
        self.is_solved = False
        self._ways: list[_Way] = []
        known = [q for q, request in enumerate(requests) if self._is_known(request)]
        self._all_requests = len(known) == len(requests)
        equal: dict[Hashable, list[int]] = defaultdict(list)
        for q in known:
            equal[kinds[q]].append(q)
        for members in equal.values():
            clock.check(deadline)
            self._add(members)
        wanted: dict[_Piece, list[Any]] = defaultdict(list)
        for way in self._ways:
            for split, number in itertools.chain(*(own.items() for own in way.splits)):
                for piece, count in Counter(split).items():
                    wanted[piece].append(count * number)
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
        return self._all_places and self._all_requests

    def placements(self, seed: int) -> Iterator[list[tuple[int, Uses]]]:
        """Yield the placement of the largest value found, and one of that value in fewer pieces."""
        if not self._ways or sum(map(len, self._arcs)) > _MOST_ARCS:
            return
        gains = gains_of(self._requests)
        value = sum(gains[way.members[0]] * way.starts for way in self._ways)
        solved = self.knows_all
        for objective in (-value, self._num_pieces):
            seconds = self._deadline - clock.now()
            if seconds <= 0:
                return
            self._model.minimise(objective)
            answer = self._model.solve(_PARAMETERS.format(seed % (1 << 31)), seconds)
            if answer is None:
                return
            solved &= answer.optimal
            self.is_solved = solved and objective is self._num_pieces
            yield self._found(answer)
            self._model.add(objective <= answer.value(objective))
            self._model.hint(dict(enumerate(answer.values)))

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
            and part.order is None
            for part in request.parts
        )

    def _add(self, members: Sequence[int]) -> None:
        """Add equal requests, each by itself if there are too many ways to split it."""
        ways = self._requests[members[0]].ways
        splits = [[self._splits(part) for part in way] for way in ways]
        if all(own is not None for parts in splits for own in parts):
            self._add_equal(members, splits)
            return
        for q in members:
            self._add_equal([q], splits)

    def _add_equal(
        self, members: Sequence[int], splits: Sequence[Sequence[list[_Split] | None]]
    ) -> None:
        found = []
        for way, own in zip(self._requests[members[0]].ways, splits, strict=True):
            starts = self._model.integer(0, len(members))
            numbers = [
                self._pieces(part, starts) if some is None else self._split(some, starts, members)
                for part, some in zip(way, own, strict=True)
            ]
            found.append(_Way(members, starts, numbers))
        self._model.add(sum(way.starts for way in found) <= len(members))
        self._ways += found

    def _split(
        self, splits: Sequence[_Split], starts: Any, members: Sequence[int]
    ) -> dict[_Split, Any]:
        """Return how often a part is split in each way: as often as requests start."""
        numbers = {split: self._model.integer(0, len(members)) for split in splits}
        self._model.add(sum(numbers.values()) == starts)
        return numbers

    def _pieces(self, part: PartState, start: Any) -> dict[_Split, Any]:
        """Return how many pieces of each size a part of a single request has."""
        kind, sizes = self._sizes(part)
        numbers = {n: self._model.integer(0, part.units // n) for n in sizes}
        self._model.add(sum(n * number for n, number in numbers.items()) == part.units * start)
        if sizes:
            fewest = -(-part.units // sizes[-1])
            self._model.add(sum(numbers.values()) >= fewest * start)
        return {((kind, n),): number for n, number in numbers.items()}

    def _sizes(self, part: PartState) -> tuple[int, range]:
        """Return the kind of a part's units, and the sizes of its pieces."""
        kind, step = self._layout.kind_of[part.kind], _step(part)
        most = max((place.rooms[kind] for place in self._places), default=0)
        return kind, range(step, min(part.units, most) + 1, step)

    def _splits(self, part: PartState) -> list[_Split] | None:
        """Return all ways to split a part into pieces; None if there are many."""
        kind, sizes = self._sizes(part)
        found = splits_of(part.units, sizes)
        return None if found is None else [tuple((kind, n) for n in own) for own in found]

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
                    number = self._model.integer(0, count)
                    arcs[_Arc(node, after, (kind, n))] = number
                    into[after].append(number)
                    out.append(number)
            self._model.add(sum(out) <= sum(into[node]))
            if len(arcs) > _MOST_ARCS:
                break
        return arcs

    # ---- What was found

    def _found(self, answer: Answer) -> list[tuple[int, Uses]]:
        """Return the requests that start, and where: pieces are given out in their order."""
        given: dict[_Piece, list[int]] = defaultdict(list)
        for place, arcs in zip(self._places, self._arcs, strict=True):
            numbers = {arc: answer.value(number) for arc, number in arcs.items()}
            for leaf, piece in _filled(place, numbers):
                given[piece].append(leaf)
        found: list[tuple[int, Uses]] = []
        for members, ways in itertools.groupby(self._ways, lambda way: way.members):
            waiting = iter(members)
            for way in ways:
                some = list(itertools.islice(waiting, answer.value(way.starts)))
                uses: list[dict[tuple[int, int], int]] = [defaultdict(int) for _ in some]
                for p, splits in enumerate(way.splits):
                    own = [split for split, n in splits.items() for _ in range(answer.value(n))]
                    for split, into in zip(_dealt(own, len(some)), uses, strict=True):
                        for piece in split:
                            into[p, given[piece].pop()] += piece[1]
                for q, into in zip(some, uses, strict=True):
                    found.append((q, tuple(sorted((*key, n) for key, n in into.items()))))
        return found


def _dealt(splits: Sequence[_Split], number: int) -> Sequence[_Split]:
    """Return the pieces of each of some requests: a single one has all."""
    return [tuple(itertools.chain(*splits))] if number == 1 else splits


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
