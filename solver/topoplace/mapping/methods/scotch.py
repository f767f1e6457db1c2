"""The mapping of Scotch, where it is installed, made to keep to the capacities."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.compact import distances_from
from topoplace.mapping.graph import IntArray
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.methods._boxes import spread_over_nodes
from topoplace.mapping.positions import symmetric
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.scotch_program import run_scotch
from topoplace.solving import Options, Outcome, register


@register("mapping", "scotch", "the external program gmap of Scotch, where installed")
def map_scotch(problem: MappingProblem, options: Options) -> Outcome:
    """Map with Scotch (`run_scotch`), and move what does not fit to the nearest free routers.

    Raises
    ------
    InputError
        If Scotch is not installed or cannot map the instance.
    """
    options.say("gmap")
    try:
        routers = run_scotch(symmetric(problem), options.time_limit)
    except TimeoutError:
        return outcome_of(None, hit=True)
    return outcome_of(spread_over_nodes(problem, within_capacity(problem, routers)))


def within_capacity(problem: MappingProblem, routers: IntArray) -> IntArray:
    """Return a mapping in which the last tasks of overfull routers are on the nearest free ones."""
    load = np.bincount(routers, minlength=problem.machine.num_routers)
    free = problem.capacity - load
    found = routers.copy()
    for router in np.flatnonzero(free < 0).tolist():
        surplus = np.flatnonzero(routers == router)[free[router] :]
        away = distances_from(problem.machine, router)
        for task in surplus.tolist():
            open_ = np.flatnonzero(free > 0)
            goal = int(open_[away[open_].argmin()])
            found[task] = goal
            free[goal] -= 1
    return found
