"""The trade-off between levels of a placement, as a document."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from topoplace.errors import InputError
from topoplace.interrupts import heeded
from topoplace.packing.frontier import TradeOff, trade_off
from topoplace.placement.several import fields_of, reported, searched
from topoplace.result.several import FRONTIER_SCHEMA, Frontier
from topoplace.snapshot.machines import AnyState
from topoplace.solving import Options
from topoplace.solving.solve import Problem, frame_of, problem_of, require_levels

MOST_TRADED = 3


def traded_off(
    instance: AnyState | Problem, traded: Sequence[str], options: Options | None = None
) -> Frontier:
    """Return the best placements of two or three levels, and the proof that there are no others.

    Parameters
    ----------
    instance
        A prepared snapshot of a torus, mesh, hierarchy or pod of cubes, or a problem of one.
    traded
        Names of the levels; of the others anything will do.
    options
        Time limit, rule of interference, seed, and who watches.

    Raises
    ------
    InputError
        If the levels are none of the problem, or too few or many.
    """
    options = options or Options()
    problem = problem_of(instance, options)
    names = [name for name, _ in frame_of(problem.kind).levels(problem)]
    require_levels(traded, names, problem.kind)
    if not 1 < len(set(traded)) == len(traded) <= MOST_TRADED:
        raise InputError("two or three levels", field="levels", value=",".join(traded))
    numbers = sorted(map(names.index, traded))
    return frontier_of(
        problem,
        options,
        TradeOff(tuple(numbers)),
        lambda own, budget, **how: trade_off(own.packing, numbers, budget, **how),
    )


def frontier_of(
    problem: Problem, options: Options, nothing: TradeOff, search: Callable[..., TradeOff]
) -> Frontier:
    """Return what a search finds of the trade-off between levels; see `searched`."""
    names = [name for name, _ in frame_of(problem.kind).levels(problem)]
    with heeded():
        own, found, budget, seconds = searched(problem, options, nothing, search)
        shared = fields_of(problem, own, found, options, seconds)
        boxes = found.boxes()
        shared["limits"]["hit"] = budget.is_over() and bool(boxes)
        document = shared | {
            "schema_version": FRONTIER_SCHEMA,
            "traded": [names[level] for level in found.traded],
            "complete": not boxes,
            "open": [
                {
                    "worst": reported(own.packing, found.traded, worst),
                    "best": reported(own.packing, found.traded, best),
                }
                for worst, best in boxes
            ],
        }
        return Frontier(**document)
