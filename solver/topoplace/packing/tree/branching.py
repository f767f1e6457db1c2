"""Branching rules: whether a request starts, and whether its candidate uses a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topoplace.packing.problem import Cover, Kinds, PackingProblem, Subproblem
from topoplace.result.certificate import CertificateNode, CoverBranch, StartBranch

_LEAST = 1e-4  # amount of a candidate that counts

Write = Callable[[CertificateNode, CertificateNode], CertificateNode]


@dataclass(frozen=True)
class Branch:
    """Two sides, and a function that writes the branch from their certificates."""

    sides: tuple[Subproblem, Subproblem]
    write: Write


class Dominance:
    """The requests that are preferred to others, among those that can start.

    On later levels those are the earlier ones of the same kind.
    """

    def __init__(self, problem: PackingProblem, startable: frozenset[int], level: int = 0) -> None:
        better = problem.earlier_of_kind if level else problem.dominating
        self.better = better(startable)
        """By request, those preferred to it."""
        self.worse: dict[int, frozenset[int]] = {}
        """By request, those it is preferred to."""
        for q, above in self.better.items():
            for b in above:
                self.worse[b] = self.worse.get(b, frozenset()) | {q}


def split_start(
    problem: PackingProblem, sub: Subproblem, q: int, dominance: Dominance | None = None
) -> Branch:
    """Split on whether a request starts: out, into; each with what follows by dominance."""
    out, into = {q}, {q}
    if dominance is not None:
        out |= dominance.worse.get(q, frozenset()) - sub.decided
        into |= dominance.better.get(q, frozenset()) - sub.decided
    name = problem.names[q]

    def write(low: CertificateNode, high: CertificateNode) -> CertificateNode:
        return StartBranch(request=name, out=low, into=high)

    sides = (
        replace(sub, excluded=sub.excluded | out),
        replace(sub, forced=sub.forced | into),
    )
    return Branch(sides, write)


def split_cover(
    problem: PackingProblem,
    sub: Subproblem,
    amounts: Sequence[tuple[float, Any]],
    groups: Sequence[tuple[int, ...]] = (),
) -> Branch | None:
    """Split on whether a request that starts uses a row or not.

    If one of several alike requests must start, either one of them uses the row, or none does. The
    row is one that a fractional solution covers by half; larger values go first.

    Parameters
    ----------
    amounts
        The fractional solution.
    groups
        Of alike requests (see `PackingProblem.alike`).

    Returns
    -------
    The sides, inside first; None if every request is in one place.
    """
    best: tuple[float, tuple[int, ...], int] = (1e-6, (), 0)
    kinds = Kinds(problem, sub)
    for requests in _interchangeable(kinds, sub, groups):
        load = np.zeros(problem.num_rows)
        firsts = {kinds.first[q] for q in requests}
        for amount, candidate in amounts:
            if candidate.request_idx in firsts and amount > _LEAST and kinds.admits(candidate):
                load[problem.rows_of(candidate)] += amount  # once, however much it takes
        load = load[: problem.num_covers] % 1  # beside those that take of it as a whole
        use = max(1, *(int(problem.values[q]) for q in requests)) * np.minimum(load, 1 - load)
        row = int(use.argmax())
        if use[row] > best[0]:
            best = (float(use[row]), requests, row)
    _, requests, row = best
    if not requests:
        return None
    inside = (Cover(requests[0], row, inside=True),)
    outside = tuple(Cover(q, row, inside=False) for q in requests)
    name = problem.names[requests[0]]

    def write(low: CertificateNode, high: CertificateNode) -> CertificateNode:
        return CoverBranch(request=name, row=row, inside=low, outside=high)

    low, high = (replace(sub, covers=(*sub.covers, *covers)) for covers in (inside, outside))
    return Branch((low, high), write)


def _interchangeable(
    kinds: Kinds, sub: Subproblem, groups: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Return the requests that may take each other's place, first one that must start.

    A request in no group is alone, and represents the requests of its kind.
    """
    group_of = {q: number for number, group in enumerate(groups) for q in group}
    found: dict[object, list[int]] = {}
    for first, members in kinds.members.items():
        if first not in group_of:
            if kinds.least[first]:
                found["alone", first] = [kinds.one_of(first)]
            continue
        covers = frozenset((x.row, x.inside) for x in sub.covers_of.get(first, ()))
        together = found.setdefault((group_of[first], covers), [])
        if kinds.least[first]:
            one = kinds.one_of(first)
            together[:0] = [one, *(q for q in members if q != one)]
        else:
            together += members
    found = {key: own for key, own in found.items() if own and own[0] in sub.forced}
    return [tuple(requests) for requests in found.values()]
