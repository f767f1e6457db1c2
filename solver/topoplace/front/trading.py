"""Trade the levels of placements off, and find all that are as good as any other one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from topoplace import options
from topoplace.front.documents import options_of, watched
from topoplace.front.placing import prepared
from topoplace.kernels import compile_for
from topoplace.options import names_of, takes
from topoplace.placement.several import optima_of, traded_off
from topoplace.result.several import Frontier, Optima
from topoplace.snapshot.machines import AnyState
from topoplace.solving import Options
from topoplace.solving.solve import tree_objective

Found = TypeVar("Found")


@takes(options.Frontier)
def frontier(asked: options.Frontier) -> Frontier:
    """Trade levels of placements off: return the best placements, and prove that these are all.

    There is no such document of trees by contention. What is open at the time limit is told.

    Returns
    -------
    Frontier
        Its `points`; printed, it is a table. It plots itself, and can be checked.
    """
    levels = names_of(asked.levels)
    return _exactly(asked, lambda state, settings: traded_off(state, levels, settings))


@takes(options.Optima)
def optima(asked: options.Optima) -> Optima:
    """Find placements that are as good as any other one, and prove that these are all.

    There is no such document of trees by contention.

    Returns
    -------
    Optima
        Its `points`, and each as a result of its own by `result`; printed, it is a table. It plots
        itself, and can be checked.
    """
    own = asked.most, names_of(asked.levels), asked.distinct
    return _exactly(asked, lambda state, settings: optima_of(state, *own, settings))


def _exactly(asked: options.Placing, find: Callable[[AnyState, Options], Found]) -> Found:
    """Return what is found of an instance with the method exact."""
    settings = options_of(asked)
    state = prepared(asked, settings, tree_objective(asked.objective, free=True))
    compile_for(state.kind, ["exact"])
    with watched(settings, asked) as settings:
        return find(state, settings)
