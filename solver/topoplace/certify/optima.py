"""The claims of all optima: placements that are as good as any, distinct, and perhaps all.

Certificates of `steps` bound what any placement is worth, that of `rest` what any other one is
(docs/proofs/placement.md, "All optima").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from topoplace.certify.excluding import Answer, excluding
from topoplace.certify.report import Claims, RefusedError
from topoplace.certify.several import Placements, reaches, told_of
from topoplace.errors import number_of
from topoplace.result.several import Optima, Point


def follow_optima(document: Optima, claims: Claims) -> None:
    """Add the claims of all optima, as far as they can be followed."""
    optima = _Optima(document)
    checks = {
        **{"chosen": optima.check_chosen, "points": optima.check_as_good},
        **{"distinct": optima.check_distinct, "steps": optima.check_steps},
        "complete": optima.check_complete,
    }
    optima.follow(claims, checks)


class _Optima(Placements):
    """Points that are as good as each other."""

    document: Optima

    def check_chosen(self) -> str:
        """Check that the levels that count are the first."""
        chosen, queue = self.document.chosen, {r.id for r in self.document.instance.queue}
        if any(r.id in queue and not r.value for r in self.problem.oracle.requests):
            raise RefusedError("a request without value, with and without which all is as good")
        if chosen != self.names[: len(chosen)]:
            raise RefusedError(f"the first levels are {', '.join(self.names)}")
        return ", ".join(chosen)

    def check_as_good(self) -> str:
        """Check that points are placements, as good as each other, and no more than asked for."""
        document, num = self.document, len(self.document.chosen)
        self.check_points()
        if not 1 <= len(document.points) <= document.asked:
            raise RefusedError(
                f"{number_of(len(document.points), 'point')}, {document.asked} asked for"
            )
        self._values = document.points[0].values[:num]
        for k, point in enumerate(document.points):
            if point.values[:num] != self._values:
                raise RefusedError(f"points[{k}] is worth {point.values[:num]}, not {self._values}")
        return f"{number_of(len(document.points), 'placement')}, as good as each other"

    def check_distinct(self) -> str:
        """Check that no point is another one with equal requests exchanged."""
        self._groups = self._grouped()
        self._answers = [self._answer(point) for point in self.document.points]
        seen: dict[Hashable, int] = {}
        for k, answer in enumerate(self._answers):
            told = frozenset(Counter((self._groups[q], place) for q, place in answer).items())
            if told in seen:
                raise RefusedError(f"points[{k}] is points[{seen[told]}] again")
            seen[told] = k
        return (
            f"by {self.document.distinct}, {number_of(len(self.document.equal), 'group')} of "
            "equal requests"
        )

    def _grouped(self) -> list[int]:
        """Return by request the first of those that it is equal to."""
        oracle = self.problem.oracle
        numbers = {request.id: q for q, request in enumerate(oracle.requests)}
        groups, grouped = list(range(len(numbers))), set[str]()
        for names in self.document.equal:
            known = {request.id for request in self.document.instance.queue} & {*numbers}
            if {*names} & grouped or not {*names} <= known or not 1 < len({*names}) == len(names):
                raise RefusedError(f"{', '.join(names)} are no group of several requests")
            grouped |= {*names}
            first, *others = sorted(numbers[name] for name in names)
            for q in others:
                same = oracle.requests[q].value == oracle.requests[first].value
                if not (same and oracle.may_replace(q, first) and oracle.may_replace(first, q)):
                    raise RefusedError(f"{', '.join(names)} are not equal")
                groups[q] = first
        return self._with_others(groups)

    def _with_others(self, groups: list[int]) -> list[int]:
        """Return groups in which what is no request of the queue has its equals, too."""
        oracle, queue = (
            self.problem.oracle,
            {request.id for request in self.document.instance.queue},
        )
        firsts: list[int] = []
        for q, request in enumerate(oracle.requests):
            if request.id in queue:
                continue
            like = (f for f in firsts if oracle.may_replace(q, f) and oracle.may_replace(f, q))
            first = next((f for f in like if oracle.requests[f].value == request.value), None)
            if first is None:
                firsts.append(q)
            else:
                groups[q] = first
        return groups

    def _answer(self, point: Point) -> Answer:
        """Return who starts, and where if places count."""
        numbers = {request.id: q for q, request in enumerate(self.problem.oracle.requests)}
        if self.document.distinct == "started":
            return [(numbers[placement.request], None) for placement in point.solution.placements]
        places = self.problem.places(point.solution, self.document.distinct)
        return [(numbers[name], place) for name, place in places.items()]

    def check_complete(self) -> str:
        """Check what is proven of all placements and of others, and what is claimed of these."""
        document, rest = self.document, self.document.rest
        closed = not all(self._answers)
        if rest is not None:
            with told_of("rest"):
                self.check_step(rest, excluding(self.problem.oracle, self._groups, self._answers))
            level, values = len(rest.required), self.turned(self._values)
            covered = level < len(values) and reaches(values, self.floors(rest))
            closed |= covered and self.bound(rest) < values[level]
        if document.complete != (closed and self._are_best()):
            raise RefusedError(f"complete is {document.complete}")
        best = "no placement is better" if self._are_best() else "better ones are not ruled out"
        return f"{best}, {'and no other as good' if document.complete else 'others may be as good'}"

    def _are_best(self) -> bool:
        """Tell whether steps rule out whatever is better, level by level."""
        values = self.turned(self._values)
        met = {
            len(step.required)
            for step in self.document.steps
            if len(step.required) < len(values)
            and reaches(values, self.floors(step))
            and self.bound(step) <= values[len(step.required)]
        }
        return len(met) == len(values)
