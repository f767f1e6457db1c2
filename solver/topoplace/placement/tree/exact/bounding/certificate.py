"""A bound as a list of moves that a program without this search can follow and check."""

from __future__ import annotations

from topoplace import clock
from topoplace.placement.tree.exact.bounding.thresholds import ThresholdSearch, is_empty
from topoplace.placement.tree.exact.cubes.certificate import cube_nogoods_of
from topoplace.placement.tree.exact.cubes.refuter import CubeRefuter
from topoplace.placement.tree.exact.job import Job
from topoplace.result.tree import BoxMove, CubeNogood

_MOST_MOVES = 20_000


def boxes_of(
    job: Job, bound: int, deadline: float, refuter: CubeRefuter | None = None
) -> tuple[list[BoxMove], list[CubeNogood]] | None:
    """Return moves, and nogoods that they rest on, that show that no allocation costs less.

    Parameters
    ----------
    bound
        In units of 1 / (100 `job.scale`), which is exact.
    refuter
        Of a cube, with what it has found so far.

    Returns
    -------
    Both (docs/proofs-tree.md, "Certificates"), or None if the plain relaxation with nogoods of
    cubes does not show it or the time is up.
    """
    if refuter:
        refuter.deadline = deadline
    search = ThresholdSearch(job, deadline, plain=True, more=refuter.refutes if refuter else None)
    moves: list[BoxMove] = []
    boxes = [([0] * len(search.prices), [len(search.values) - 1] * len(search.prices))]
    while boxes:
        low, high = boxes.pop()
        if not _shrink(search, low, high, bound, moves):
            moves.append(("close", 0, 0))
            continue
        if clock.now() > deadline or len(moves) > _MOST_MOVES:
            return None
        if low == high or search.possible(low):
            return None
        below, above = search.split(low, high)
        step = next(s for s, (a, b) in enumerate(zip(below[1], high, strict=True)) if a != b)
        moves.append(("split", step, below[1][step]))
        boxes += [above, below]
    return moves, cube_nogoods_of(refuter, search.values) if refuter else []


def _shrink(
    search: ThresholdSearch, low: list[int], high: list[int], bound: int, moves: list[BoxMove]
) -> bool:
    """Shrink a box in place, move by move; return whether anything is left."""
    changed = True
    while changed:
        changed = False
        search.order(low, high)
        if is_empty(low, high) or search.cost(low) >= bound or not search.possible(high):
            return False
        for step in range(len(low)):
            value = search.affordable(low, high[step], step, bound)
            if value < high[step]:
                high[step], changed = value, True
                moves.append(("high", step, value))
        search.order(low, high)
        if is_empty(low, high) or not search.possible(high):
            return False
        for step in reversed(range(len(low))):
            if clock.now() > search.deadline:
                return True
            value = search.least(low, high, step)
            if value > low[step]:
                low[step], changed = value, True
                moves.append(("low", step, value))
    return True
